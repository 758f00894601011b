"""What only a database can do to a driver: break, lock, answer late, change in between."""

from __future__ import annotations

import asyncio
import threading
import time
from functools import partial
from typing import TYPE_CHECKING

import pytest
from blockbuster import blockbuster_ctx
from django.db import InternalError, OperationalError, connection, connections, transaction
from django.test.utils import CaptureQueriesContext

from cohorts.models import Agent, Cohort, TopologyVersion
from cohorts.operations import add_members
from engine.core.effects import AgentChanged, TakeIn
from engine.core.errors import StoreError, TopologyMoved, Unanswered
from engine.core.records import AgentState, Invitation, InvitationKind, Status
from engine.models import (
    Channel,
    ChannelMember,
    Message,
    RosterEntry,
    RunLease,
    Simulation,
    TopologySnapshot,
)
from engine.store.database import keys, loading, session, writing
from engine.store.database.topology import load_gate, version_in_force
from tests.contract.groups import (
    at,
    closed,
    decision,
    group,
    message,
    post,
    taken_in,
    thread,
    turn,
)
from tests.contract.site import commit, run

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.core.group import Group
    from engine.core.records import AgentSpec
    from engine.store.database import DjangoStore
    from tests.contract.site import DjangoSite

pytestmark = pytest.mark.django_db(transaction=True)


def in_thread(work: Callable[[], object]) -> threading.Thread:
    """Start the work on a thread that closes its connection at the end."""

    def whole() -> None:
        try:
            work()
        finally:
            connections.close_all()

    thread = threading.Thread(target=whole)
    thread.start()
    return thread


def failing_once(trouble: Exception, *, after: bool) -> Callable[..., None]:
    """Return a `Writer.write` that fails once, before or after it has stored the group."""
    write, failures = writing.Writer.write, [trouble]

    def replaced(writer: writing.Writer, group: Group) -> None:
        if failures and not after:
            raise failures.pop()
        write(writer, group)
        if failures:
            raise failures.pop()

    return replaced


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_commit_stores_once_when_the_answer_is_lost(
    django_site: DjangoSite, monkeypatch: pytest.MonkeyPatch, *, after: bool
) -> None:
    store = django_site.open_store()
    lost = OperationalError("database is locked")
    monkeypatch.setattr(writing.Writer, "write", failing_once(lost, after=after))
    commit(store, group(1, messages=[post(1)]))
    commit(store, group(2, messages=[post(2)]))
    assert list(Message.objects.order_by("seq").values_list("seq", flat=True)) == [1, 2]
    assert django_site.commit_no() == 2


def test_commit_outlives_a_connection_that_the_server_ends(django_site: DjangoSite) -> None:
    store = django_site.open_store()
    commit(store, group(1, messages=[post(1)]))
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            assert cursor.fetchone()[0] >= 1
    commit(store, group(2, messages=[message(2, author=2, root=1, ordinal=2)]))
    assert run(store.load()).last_seq == 2


