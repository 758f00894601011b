"""What people did while the run was live: messages, reviews, edits. Never gated, never refused
for a cap; where a person asks for the impossible, the refusal is recorded."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.core.door import threads
from engine.core.door.messages import invite, settle_invitation
from engine.core.effects import (
    AgentChanged,
    ChannelChanged,
    Committed,
    MemoryChanged,
    Rejected,
    Result,
    Reviewed,
    TakeIn,
    Verdict,
)
from engine.core.group import RefusedRevision, TakenIn
from engine.core.mentions import find_mentions
from engine.core.participation import may_deal, opposite, owes
from engine.core.records import (
    AgentSpec,
    AgentState,
    InvitationKind,
    InvitationState,
    Memory,
    Outcome,
    Root,
    Status,
    Thread,
    ThreadState,
)

if TYPE_CHECKING:
    from engine.core.draft import Draft


def take_in(draft: Draft, effect: TakeIn) -> Result:
    """Give a person's message its place, and call whom it calls."""
    if draft.channels.get(effect.channel) is None:
        return Rejected(reason="unknown_channel")
    mentioned = find_mentions(effect.text, draft.handles)
    if effect.root is None:
        return _take_in_root(draft, effect, mentioned)
    root = draft.roots.get(effect.root) or effect.known_root
    if root is None:
        return Rejected(reason="root_gone")
    if _closed_since_read(draft, effect):
        return Rejected(reason="read_again")
    return _take_in_answer(draft, effect, root, mentioned)


def _closed_since_read(draft: Draft, effect: TakeIn) -> bool:
    """Tell whether the message's thread was open when it was read and is known no more.

    The message then keeps waiting, and is read again beside the thread as it was closed.
    """
    known = effect.known_thread
    return (
        known is not None
        and known.state is not ThreadState.CLOSED
        and draft.threads.get(known.root) is None
        and known.root not in draft.changed_threads
    )


def _take_in_root(draft: Draft, effect: TakeIn, mentioned: tuple[int, ...]) -> Result:
    seq = draft.next_seq()
    addressed = mentioned[0] if mentioned else None
    root = Root(
        seq=seq,
        channel=effect.channel,
        author=None,
        is_bot=False,
        addressed=addressed,
        at=draft.now,
    )
    draft.roots[seq] = root
    draft.concern.roots.append(root)
    _place(draft, effect, seq=seq, ordinal=1, addressed=addressed)
    if addressed is not None:
        invite(draft, addressed, seq, root=seq, kind=InvitationKind.MENTION, by_person=True)
    return Committed(seq=seq)


def _take_in_answer(draft: Draft, effect: TakeIn, root: Root, mentioned: tuple[int, ...]) -> Result:
    seq, ordinal = draft.next_seq(), root.n_messages + 1
    root = replace(root, n_messages=ordinal)
    draft.roots[root.seq] = root
    _place(draft, effect, seq=seq, ordinal=ordinal, addressed=mentioned[0] if mentioned else None)
    thread = draft.threads.get(root.seq)
    if thread is not None:
        _call_sides(draft, thread, mentioned, ordinal=ordinal)
        parties = {side.agent for side in thread.sides}
    else:
        parties = _call_closed(draft, effect, root, mentioned, seq=seq, ordinal=ordinal)
    for agent in mentioned:
        if agent not in parties:
            _call_outsider(draft, root, thread, agent, seq=seq)
    return Committed(seq=seq)


def _place(draft: Draft, effect: TakeIn, *, seq: int, ordinal: int, addressed: int | None) -> None:
    draft.group.taken_in.append(
        TakenIn(
            message_id=effect.message_id,
            seq=seq,
            root=effect.root,
            ordinal=ordinal,
            committed_at=draft.now,
            addressed=addressed,
        )
    )


def _call_sides(draft: Draft, thread: Thread, mentioned: tuple[int, ...], *, ordinal: int) -> None:
    """Let a person's word in an open thread call the sides it names, or whoever's turn it is."""
    called = replace(thread, owed_since=draft.now)
    if not mentioned:
        called = replace(called, asked=ordinal)
    for side in thread.sides:
        if side.agent in mentioned:
            called = threads.with_side(called, replace(side, called=ordinal))
    threads.enter(draft, called)


def _call_closed(
    draft: Draft,
    effect: TakeIn,
    root: Root,
    mentioned: tuple[int, ...],
    *,
    seq: int,
    ordinal: int,
) -> set[int]:
    """Call those of a root without an open thread: its author, or the sides of a closed one.

    Returns the agents that need no further call. A closed thread reopens only for a side that
    is mentioned.
    """
    closed = draft.changed_threads.get(root.seq) or effect.known_thread
    if closed is not None and closed.state is ThreadState.CLOSED:
        sides = {side.agent for side in closed.sides}
        named = [agent for agent in mentioned if agent in sides]
        if named:
            called = named[0] if len(named) == 1 else None
            reason = threads.reopen(draft, closed, caller="", called=called, at=ordinal)
            if reason:
                for agent in named:
                    _refuse_call(draft, agent, root, seq=seq, reason=reason)
        return sides
    if root.author is not None and (not mentioned or root.author in mentioned):
        invite(draft, root.author, seq, root=root.seq, kind=InvitationKind.ANSWER, by_person=True)
        return {root.author}
    return set()


