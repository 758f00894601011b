"""The append-only record of topology changes: our own, and those seen from outside."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from django.db import connection, transaction

from cohorts.gate import read_version
from cohorts.models import Agent, Membership, TopologyChange
from cohorts.triggers import move_now

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Action = TopologyChange.Action
OUTSIDE = "outside"
"""The author of changes that did not come through this application."""

_open_change: ContextVar[Audit | None] = ContextVar("open_change", default=None)
# Any number that nothing else in this database locks.
_AUDIT_LOCK = 7_061_994


@dataclass(slots=True, kw_only=True)
class Audit:
    """The lines of one change, stored together at its end under the version it made."""

    who: str
    lines: list[TopologyChange] = field(default_factory=list)

    def note(self, action: str, *, cohort: str = "", agent: str = "", detail: str = "") -> None:
        """Add a line; a change that notes nothing leaves no trace."""
        line = TopologyChange(
            who=self.who, action=action, cohort=cohort, agent=agent, detail=detail
        )
        self.lines.append(line)

    @contextmanager
    def part(self) -> Iterator[None]:
        """Forget the lines of a part that fails and is rolled back alone."""
        n_lines = len(self.lines)
        try:
            yield
        except BaseException:
            del self.lines[n_lines:]
            raise


@dataclass(slots=True, kw_only=True)
class KnownState:
    """Memberships as (cohort, agent) names, and the agents' statuses, by slug."""

    members: set[tuple[str, str]] = field(default_factory=set)
    statuses: dict[str, str] = field(default_factory=dict)


@contextmanager
def change(who: str) -> Iterator[Audit]:
    """Make one change of the topology: one transaction with its audit lines.

    Every writer of ours goes through here, one at a time. What came from outside before is
    recorded first, so that our lines do not cover it. A change within a change is a part of it:
    the outermost one stores all lines and moves the version, once and late.
    """
    outer = _open_change.get()
    if outer is not None:
        with transaction.atomic(), outer.part():
            yield outer
        return
    audit = Audit(who=who)
    token = _open_change.set(audit)
    try:
        with transaction.atomic():
            _wait_for_other_writers()
            _record_outside()
            yield audit
            if audit.lines:
                move_now()
                _store(audit.lines, read_version())
    finally:
        _open_change.reset(token)


def record_outside_changes() -> int:
    """Record what changed without this application, and return the number of lines written.

    Looks only if the version is ahead of the newest line. One line names each difference from
    the replayed record; a single line says that the version moved where nothing differs.
    """
    if _is_complete(read_version()):
        return 0
    with transaction.atomic():
        _wait_for_other_writers()
        return _record_outside()


def replay(changes: Iterable[tuple[str, str, str, str]]) -> KnownState:
    """Return the state that lines of (action, cohort, agent, detail), oldest first, lead to."""
    state = KnownState()
    for action, cohort, agent, detail in changes:
        match action:
            case Action.MEMBER_ADDED:
                state.members.add((cohort, agent))
            case Action.MEMBER_REMOVED:
                state.members.discard((cohort, agent))
            case Action.AGENT_CREATED | Action.STATUS_CHANGED:
                state.statuses[agent] = detail
            case Action.AGENT_DELETED:
                state.statuses.pop(agent, None)
    return state


def _wait_for_other_writers() -> None:
    """Let one writer of ours at a time look at the record and write to it.

    A lock of its own and not the version's row: who holds that row early deadlocks with raw SQL
    that holds a membership and wants the row at its commit. SQLite has one writer anyway.
    """
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_AUDIT_LOCK])


def is_recorded(version: int) -> bool:
    """Tell whether the record has a line of this version."""
    return version == 0 or TopologyChange.objects.filter(version=version).exists()


def _is_complete(version: int) -> bool:
    """Tell whether the newest line of the record is of this version."""
    return version == (TopologyChange.objects.values_list("version", flat=True).first() or 0)


def _record_outside() -> int:
    version = read_version()
    if _is_complete(version):
        return 0
    rows = TopologyChange.objects.order_by("id")
    known = replay(rows.values_list("action", "cohort", "agent", "detail").iterator())
    audit = Audit(who=OUTSIDE)
    _note_differences(audit, known, _actual_state())
    if not audit.lines:
        audit.note(Action.MOVED)
    _store(audit.lines, version)
    return len(audit.lines)


def _actual_state() -> KnownState:
    return KnownState(
        members=set(Membership.objects.values_list("cohort__name", "agent__slug")),
        statuses=dict(Agent.objects.values_list("slug", "status")),
    )


def _note_differences(audit: Audit, known: KnownState, actual: KnownState) -> None:
    for slug, status in sorted(actual.statuses.items()):
        if slug not in known.statuses:
            audit.note(Action.AGENT_CREATED, agent=slug, detail=status)
        elif known.statuses[slug] != status:
            audit.note(Action.STATUS_CHANGED, agent=slug, detail=status)
    for cohort, agent in sorted(actual.members - known.members):
        audit.note(Action.MEMBER_ADDED, cohort=cohort, agent=agent)
    for cohort, agent in sorted(known.members - actual.members):
        audit.note(Action.MEMBER_REMOVED, cohort=cohort, agent=agent)
    for slug in sorted(known.statuses.keys() - actual.statuses.keys()):
        audit.note(Action.AGENT_DELETED, agent=slug)


def _store(lines: list[TopologyChange], version: int) -> None:
    for line in lines:
        line.version = version
    TopologyChange.objects.bulk_create(lines, batch_size=1000)