def test_commit_gives_up_when_patience_is_over(
    django_site: DjangoSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = django_site.open_store()
    lost = OperationalError("database is locked")
    monkeypatch.setattr(writing.Writer, "write", failing_once(lost, after=False))
    monkeypatch.setattr(store._patience, "_seconds", 0.0)
    with pytest.raises(Unanswered, match="The database did not answer for 0 s"):
        commit(store, group(1))
    commit(store, group(1))


def test_commit_fails_at_once_on_what_time_does_not_cure(
    django_site: DjangoSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = django_site.open_store()
    broken = InternalError("the index is corrupt")
    monkeypatch.setattr(writing.Writer, "write", failing_once(broken, after=False))
    with pytest.raises(StoreError, match="the index is corrupt"):
        commit(store, group(1))


def test_lock_passes_and_a_missing_table_does_not() -> None:
    assert session.passes(OperationalError("database is locked"))
    missing = OperationalError("no such table: engine_message")
    assert session.passes(missing) == (connection.vendor == "postgresql")


def test_commit_waits_for_a_lock_that_somebody_holds(
    django_site: DjangoSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver's own session gives up soon; the group is sent again until the lock is free."""
    store = django_site.open_store()
    monkeypatch.setattr(session, "LOCK_TIMEOUT", "50ms")
    released, tried = threading.Event(), threading.Event()
    held = threading.Event()

    def try_again_later(*_: object) -> None:
        tried.set()
        released.wait(10)

    monkeypatch.setattr(session.Patience, "_pause", try_again_later)

    def hold() -> None:
        with transaction.atomic():
            RunLease.objects.select_for_update().get(pk=django_site.simulation.pk)
            held.set()
            if connection.vendor == "postgresql":
                assert tried.wait(10)
        released.set()

    holder = in_thread(hold)
    assert held.wait(10)
    commit(store, group(1, messages=[post(1)]))
    holder.join()
    assert django_site.commit_no() == 1
    assert tried.is_set() == (connection.vendor == "postgresql")


def test_topology_cannot_change_between_the_last_look_and_the_commit(
    django_site: DjangoSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change that begins after the version was read is committed after the group."""
    store = django_site.open_store()
    version = run(store.load()).gate.version
    changed = threading.Event()
    changes: list[threading.Thread] = []
    look = version_in_force

    def change() -> None:
        ChannelMember.objects.create(channel_id=2, agent_id=4)
        changed.set()

    def look_then_change() -> int:
        seen = look()
        changes.append(in_thread(change))
        assert not changed.wait(0.3)
        return seen

    monkeypatch.setattr(writing, "version_in_force", look_then_change)
    commit(store, group(1, messages=[post(1)], topology_version=version))
    changes[0].join()
    assert changed.is_set()
    monkeypatch.setattr(writing, "version_in_force", look)
    with pytest.raises(TopologyMoved):
        commit(store, group(2, messages=[post(2)], topology_version=version))


def test_topology_without_its_row_is_version_zero(django_site: DjangoSite) -> None:
    store = django_site.open_store()
    TopologyVersion.objects.all().delete()
    commit(store, group(1, messages=[post(1)], topology_version=0))
    with pytest.raises(TopologyMoved):
        commit(store, group(2, messages=[post(2)], topology_version=1))


def test_commit_keeps_a_snapshot_of_the_topology_it_adopts(django_site: DjangoSite) -> None:
    cohort = Cohort.objects.create(name="alpha", created_by="Ada")
    add_members(cohort, Agent.objects.filter(pk__in=(3, 1)), who="Ada")
    store = django_site.open_store()
    gate = load_gate(django_site.simulation.pk, "open")
    commit(store, group(1, adopted=gate), group(2, adopted=gate))
    row = TopologySnapshot.objects.get()
    assert (row.version, row.at, row.policy, row.verdict) == (
        gate.version,
        at(1),
        "open",
        "in_force",
    )
    assert row.cohorts == {"alpha": ["lab-1", "lab-3"]}


def test_load_is_of_one_moment(django_site: DjangoSite, monkeypatch: pytest.MonkeyPatch) -> None:
    store = django_site.open_store()
    commit(store, group(1, messages=[post(1)]))
    read_states = loading._states

    def meanwhile(simulation: int) -> object:
        in_thread(partial(commit, store, group(2, messages=[post(2)]))).join()
        return read_states(simulation)

    monkeypatch.setattr(loading, "_states", meanwhile)
    loaded = loading.load(django_site.simulation.pk, "open")
    assert (loaded.commit_no, loaded.last_seq, len(loaded.roots)) == (1, 1, 1)
    assert django_site.commit_no() == 2


def talks(number: int, roots: range) -> Group:
    """Return a group with a closed talk and an open invitation under every root."""
    made = group(number, turns=[turn(number)])
    for root in roots:
        ends = closed(thread(root, 2, 1), root + 1)
        made.messages += [post(root), message(root + 1, author=2, root=root, ordinal=2)]
        made.threads.append(ends)
        made.decisions.append(decision(ends))
        made.invitations.append(
            Invitation(
                agent=3, message=root, root=root, kind=InvitationKind.MENTION, by_person=False
            )
        )
    return made


def test_load_asks_a_fixed_number_of_queries(django_site: DjangoSite) -> None:
    store = django_site.open_store()
    commit(store, talks(1, range(1, 5, 2)))
    with CaptureQueriesContext(connection) as few:
        loading.load(django_site.simulation.pk, "open")
    commit(store, talks(2, range(5, 405, 2)))
    with CaptureQueriesContext(connection) as many:
        loaded = loading.load(django_site.simulation.pk, "open")
    assert len(loaded.roots) == 202
    assert len(many) == len(few) <= 28


def test_commit_asks_one_statement_per_table(django_site: DjangoSite) -> None:
    token = django_site.open_store()._writer._token
    writer = writing.Writer(
        simulation=django_site.simulation.pk, run=django_site.run.pk, token=token
    )
    with CaptureQueriesContext(connection) as few:
        writer.write(talks(1, range(1, 3, 2)))
    with CaptureQueriesContext(connection) as many:
        writer.write(talks(2, range(11, 31, 2)))
    assert len(many) == len(few) <= 10


def test_keys_are_forgotten_when_they_are_too_many(
    django_site: DjangoSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys, "MOST_KEYS", 2)
    store = django_site.open_store()
    commit(store, *(group(seq, messages=[post(seq)]) for seq in (1, 2, 3)))
    assert set(store._writer._keys._roots) == {3}
    commit(store, group(4, messages=[message(4, author=2, root=1, ordinal=2)]))
    assert run(store.load()).last_seq == 4


def test_commit_never_blocks_the_loop(django_site: DjangoSite) -> None:
    """Nothing that blocks runs on the loop, and a heartbeat beside big groups goes on."""
    store = django_site.open_store()
    gaps: list[float] = []

    async def heartbeat() -> None:
        while True:
            before = time.monotonic()
            await asyncio.sleep(0.001)
            gaps.append(time.monotonic() - before)

    async def work() -> None:
        heart = asyncio.create_task(heartbeat())
        for number in range(1, 6):
            await store.commit(talks(number, range(200 * number, 200 * number + 100, 2)))
            await store.load()
            await store.read_mail()
        heart.cancel()

    with blockbuster_ctx():
        run(work())
    assert len(gaps) > 20
    assert sorted(gaps)[len(gaps) // 2] < 0.05


def test_courtesy_waits_only_after_others_wrote(
    django_site: DjangoSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = django_site.open_store()
    naps: list[float] = []
    monkeypatch.setattr("engine.store.database.session.time.sleep", naps.append)
    commit(store, group(1), group(2), group(3))
    assert naps == []
    django_site.write_message(channel=1, text="Hello")
    commit(store, group(4), group(5))
    assert naps == ([0.005] if connection.vendor == "sqlite" else [])


def taken_ins(store: DjangoStore) -> list[tuple[int, int | None]]:
    """Return (message, root) of the people's messages in the mail."""
    mail = run(store.read_mail())
    return [(effect.message_id, effect.root) for effect in mail if isinstance(effect, TakeIn)]


def test_mail_holds_back_an_answer_until_its_root_is_taken_in(django_site: DjangoSite) -> None:
    store = django_site.open_store()
    root = django_site.write_message(channel=1, text="A question")
    answer = Message.objects.create(
        simulation=django_site.simulation,
        channel_id=1,
        root_id=root,
        person="Ada",
        text="More on it",
        visibility="public",
        written_at=at(1),
    )
    assert taken_ins(store) == [(root, None)]
    assert store.beat().has_mail
    commit(store, group(1, taken_in=[taken_in(root, 1)]))
    assert taken_ins(store) == [(answer.pk, 1)]


def test_chosen_roster_bounds_who_is_known(django_site: DjangoSite) -> None:
    store = django_site.open_store()
    commit(store, group(1, states=[(4, AgentState())]))
    for number in (1, 2):
        RosterEntry.objects.create(simulation=django_site.simulation, agent_id=number)
    django_site.simulation.roster_chosen = True
    django_site.simulation.save()
    loaded = run(store.load())
    assert [(spec.id, spec.status) for spec in loaded.agents] == [
        (1, Status.ACTIVE),
        (2, Status.ACTIVE),
        (4, Status.RETIRED),
    ]


def changed_specs(store: DjangoStore) -> list[AgentSpec | None]:
    """Return what the mail says of agents, and see that it says nothing else."""
    mail = run(store.read_mail())
    changes = [effect for effect in mail if isinstance(effect, AgentChanged)]
    assert len(changes) == len(mail)
    return [change.spec for change in changes]


def test_mail_tells_of_who_left_the_roster_and_who_is_gone(django_site: DjangoSite) -> None:
    entry = RosterEntry.objects.create(simulation=django_site.simulation, agent_id=4)
    django_site.simulation.roster_chosen = True
    django_site.simulation.save()
    store = django_site.open_store()
    entry.delete()
    assert [spec and spec.status for spec in changed_specs(store)] == [Status.RETIRED] * 2
    ChannelMember.objects.all().delete()
    Agent.objects.filter(pk=4).delete()
    assert changed_specs(store) == [None, None]


def test_channel_rows_of_other_simulations_are_not_loaded(django_site: DjangoSite) -> None:
    other = Simulation.objects.create(pk=2, name="other")
    Channel.objects.create(pk=3, simulation=other, name="elsewhere")
    assert [one.id for one in run(django_site.open_store().load()).channels] == [1, 2]