def _refuse_call(draft: Draft, agent: int, root: Root, *, seq: int, reason: str) -> None:
    invite(draft, agent, seq, root=root.seq, kind=InvitationKind.REFERENCE, by_person=True)
    settle_invitation(draft, agent, seq, InvitationState.REFUSED, reason)


def _call_outsider(
    draft: Draft, root: Root, thread: Thread | None, agent: int, *, seq: int
) -> None:
    """Invite an agent that is no side: to answer while a place is free to it, else by its own
    root."""
    other = opposite(root, agent)
    n_places = 1 if root.author is not None else 2
    taken = root.closed or len(root.answered_by) >= n_places
    free = not taken and root.addressed in {None, agent}
    two_party = thread is not None and thread.partner is not None
    permitted = other is None or may_deal(draft, agent, other, root.channel)
    answers = free and permitted and not two_party
    kind = InvitationKind.MENTION if answers else InvitationKind.REFERENCE
    invite(draft, agent, seq, root=root.seq, kind=kind, by_person=True)


def reviewed(draft: Draft, effect: Reviewed) -> Result:
    """Apply a person's verdict on a proposal; a revision begins a new cycle."""
    draft.group.notes.append(effect.note)
    for side in effect.known_thread.sides:
        desk = draft.desk(side.agent)
        unreviewed = tuple(one for one in desk.unreviewed if one != (effect.root, effect.cycle))
        draft.desks[side.agent] = replace(desk, unreviewed=unreviewed)
        draft.concern.agents[side.agent] = None
    known = draft.changed_threads.get(effect.root) or effect.known_thread
    if effect.verdict is not Verdict.REVISED or known.cycle != effect.cycle:
        return Committed()
    if draft.threads.get(effect.root) is not None:
        return Committed()
    root = draft.roots.get(effect.root) or effect.known_root
    draft.roots[root.seq] = root
    reason = threads.reopen(
        draft,
        known,
        caller=effect.guidance,
        called=known.summary_by,
        at=root.n_messages,
    )
    if not reason:
        return Committed()
    draft.group.refused_revisions.append(
        RefusedRevision(root=effect.root, cycle=effect.cycle, reason=reason)
    )
    return Rejected(reason=reason)


def agent_changed(draft: Draft, effect: AgentChanged) -> Result:
    """Replace an agent whole; one that comes, or comes back, starts at the newest `seq`."""
    if effect.note is not None:
        draft.group.notes.append(effect.note)
    old = draft.agents.get(effect.agent)
    spec = effect.spec
    if spec is None:
        if old is None:
            return Committed()
        spec = replace(old, status=Status.RETIRED)
    draft.set_agent(spec)
    _go_or_come_back(draft, spec)
    if spec.status is Status.RETIRED:
        _close_owed(draft, spec.id)
    draft.concern.agents[spec.id] = None
    draft.concern.seats[spec.id] = None
    for root in draft.desk(spec.id).threads:
        for side in draft.threads[root].sides:
            draft.concern.agents[side.agent] = None
    return Committed()


def _go_or_come_back(draft: Draft, spec: AgentSpec) -> None:
    """Let nobody catch up on what was said while it was away.

    An agent without a state is new: it was away until now, and queues behind those who wait.
    """
    newcomer = AgentState(last_selected=draft.n_selections, away=True)
    state = draft.states.get(spec.id, newcomer)
    if spec.status is not Status.ACTIVE:
        draft.set_state(spec.id, replace(state, away=True))
    elif state.away:
        draft.set_state(spec.id, replace(state, cursor=draft.last_seq, away=False))


def _close_owed(draft: Draft, agent: int) -> None:
    for root in draft.desk(agent).threads:
        thread = draft.threads[root]
        if owes(thread, agent):
            threads.close(draft, thread, Outcome.LOST)


def channel_changed(draft: Draft, effect: ChannelChanged) -> Result:
    """Replace a channel, or add a new one."""
    draft.group.notes.append(effect.note)
    if effect.channel is None:
        return Committed()
    draft.channels[effect.channel.id] = effect.channel
    draft.concern.everybody = True
    return Committed()


def memory_changed(draft: Draft, effect: MemoryChanged) -> Result:
    """Take over the version of a memory that a person edited."""
    draft.group.notes.append(effect.note)
    draft.memories[effect.agent, effect.channel] = Memory(
        agent=effect.agent,
        channel=effect.channel,
        version=effect.version,
        upto_seq=effect.upto_seq,
    )
    return Committed()
