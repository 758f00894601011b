"""Reads what people and other processes left: notes in the inbox, messages that wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.core.effects import (
    AgentChanged,
    ChannelChanged,
    Effect,
    MemoryChanged,
    Reviewed,
    TakeIn,
    Verdict,
)
from engine.models import Inbox, Message, Proposal
from engine.models import Thread as ThreadRow
from engine.store.database.loading import channel_records
from engine.store.database.reading import agent_specs, memory_versions, roots_named
from engine.store.database.rows import thread_record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.core.records import Root, Thread

#: How many notes, and how many messages, one look at the mail takes.
MOST_MAIL = 200


def read_mail(simulation: int) -> tuple[Effect, ...]:
    """Return the notes by number, then the people's messages by number.

    An answer to a root that waits itself stays where it is until the root has its `seq`.
    """
    notes = list(Inbox.objects.filter(simulation_id=simulation).order_by("pk")[:MOST_MAIL])
    return (*_note_effects(simulation, notes), *_take_ins(simulation))


def _note_effects(simulation: int, notes: list[Inbox]) -> Iterator[Effect]:
    """Yield what each note is about as it is now: a note says that, not what, has changed."""
    keys = {kind: {note.key for note in notes if note.kind == kind} for kind in Inbox.Kind}
    agents = {spec.id: spec for spec in agent_specs(simulation, keys[Inbox.Kind.AGENT])}
    channels = {row.id: row for row in channel_records(simulation, keys[Inbox.Kind.CHANNEL])}
    reviews = _reviews(simulation, keys[Inbox.Kind.REVIEW])
    for note in notes:
        match Inbox.Kind(note.kind):
            case Inbox.Kind.AGENT:
                yield AgentChanged(note=note.pk, agent=note.key, spec=agents.get(note.key))
            case Inbox.Kind.CHANNEL:
                yield ChannelChanged(note=note.pk, channel=channels.get(note.key))
            case Inbox.Kind.MEMORY:
                yield _memory_change(simulation, note)
            case Inbox.Kind.REVIEW:
                yield _review_effect(note, *reviews[note.key])


def _memory_change(simulation: int, note: Inbox) -> MemoryChanged:
    newest = memory_versions(simulation, note.key, note.channel_id).latest("version")
    return MemoryChanged(
        note=note.pk,
        agent=note.key,
        channel=note.channel_id,
        version=newest.version,
        upto_seq=newest.upto_seq,
    )


def _reviews(simulation: int, keys: set[int]) -> dict[int, tuple[Proposal, Root]]:
    """Return the reviewed proposals, with their threads, and their roots."""
    proposals = Proposal.objects.filter(pk__in=keys).select_related("thread")
    by_key = {row.pk: row for row in proposals}
    seqs = (row.thread.root_seq for row in by_key.values())
    roots = {root.seq: root for root in roots_named(simulation, seqs)}
    return {key: (row, roots[row.thread.root_seq]) for key, row in by_key.items()}


def _review_effect(note: Inbox, proposal: Proposal, root: Root) -> Reviewed:
    return Reviewed(
        note=note.pk,
        root=root.seq,
        cycle=proposal.cycle,
        verdict=Verdict(proposal.state),
        guidance=proposal.note,
        known_root=root,
        known_thread=thread_record(proposal.thread),
    )


def _take_ins(simulation: int) -> Iterator[TakeIn]:
    waiting = Message.objects.filter(simulation_id=simulation, seq__isnull=True)
    ready = waiting.filter(root__isnull=True) | waiting.filter(root__seq__isnull=False)
    columns = ("pk", "channel_id", "root__seq", "text", "written_at")
    rows = list(ready.order_by("pk").values_list(*columns)[:MOST_MAIL])
    seqs = {root for _, _, root, _, _ in rows if root is not None}
    roots = {root.seq: root for root in roots_named(simulation, seqs)}
    threads = {thread.root: thread for thread in _threads(simulation, seqs)}
    for key, channel, root, text, written_at in rows:
        yield TakeIn(
            message_id=key,
            channel=channel,
            root=root,
            text=text,
            written_at=written_at,
            known_root=None if root is None else roots[root],
            known_thread=None if root is None else threads.get(root),
        )


def _threads(simulation: int, roots: set[int]) -> Iterator[Thread]:
    rows = ThreadRow.objects.filter(root__simulation_id=simulation, root__seq__in=roots)
    yield from map(thread_record, rows)
