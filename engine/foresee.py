"""What a change of who deals with whom would do, before it is made.

An `Edit` is the change as it was thought of. For each simulation `foresee_edit` compares the
topology as it is with the one that the edit would make, by the rules of the gate itself, and adds
what only the engine knows: open threads, and what was said in the last run.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, Self

from django.db.models import Count

from cohorts.foresight import Foresight, foresee
from cohorts.gate import read_version
from cohorts.models import Agent, Membership
from cohorts.rules import Policy, build_topology
from engine.models import Message, RosterEntry, Run, Simulation, Thread
from engine.models.runs import LIVE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cohorts.rules import Topology

SIMULATIONS_AT_MOST: Final = 5
ROOTS_AT_MOST: Final = 5_000
THREADS_AT_MOST: Final = 20
Pair = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """A change that is thought of; ids throughout, and a pair never on both sides.

    Memberships are (cohort, agent), entries of a chosen roster (simulation, agent), policies
    (simulation, policy), statuses (agent, status).
    """

    add: tuple[Pair, ...] = ()
    remove: tuple[Pair, ...] = ()
    statuses: tuple[tuple[int, str], ...] = ()
    policies: tuple[tuple[int, str], ...] = ()
    join: tuple[Pair, ...] = ()
    leave: tuple[Pair, ...] = ()

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> Self:
        """Make the edit that `as_json` told of."""
        return cls(**{name: tuple(tuple(pair) for pair in pairs) for name, pairs in kept.items()})

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def __bool__(self) -> bool:
        return any(asdict(self).values())


@dataclass(frozen=True, slots=True, kw_only=True)
class LastRun:
    """Of the newest posts of the last run: how many, and how many some agent would not have had."""

    run: int
    n_posts: int
    n_kept_back: int
    is_cut: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What an edit does in one simulation. Open threads that it leaves to finish are (root, root's
    `seq`, agent, agent)."""

    simulation: Simulation
    foresight: Foresight
    grandfathered: tuple[tuple[int, int, int, int], ...]
    n_grandfathered: int
    last_run: LastRun | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlooks:
    """What an edit does everywhere, as of one version of the topology."""

    version: int
    each: tuple[Outlook, ...]
    n_more: int
    slugs: Mapping[int, str]

    @property
    def silenced(self) -> tuple[str, ...]:
        """The agents that would hear nobody in some simulation, sorted."""
        return self._named(one.foresight.silenced for one in self.each)

    @property
    def freed(self) -> tuple[str, ...]:
        """The agents that would deal with everybody in some simulation, sorted."""
        return self._named(one.foresight.freed for one in self.each)

    def _named(self, groups: Iterable[tuple[int, ...]]) -> tuple[str, ...]:
        return tuple(sorted({self.slugs[agent] for group in groups for agent in group}))


class _Rows:
    """The rows that topologies are made of, read once for all simulations."""

    def __init__(self, simulations: Iterable[Simulation]) -> None:
        self.version = read_version()
        self.memberships = set(Membership.objects.values_list("cohort_id", "agent_id"))
        agents = Agent.objects.values_list("pk", "slug", "status")
        self.status = {pk: status for pk, _, status in agents}
        self.slugs = {pk: slug for pk, slug, _ in agents}
        self.roster: defaultdict[int, set[int]] = defaultdict(set)
        entries = RosterEntry.objects.filter(simulation__in=list(simulations))
        for simulation, agent in entries.values_list("simulation_id", "agent_id"):
            self.roster[simulation].add(agent)

    def topology(self, simulation: Simulation, edit: Edit) -> Topology:
        """Return the topology of a simulation after an edit."""
        status = self.status | dict(edit.statuses)
        running = {pk for pk, word in status.items() if word == Agent.Status.ACTIVE}
        if simulation.roster_chosen:
            joined = {agent for place, agent in edit.join if place == simulation.pk}
            left = {agent for place, agent in edit.leave if place == simulation.pk}
            running &= (self.roster[simulation.pk] | joined) - left
        return build_topology(
            version=self.version,
            policy=Policy(dict(edit.policies).get(simulation.pk, simulation.policy)),
            memberships=(self.memberships | set(edit.add)) - set(edit.remove),
            names={},
            agents=status,
            running=running,
            members_of={},
        )


def foresee_edit(edit: Edit) -> Outlooks:
    """Return what an edit would do, in the simulations that live or ran last."""
    chosen, n_more = _simulations()
    rows = _Rows(chosen)
    each = tuple(_outlook(simulation, edit, rows) for simulation in chosen)
    return Outlooks(version=rows.version, each=each, n_more=n_more, slugs=rows.slugs)


def _simulations() -> tuple[list[Simulation], int]:
    """Return the simulations to look at, those with a live or the newest run first."""
    newest = Run.objects.order_by("-pk").values_list("simulation_id", "status")[:500]
    order: dict[int, int] = {}
    for number, (simulation, status) in enumerate(newest):
        order.setdefault(simulation, number)
        if status in LIVE:
            order[simulation] = min(order[simulation], number) - 1_000
    every = sorted(Simulation.objects.all(), key=lambda one: (order.get(one.pk, 1_000), one.pk))
    return every[:SIMULATIONS_AT_MOST], max(0, len(every) - SIMULATIONS_AT_MOST)


def _outlook(simulation: Simulation, edit: Edit, rows: _Rows) -> Outlook:
    old, new = rows.topology(simulation, Edit()), rows.topology(simulation, edit)
    foresight = foresee(old, new)
    threads = _grandfathered(simulation, old, new) if foresight.closed.n else []
    return Outlook(
        simulation=simulation,
        foresight=foresight,
        grandfathered=tuple(threads[:THREADS_AT_MOST]),
        n_grandfathered=len(threads),
        last_run=_last_run(simulation, foresight) if foresight.closed.n else None,
    )


def _grandfathered(
    simulation: Simulation, old: Topology, new: Topology
) -> list[tuple[int, int, int, int]]:
    """Return the open threads of pairs that could not open them any more."""
    threads = Thread.objects.filter(
        simulation=simulation, closed_seq__isnull=True, low__isnull=False, high__isnull=False
    ).values_list("pk", "root_seq", "low", "high")
    return [
        (root, seq, low, high)
        for root, seq, low, high in threads.order_by("root_seq")
        if low is not None and high is not None
        if old.permits(low, high) and not new.permits(low, high)
    ]


def _last_run(simulation: Simulation, foresight: Foresight) -> LastRun | None:
    """Count the posts of the last run by authors who would lose somebody's ear."""
    run = Run.objects.filter(simulation=simulation, started_at__isnull=False).last()
    if run is None:
        return None
    roots = Message.objects.filter(
        simulation=simulation, run=run, root__isnull=True, is_bot=True, visibility="public"
    ).order_by("-seq")[:ROOTS_AT_MOST]
    by_author = dict(
        Message.objects.filter(pk__in=roots.values("pk"))
        .order_by()
        .values_list("author_id")
        .annotate(n=Count("pk"))
    )
    n_posts = sum(by_author.values())
    kept = sum(n for author, n in by_author.items() if author in foresight.lost_readers)
    return LastRun(run=run.pk, n_posts=n_posts, n_kept_back=kept, is_cut=n_posts >= ROOTS_AT_MOST)
