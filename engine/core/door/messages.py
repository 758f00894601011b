"""Posts and replies at the commit door: the last word on seats, pairs, caps and ordinals."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.core.days import local_day
from engine.core.door import threads
from engine.core.effects import Committed, MoveKind, Post, Rejected, Reply, Result
from engine.core.group import NewMessage, NewProposal
from engine.core.mentions import find_mentions, first_mentioned, says_nothing, strip_mentions
from engine.core.participation import (
    answer_refusal,
    has_seat,
    may_deal,
    may_post_in,
    opposite,
    owes,
    pair_refusal,
)
from engine.core.records import (
    Invitation,
    InvitationKind,
    InvitationState,
    Outcome,
    Root,
    Thread,
    ThreadState,
    Visibility,
)
from engine.core.standing import offered_channels, posts_on

if TYPE_CHECKING:
    from engine.core.draft import Draft


def post(draft: Draft, effect: Post) -> Result:
    """Enter a new root, or refuse it."""
    reason = _post_refusal(draft, effect)
    if reason:
        return Rejected(reason=reason)
    text = _cleaned(draft, effect.text, author=effect.agent, channel=effect.channel, other=None)
    if says_nothing(text):
        return Rejected(reason="nothing_left")
    addressed = first_mentioned(text, draft.handles, effect.agent)
    if addressed is not None and not draft.may_start:
        return Rejected(reason="topology_changing")
    seq = draft.next_seq()
    _add_message(draft, effect.agent, effect.channel, None, text, seq=seq, addressed=addressed)
    root = Root(
        seq=seq,
        channel=effect.channel,
        author=effect.agent,
        is_bot=True,
        addressed=addressed,
        at=draft.now,
    )
    draft.roots[seq] = root
    draft.concern.roots.append(root)
    if addressed is not None:
        draft.starts_interaction()
        invite(draft, addressed, seq, root=seq, kind=InvitationKind.MENTION, by_person=False)
    if effect.refers_to is None:
        _count_post(draft, effect)
    else:
        settle_invitation(draft, effect.agent, effect.refers_to, InvitationState.ANSWERED)
    return Committed(seq=seq)


def _post_refusal(draft: Draft, effect: Post) -> str:
    """Return why a root may not be stored, or an empty string."""
    if not draft.is_active(effect.agent):
        return "author_out"
    if draft.channels.get(effect.channel) is None:
        return "unknown_channel"
    if not may_post_in(draft, effect.agent, effect.channel):
        return "not_a_member"
    if effect.refers_to is None:
        offered = offered_channels(draft, effect.agent, draft.now, draft.config)
        if effect.channel not in {channel.id for channel in offered}:
            return "post_caps"
    if effect.tag is None:
        return ""
    if not may_deal(draft, effect.agent, effect.tag, effect.channel):
        return "not_permitted"
    refusal = pair_refusal(draft, effect.agent, effect.tag, None, draft.now, draft.rules)
    # A tagged partner whose seats are full is invited all the same: the invitation waits.
    return "" if refusal is None or refusal.reason == "partner_full" else refusal.reason


def reply(draft: Draft, effect: Reply) -> Result:
    """Enter an answer in an open thread, or one that opens a thread; or refuse it."""
    draft.claims.release(effect.agent, effect.root)
    thread = draft.threads.get(effect.root)
    root = draft.roots.get(effect.root)
    joins = thread is None or thread.side(effect.agent) is None
    if joins:
        # If this is refused, the claimed seat is free: whoever waits for it is to hear of it.
        draft.concern.seats[effect.agent] = None
    if root is None:
        return Rejected(reason="root_gone")
    if thread is None or joins:
        reason = _opening_refusal(draft, effect, root)
    else:
        reason = _answer_refusal(draft, effect, thread)
    if reason:
        return Rejected(reason=reason)
    other = opposite(root, effect.agent)
    text = _cleaned(draft, effect.text, author=effect.agent, channel=root.channel, other=other)
    if says_nothing(text):
        return Rejected(reason="nothing_left")
    names_a_third = _names_a_third(draft, text, effect.agent, other)
    if not draft.may_start and (names_a_third or (joins and other is not None)):
        return Rejected(reason="topology_changing")
    if names_a_third:
        if not draft.is_active(effect.agent):
            return Rejected(reason="author_out")
        draft.starts_interaction()
    seq = draft.next_seq()
    if thread is None or joins:
        thread = threads.open_thread(draft, root, effect.agent, seq=seq)
    _speak(draft, effect, root, thread, text, seq=seq)
    return Committed(seq=seq)


def _opening_refusal(draft: Draft, effect: Reply, root: Root) -> str:
    if not draft.is_active(effect.agent):
        return "author_out"
    refusal = answer_refusal(draft, effect.agent, root, draft.now, draft.rules)
    if refusal is not None:
        return refusal.reason
    if not has_seat(draft, draft.claims, effect.agent, draft.config):
        return "seats_full"
    return ""


def _answer_refusal(draft: Draft, effect: Reply, thread: Thread) -> str:
    """Return why an answer in an open thread may not be stored, or an empty string.

    An agent that was paused meanwhile may finish what it owes; one that is gone may not.
    """
    if draft.is_out_for_good(effect.agent):
        return "author_out"
    if thread.last_agent_ordinal > effect.answers_ordinal and thread.last_agent != effect.agent:
        return "stale"
    if not owes(thread, effect.agent):
        return "not_owed"
    if effect.move is MoveKind.ACCEPT and thread.summary_by != thread.other(effect.agent):
        return "nothing_to_accept"
    if effect.move is not MoveKind.CONTINUE and thread.partner is None:
        return "nobody_opposite"
    return ""


def _speak(draft: Draft, effect: Reply, root: Root, thread: Thread, text: str, *, seq: int) -> None:
    """Enter the message, then what its move does to the thread."""
    agent, ordinal = effect.agent, root.n_messages + 1
    _add_message(draft, agent, root.channel, root, text, seq=seq, answers=effect.answers_ordinal)
    answered_by = root.answered_by
    if agent != root.author and agent not in answered_by:
        answered_by = (*answered_by, agent)
    draft.roots[root.seq] = replace(root, n_messages=ordinal, answered_by=answered_by)
    _settle_invitations(draft, agent, root.seq)
    _drop_from_bank(draft, agent, root.seq)
    side = thread.side(agent)
    assert side is not None  # the caller has given it one
    thread = threads.with_side(
        thread,
        replace(side, viewed=max(side.viewed, effect.answers_ordinal), misses=0),
        n_agent_messages=thread.n_agent_messages + 1,
        last_agent=agent,
        last_agent_ordinal=ordinal,
        owed_since=draft.now,
        guidance="",
    )
    _conclude(draft, effect, thread, seq=seq)


def _conclude(draft: Draft, effect: Reply, thread: Thread, *, seq: int) -> None:
    """Apply the move; at the cap, and towards somebody who is gone, the system closes."""
    other = thread.other(effect.agent)
    if effect.move is MoveKind.ACCEPT and other is not None:
        threads.close(draft, thread, Outcome.PROPOSAL)
        _propose(draft, thread, proposer=other, confirmer=effect.agent)
        return
    if effect.move is MoveKind.DECLINE:
        threads.close(draft, thread, Outcome.NO_PROPOSAL)
        return
    proposes = effect.move is MoveKind.PROPOSE
    if proposes or thread.state is ThreadState.PROPOSED:
        thread = replace(
            thread,
            state=ThreadState.PROPOSED if proposes else ThreadState.OPEN,
            summary_by=effect.agent if proposes else None,
            summary_seq=seq if proposes else None,
        )
    if thread.n_agent_messages >= draft.config.thread_messages:
        threads.close(draft, thread, Outcome.TIMEOUT)
    elif other is not None and draft.is_out_for_good(other):
        threads.close(draft, thread, Outcome.LOST)
    else:
        threads.enter(draft, thread)


def _propose(draft: Draft, thread: Thread, *, proposer: int, confirmer: int) -> None:
    assert thread.summary_seq is not None  # only a summary can be accepted
    draft.group.proposals.append(
        NewProposal(
            root=thread.root,
            cycle=thread.cycle,
            agents=(proposer, confirmer),
            summary_seq=thread.summary_seq,
            at=draft.now,
        )
    )
    for agent in (proposer, confirmer):
        desk = draft.desk(agent)
        unreviewed = tuple(sorted((*desk.unreviewed, (thread.root, thread.cycle))))
        draft.desks[agent] = replace(desk, unreviewed=unreviewed)


# --- texts ---------------------------------------------------------------------------------------


def _cleaned(draft: Draft, text: str, *, author: int, channel: int, other: int | None) -> str:
    """Return the text without the names that its author may not address."""

    def keep(agent: int) -> bool:
        return agent in {author, other} or may_deal(draft, author, agent, channel)

    return strip_mentions(text.strip(), draft.handles, keep)[0]


def _add_message(
    draft: Draft,
    author: int,
    channel: int,
    root: Root | None,
    text: str,
    *,
    seq: int,
    answers: int | None = None,
    addressed: int | None = None,
) -> None:
    assert draft.turn is not None  # agents speak in turns
    draft.n_messages_of_hand_in += 1
    draft.group.messages.append(
        NewMessage(
            seq=seq,
            channel=channel,
            visibility=Visibility.PRIVATE if draft.is_private(channel) else Visibility.PUBLIC,
            root=None if root is None else root.seq,
            ordinal=1 if root is None else root.n_messages + 1,
            author=author,
            text=text,
            answers_ordinal=answers,
            committed_at=draft.now,
            turn=draft.turn.number,
            addressed=addressed,
        )
    )


def _names_a_third(draft: Draft, text: str, author: int, other: int | None) -> bool:
    """Tell whether a reply mentions an agent that is not a side of its thread."""
    return any(agent not in {author, other} for agent in find_mentions(text, draft.handles))


# --- what lies on desks ----------------------------------------------------------------------------


def invite(
    draft: Draft, agent: int, message: int, *, root: int, kind: InvitationKind, by_person: bool
) -> None:
    """Put an invitation on an agent's desk."""
    invitation = Invitation(agent=agent, message=message, root=root, kind=kind, by_person=by_person)
    desk = draft.desk(agent)
    draft.desks[agent] = replace(desk, invitations=(*desk.invitations, invitation))
    draft.changed_invitations[agent, message] = invitation
    draft.concern.agents[agent] = None


