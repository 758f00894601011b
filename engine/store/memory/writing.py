"""Stores one group in the tables: all of it, or nothing and the error that a database raises."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.core.errors import Fenced, RowRefused, TopologyMoved
from engine.core.group import Decision, Group, NewMemory, NewMessage, NewProposal, TakenIn
from engine.ports.store import StoredMessage
from engine.store.memory.booking import pay
from engine.store.memory.tables import MessageRow, ProposalRow, Tables, Undo
from engine.store.shape import check_shape
from engine.store.stored import stored

if TYPE_CHECKING:
    from engine.core.records import Thread


def write(tables: Tables, group: Group, *, token: int) -> None:
    """Store the group; raise `Fenced`, `TopologyMoved` or `RowRefused` and leave nothing.

    A group whose number is the last one stored was stored before: sending it again is harmless.
    """
    if tables.token != token or group.number not in (tables.commit_no, tables.commit_no + 1):
        raise Fenced(f"commit {group.number} by token {token}: the lease has moved on")
    if group.number == tables.commit_no:
        return
    check_shape(group)
    undo = Undo()
    try:
        _write_rows(tables, group, undo)
        _check_topology(tables, group)
    except BaseException:
        undo.take_back()
        raise
    tables.commit_no = group.number
    tables.wrote_at = group.at
    for call in group.calls:
        pay(tables, call)


def _check_topology(tables: Tables, group: Group) -> None:
    if group.topology_version not in (None, tables.gate.version):
        raise TopologyMoved(f"the topology is at version {tables.gate.version}")


def _write_rows(tables: Tables, group: Group, undo: Undo) -> None:
    placed: list[NewMessage | TakenIn] = [*group.messages, *group.taken_in]
    for row in sorted(placed, key=lambda row: row.seq):
        if isinstance(row, NewMessage):
            _write_message(tables, row, undo)
        else:
            _take_in(tables, row, undo)
    _write_threads(tables, group.threads, undo)
    for decision in group.decisions:
        _write_decision(tables, decision, undo)
    for proposal in group.proposals:
        _write_proposal(tables, proposal, undo)
    for refused in group.refused_revisions:
        key = (refused.root, refused.cycle)
        undo.put(tables.proposals, key, replace(tables.proposals[key], refused=refused.reason))
    for memory in group.memories:
        _write_memory(tables, memory, undo)
    _write_plain(tables, group, undo)


def _write_plain(tables: Tables, group: Group, undo: Undo) -> None:
    """Write the tables whose rows are replaced whole."""
    for invitation in group.invitations:
        _require(tables, agent=invitation.agent, root=invitation.root)
        if invitation.message not in tables.messages:
            raise RowRefused(f"an invitation names message {invitation.message}, which is unknown")
        undo.put(tables.invitations, (invitation.agent, invitation.message), invitation)
    for agent, channel in group.subscriptions:
        _require(tables, agent=agent, channel=channel)
        undo.put(tables.subscriptions, (agent, channel), None)
    for agent, state in group.states:
        _require(tables, agent=agent)
        undo.put(tables.states, agent, state)
    for turn in group.turns:
        _require(tables, agent=turn.agent)
        undo.put(tables.turns, turn.number, turn)
    for call in group.calls:
        _require(tables, agent=call.agent)
        undo.put(tables.calls, (call.turn, call.number), call)
    for note in group.notes:
        undo.drop(tables.inbox, note)
    if group.adopted is not None:
        undo.put(tables.snapshots, group.adopted.version, group.adopted)


def _require(
    tables: Tables, *, agent: int | None = None, channel: int | None = None, root: int | None = None
) -> None:
    """Refuse a row that names something unknown, as a foreign key does."""
    if agent is not None and agent not in tables.agents:
        raise RowRefused(f"agent {agent} is unknown")
    if channel is not None and channel not in tables.channels:
        raise RowRefused(f"channel {channel} is unknown")
    if root is not None and (root, 1) not in tables.places:
        raise RowRefused(f"root {root} is unknown")


def _write_message(tables: Tables, new: NewMessage, undo: Undo) -> None:
    _require(tables, agent=new.author, channel=new.channel)
    row = MessageRow(
        message=stored(new),
        addressed=new.addressed,
        answers_ordinal=new.answers_ordinal,
        turn=new.turn,
    )
    _place(tables, row, undo)


def _take_in(tables: Tables, taken: TakenIn, undo: Undo) -> None:
    waiting = tables.waiting.get(taken.message_id)
    if waiting is None:
        raise RowRefused(f"no person's message {taken.message_id} waits")
    undo.drop(tables.waiting, taken.message_id)
    message = StoredMessage(
        seq=taken.seq,
        channel=waiting.channel,
        root=taken.root,
        ordinal=taken.ordinal,
        author=None,
        person=waiting.person,
        is_bot=False,
        text=waiting.text,
        at=taken.committed_at,
    )
    _place(tables, MessageRow(message=message, addressed=taken.addressed), undo)


def _place(tables: Tables, row: MessageRow, undo: Undo) -> None:
    """Store a message: unique `seq`, unique (thread, ordinal), an existing root."""
    message = row.message
    root = message.seq if message.root is None else message.root
    if message.root is not None:
        _require(tables, root=root)
    if message.seq in tables.messages:
        raise RowRefused(f"message {message.seq} exists already")
    if (root, message.ordinal) in tables.places:
        raise RowRefused(f"place {message.ordinal} of thread {root} is taken")
    undo.put(tables.messages, message.seq, row)
    undo.put(tables.places, (root, message.ordinal), message.seq)
    undo.put(tables.heights, root, max(message.ordinal, tables.heights.get(root, 0)))
    if message.author is not None:
        undo.append(tables.written.setdefault(message.author, []), message.seq)
        _note_answerer(tables, root, message.author, undo)


def _note_answerer(tables: Tables, root: int, agent: int, undo: Undo) -> None:
    known = tables.answerers.get(root, ())
    if agent != tables.messages[root].message.author and agent not in known:
        undo.put(tables.answerers, root, (*known, agent))


def _write_threads(tables: Tables, threads: list[Thread], undo: Undo) -> None:
    """Replace the threads; then no pair may have two open ones."""
    for thread in threads:
        _require(tables, root=thread.root, channel=thread.channel)
        for side in thread.sides:
            _require(tables, agent=side.agent)
        before = tables.threads.get(thread.root)
        if before is not None and before.pair and before.closed_seq is None:
            undo.drop(tables.open_pairs, before.pair)
        undo.put(tables.threads, thread.root, thread)
    for thread in threads:
        if thread.closed_seq is None and thread.pair is not None:
            if thread.pair in tables.open_pairs:
                raise RowRefused(f"agents {thread.pair} have an open thread already")
            undo.put(tables.open_pairs, thread.pair, thread.root)


def _write_decision(tables: Tables, decision: Decision, undo: Undo) -> None:
    key = (decision.thread.root, decision.thread.cycle)
    if key in tables.decisions:
        raise RowRefused(f"thread {key[0]} has a decision for cycle {key[1]} already")
    _require(tables, root=decision.thread.root)
    undo.put(tables.decisions, key, decision)


def _write_proposal(tables: Tables, proposal: NewProposal, undo: Undo) -> None:
    key = (proposal.root, proposal.cycle)
    if key in tables.proposals:
        raise RowRefused(f"thread {key[0]} has a proposal for cycle {key[1]} already")
    _require(tables, root=proposal.root)
    if proposal.summary_seq not in tables.messages:
        raise RowRefused(f"message {proposal.summary_seq}, a summary, is unknown")
    undo.put(tables.proposals, key, ProposalRow(proposal=proposal))


def _write_memory(tables: Tables, new: NewMemory, undo: Undo) -> None:
    key = (new.memory.agent, new.memory.channel)
    _require(tables, agent=new.memory.agent, channel=new.memory.channel)
    if (*key, new.memory.version) in tables.memory_texts:
        raise RowRefused(f"the memory of agent {key[0]} has version {new.memory.version} already")
    undo.put(tables.memories, key, new.memory)
    undo.put(tables.memory_texts, (*key, new.memory.version), new.text)
