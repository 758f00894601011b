"""Derives from the tables what a world is built from, and what people left in the mail."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.core.config import WINDOW
from engine.core.effects import (
    AgentChanged,
    ChannelChanged,
    Effect,
    MemoryChanged,
    Reviewed,
    TakeIn,
    Verdict,
)
from engine.core.records import (
    AgentState,
    InvitationState,
    Memory,
    Outcome,
    PairHistory,
    Root,
    Status,
    Talk,
)
from engine.ports.store import Loaded
from engine.store.memory.tables import NoteKind, Tables

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime


def loaded(tables: Tables) -> Loaded:
    """Return the snapshot, every part in ascending order of its key."""
    return Loaded(
        commit_no=tables.commit_no,
        last_seq=max(tables.messages, default=0),
        last_turn=max(_turn_numbers(tables), default=0),
        gate=tables.gate,
        agents=tuple(tables.agents[agent] for agent in sorted(tables.agents)),
        channels=tuple(tables.channels[channel] for channel in sorted(tables.channels)),
        states=tuple(sorted(tables.states.items(), key=lambda item: item[0])),
        subscriptions=tuple(sorted(tables.subscriptions)),
        roots=tuple(root_of(tables, seq) for seq in sorted(_needed_roots(tables))),
        threads=tuple(t for _, t in sorted(tables.threads.items()) if t.closed_seq is None),
        invitations=tuple(
            invitation
            for _, invitation in sorted(tables.invitations.items())
            if invitation.state is InvitationState.PENDING
        ),
        pairs=_pairs(tables),
        memories=tuple(sorted(tables.memories.values(), key=_segment_order)),
        unreviewed=_unreviewed(tables),
        untold=tuple(_untold(tables)),
        wrote_at=tables.wrote_at,
        calls=_recent_calls(tables),
    )


def root_of(tables: Tables, seq: int) -> Root:
    """Return a root as the world knows it."""
    row = tables.messages[seq]
    return Root(
        seq=seq,
        channel=row.message.channel,
        author=row.message.author,
        is_bot=row.message.is_bot,
        addressed=row.addressed,
        at=row.message.at,
        n_messages=tables.heights[seq],
        answered_by=tables.answerers.get(seq, ()),
        closed=seq in tables.threads and tables.threads[seq].closed_seq is not None,
    )


def _turn_numbers(tables: Tables) -> Iterator[int]:
    yield from tables.turns
    yield from (state.last_selected for state in tables.states.values())


def _needed_roots(tables: Tables) -> set[int]:
    active = [spec.id for spec in tables.agents.values() if spec.status is Status.ACTIVE]
    cursors = [tables.states.get(agent, AgentState()).cursor for agent in active]
    lowest = min(cursors, default=max(tables.messages, default=0))
    needed = {seq for seq, place in tables.places if place == 1 and seq > lowest}
    needed.update(seq for state in tables.states.values() for seq in state.bank)
    needed.update(
        row.root for row in tables.invitations.values() if row.state is InvitationState.PENDING
    )
    needed.update(root for root, thread in tables.threads.items() if thread.closed_seq is None)
    return needed


def _segment_order(memory: Memory) -> tuple[int, int]:
    return (memory.agent, memory.channel or 0)


def _pairs(tables: Tables) -> tuple[tuple[tuple[int, int], PairHistory], ...]:
    pairs: dict[tuple[int, int], PairHistory] = {}
    for decision in sorted(tables.decisions.values(), key=lambda d: (d.seq, d.thread.root)):
        pair = decision.thread.pair
        if pair is None:
            continue
        n_barren = pairs[pair].n_barren if pair in pairs else 0
        pairs[pair] = PairHistory(
            closed_seq=decision.seq,
            closed_at=decision.at,
            n_barren=0 if decision.outcome is Outcome.PROPOSAL else n_barren + 1,
        )
    return tuple(sorted(pairs.items(), key=lambda item: item[0]))


def _unreviewed(tables: Tables) -> tuple[tuple[int, int, int], ...]:
    return tuple(
        sorted(
            (agent, root, cycle)
            for (root, cycle), row in tables.proposals.items()
            if row.verdict is None
            for agent in row.proposal.agents
        )
    )


def _untold(tables: Tables) -> Iterator[tuple[int, Talk]]:
    order = sorted(tables.decisions.values(), key=lambda d: (d.seq, d.thread.root))
    rows = [(side.agent, decision) for decision in order for side in decision.thread.sides]
    for agent, decision in sorted(rows, key=lambda row: row[0]):
        channel = tables.segment(decision.thread.channel)
        memory = tables.memories.get((agent, channel))
        if decision.seq > (memory.upto_seq if memory else 0):
            root = decision.thread.root
            yield agent, Talk(closed_seq=decision.seq, root=root, channel=channel)


def _recent_calls(tables: Tables) -> tuple[tuple[int, datetime], ...]:
    if tables.wrote_at is None:
        return ()
    since = tables.wrote_at - WINDOW
    recent = [(call.agent, call.started_at) for call in tables.calls.values()]
    return tuple(sorted((row for row in recent if row[1] >= since), key=lambda row: row[::-1]))


def mail(tables: Tables) -> Iterator[Effect]:
    """Yield the notes by id, then the people's messages by id."""
    for note_id, note in sorted(tables.inbox.items(), key=lambda item: item[0]):
        yield _note_effect(tables, note_id, note.kind, note.key)
    for message_id, waiting in sorted(tables.waiting.items(), key=lambda item: item[0]):
        root = waiting.root
        yield TakeIn(
            message_id=message_id,
            channel=waiting.channel,
            root=root,
            text=waiting.text,
            written_at=waiting.written_at,
            known_root=None if root is None else root_of(tables, root),
            known_thread=None if root is None else tables.threads.get(root),
        )


def _note_effect(tables: Tables, note: int, kind: NoteKind, key: tuple[int, int | None]) -> Effect:
    match kind:
        case NoteKind.AGENT:
            return AgentChanged(note=note, agent=key[0], spec=tables.agents.get(key[0]))
        case NoteKind.CHANNEL:
            return ChannelChanged(note=note, channel=tables.channels[key[0]])
        case NoteKind.MEMORY:
            memory = tables.memories[key]
            return MemoryChanged(
                note=note,
                agent=memory.agent,
                channel=memory.channel,
                version=memory.version,
                upto_seq=memory.upto_seq,
            )
        case NoteKind.REVIEW:
            return _review_effect(tables, note, root=key[0], cycle=key[1] or 0)


def _review_effect(tables: Tables, note: int, *, root: int, cycle: int) -> Reviewed:
    row = tables.proposals[root, cycle]
    return Reviewed(
        note=note,
        root=root,
        cycle=cycle,
        verdict=row.verdict or Verdict.DECLINED,
        guidance=row.note,
        known_root=root_of(tables, root),
        known_thread=tables.threads[root],
    )