def settle_invitation(
    draft: Draft, agent: int, message: int, state: InvitationState, reason: str = ""
) -> None:
    """Take an invitation off the desk; one that is not there is settled already."""
    desk = draft.desk(agent)
    for invitation in desk.invitations:
        if invitation.message == message:
            settled = replace(invitation, state=state, reason=reason)
            draft.changed_invitations[agent, message] = settled
    draft.desks[agent] = replace(
        desk, invitations=tuple(one for one in desk.invitations if one.message != message)
    )


def _settle_invitations(draft: Draft, agent: int, root: int) -> None:
    for invitation in draft.desk(agent).invitations:
        if invitation.root == root and invitation.kind is not InvitationKind.REFERENCE:
            settle_invitation(draft, agent, invitation.message, InvitationState.ANSWERED)


def _drop_from_bank(draft: Draft, agent: int, root: int) -> None:
    state = draft.state(agent)
    if root in state.bank:
        bank = tuple(seq for seq in state.bank if seq != root)
        draft.set_state(agent, replace(state, bank=bank))


def _count_post(draft: Draft, effect: Post) -> None:
    state = draft.state(effect.agent)
    n_public, n_private = posts_on(state, draft.now, draft.config)
    private = draft.is_private(effect.channel)
    draft.set_state(
        effect.agent,
        replace(
            state,
            posts_on=local_day(draft.now, draft.config.time_zone),
            posts_made=n_public + (not private),
            private_posts_made=n_private + private,
        ),
    )
