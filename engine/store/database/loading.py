"""Reads what a world is built from, in one snapshot and a fixed number of queries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db.models import Max

from engine.core.config import WINDOW
from engine.core.records import (
    AgentSpec,
    AgentState,
    Channel,
    Invitation,
    InvitationKind,
    InvitationState,
    Memory,
    Root,
    Status,
    Thread,
    Visibility,
)
from engine.models import (
    AgentState as StateRow,
)
from engine.models import (
    Channel as ChannelRow,
)
from engine.models import (
    Invitation as InvitationRow,
)
from engine.models import (
    LlmCall,
    Message,
    Proposal,
    RunLease,
    Subscription,
    Turn,
)
from engine.models import (
    Memory as MemoryRow,
)
from engine.models import (
    Thread as ThreadRow,
)
from engine.ports.store import Loaded
from engine.store.database.conclusions import pair_histories, untold_talks
from engine.store.database.reading import agent_specs, roots_above, roots_named
from engine.store.database.rows import state_record, thread_record
from engine.store.database.session import snapshot
from engine.store.database.topology import load_gate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime


def load(simulation: int, policy: str) -> Loaded:
    """Return the simulation as it is stored, all of it as of one moment."""
    with snapshot():
        return _load(simulation, policy)


def _load(simulation: int, policy: str) -> Loaded:
    lease = RunLease.objects.get(simulation_id=simulation)
    agents = tuple(agent_specs(simulation))
    states = _states(simulation)
    threads = tuple(open_threads(simulation))
    invitations = tuple(_invitations(simulation))
    memories = tuple(_memories(simulation))
    channels = tuple(channel_records(simulation))
    last_seq = _highest(Message.objects.filter(simulation_id=simulation).aggregate(n=Max("seq")))
    return Loaded(
        commit_no=lease.commit_no,
        last_seq=last_seq,
        last_turn=_last_turn(simulation, states),
        gate=load_gate(simulation, policy),
        agents=agents,
        channels=channels,
        states=tuple(sorted(states.items())),
        subscriptions=tuple(_subscriptions(simulation)),
        roots=_roots(simulation, agents, states, threads, invitations, last_seq),
        threads=threads,
        invitations=invitations,
        pairs=tuple(pair_histories(simulation)),
        memories=memories,
        unreviewed=_unreviewed(simulation),
        untold=tuple(untold_talks(simulation)),
        wrote_at=lease.wrote_at,
        calls=_recent_calls(simulation, lease.wrote_at),
    )


def open_threads(simulation: int) -> Iterator[Thread]:
    """Yield the open threads by root."""
    rows = ThreadRow.objects.filter(simulation_id=simulation, closed_seq__isnull=True)
    yield from map(thread_record, rows.order_by("root_seq"))


def channel_records(simulation: int, ids: Iterable[int] | None = None) -> Iterator[Channel]:
    """Yield the channels of a simulation, or those of `ids`, by number."""
    rows = ChannelRow.objects.filter(simulation_id=simulation).order_by("pk")
    if ids is not None:
        rows = rows.filter(pk__in=ids)
    for row in rows:
        yield Channel(
            id=row.pk, name=row.name, topic=row.topic, visibility=Visibility(row.visibility)
        )


def _highest(found: dict[str, int | None]) -> int:
    return found["n"] or 0


def _last_turn(simulation: int, states: dict[int, AgentState]) -> int:
    stored = _highest(Turn.objects.filter(simulation_id=simulation).aggregate(n=Max("number")))
    return max(stored, *(state.last_selected for state in states.values()), 0)


def _states(simulation: int) -> dict[int, AgentState]:
    rows = StateRow.objects.filter(simulation_id=simulation).order_by("agent_id")
    return {row.agent_id: state_record(row) for row in rows}


def _subscriptions(simulation: int) -> Iterator[tuple[int, int]]:
    rows = Subscription.objects.filter(channel__simulation_id=simulation)
    yield from rows.order_by("agent_id", "channel_id").values_list("agent_id", "channel_id")


def _invitations(simulation: int) -> Iterator[Invitation]:
    rows = InvitationRow.objects.filter(simulation_id=simulation, state="pending")
    columns = ("agent_id", "message__seq", "root__seq", "kind", "by_person", "reason")
    for agent, message, root, kind, by_person, reason in rows.order_by(
        "agent_id", "message__seq"
    ).values_list(*columns):
        yield Invitation(
            agent=agent,
            message=message,
            root=root,
            kind=InvitationKind(kind),
            by_person=by_person,
            state=InvitationState.PENDING,
            reason=reason,
        )


def _memories(simulation: int) -> Iterator[Memory]:
    heads = (
        MemoryRow.objects.filter(simulation_id=simulation)
        .values_list("agent_id", "channel_id")
        .annotate(newest=Max("version"), upto=Max("upto_seq"))
    )
    ordered = sorted(heads, key=lambda row: (row[0], row[1] or 0))
    for agent, channel, version, upto_seq in ordered:
        yield Memory(agent=agent, channel=channel, version=version, upto_seq=upto_seq)


def _unreviewed(simulation: int) -> tuple[tuple[int, int, int], ...]:
    pending = Proposal.objects.filter(simulation_id=simulation, state="pending")
    columns = ("thread__root_seq", "cycle", "proposer_id", "confirmer_id")
    return tuple(
        sorted(
            (agent, root, cycle)
            for root, cycle, *agents in pending.values_list(*columns)
            for agent in agents
        )
    )


def _recent_calls(simulation: int, until: datetime | None) -> tuple[tuple[int, datetime], ...]:
    if until is None:
        return ()
    recent = LlmCall.objects.filter(run__simulation_id=simulation, started_at__gte=until - WINDOW)
    return tuple(recent.order_by("started_at", "agent_id").values_list("agent_id", "started_at"))


def _roots(
    simulation: int,
    agents: tuple[AgentSpec, ...],
    states: dict[int, AgentState],
    threads: tuple[Thread, ...],
    invitations: tuple[Invitation, ...],
    last_seq: int,
) -> tuple[Root, ...]:
    """Return the roots that somebody may still read, and those that something names."""
    cursors = [
        states.get(spec.id, AgentState()).cursor for spec in agents if spec.status is Status.ACTIVE
    ]
    lowest = min(cursors, default=last_seq)
    named = {seq for state in states.values() for seq in state.bank}
    named.update(thread.root for thread in threads)
    named.update(invitation.root for invitation in invitations)
    older = roots_named(simulation, (seq for seq in named if seq <= lowest))
    return (*older, *roots_above(simulation, lowest))
