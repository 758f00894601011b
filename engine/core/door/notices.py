"""What a turn changes for its own agent: what it read, kept, joined, remembers, and its chances."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from engine.core.config import BANK_SIZE, SKIP_GROWTH, SKIP_SECONDS
from engine.core.door import threads
from engine.core.door.messages import settle_invitation
from engine.core.effects import (
    Close,
    Committed,
    Join,
    Miss,
    PostChance,
    Rejected,
    Remember,
    Result,
    TakeNotice,
)
from engine.core.group import NewMemory
from engine.core.participation import may_act_on, may_post_in
from engine.core.records import InvitationState, Memory, Outcome

if TYPE_CHECKING:
    from engine.core.draft import Draft

#: An answer that cannot be used twice in a row is one that will never come.
MOST_MISSES = 2


def join(draft: Draft, effect: Join) -> Result:
    """Subscribe to channels; those that are private, gone or joined are left out."""
    joined = draft.subscriptions.get(effect.agent, ())
    new = [
        channel
        for channel in effect.channels
        if channel not in joined
        and draft.channels.get(channel) is not None
        and may_post_in(draft, effect.agent, channel)
    ]
    if not new:
        return Rejected(reason="joined_already")
    draft.subscriptions[effect.agent] = tuple(sorted((*joined, *new)))
    draft.group.subscriptions.extend((effect.agent, channel) for channel in new)
    return Committed()


def take_notice(draft: Draft, effect: TakeNotice) -> Result:
    """Move the cursor (never back), change the bank, settle invitations: all at once.

    What the gate has ceased to permit since the look is not kept.
    """
    state = draft.state(effect.agent)
    bank = [seq for seq in state.bank if seq not in effect.drop]
    for seq in effect.keep:
        root = draft.roots.get(seq)
        if seq not in bank and root is not None and may_act_on(draft, effect.agent, root):
            bank.append(seq)
    draft.set_state(
        effect.agent,
        replace(
            state,
            cursor=max(state.cursor, effect.cursor or 0),
            bank=tuple(bank[-BANK_SIZE:]),
        ),
    )
    for dealt in effect.dealt:
        settle_invitation(draft, effect.agent, dealt.message, InvitationState.REFUSED, dealt.reason)
    return Committed()


def post_chance(draft: Draft, effect: PostChance) -> Result:
    """Use up a chance to post: from now to the next it takes an interval.

    After a skip, and after a draft that was rejected, at least five minutes, growing with such
    in a row. Replies neither earn nor postpone a chance, so nothing else writes this timer.
    """
    state = draft.state(effect.agent)
    stored = effect.used and draft.n_messages_of_hand_in > 0
    interval_seconds = draft.config.post_interval_seconds
    streak = 0 if stored else state.skip_streak + 1
    if not stored:
        interval_seconds = max(interval_seconds, SKIP_SECONDS) * min(streak, SKIP_GROWTH)
    next_post_at = draft.now + timedelta(seconds=interval_seconds)
    draft.set_state(effect.agent, replace(state, next_post_at=next_post_at, skip_streak=streak))
    return Committed()


def remember(draft: Draft, effect: Remember) -> Result:
    """Store a new memory text, unless the segment or what it should know has changed meanwhile."""
    key = (effect.agent, effect.channel)
    memory = draft.memories.get(key, Memory(agent=effect.agent, channel=effect.channel))
    desk = draft.desk(effect.agent)
    known = [
        talk
        for talk in desk.untold
        if talk.channel == effect.channel and talk.closed_seq <= effect.upto_seq
    ]
    if memory.version != effect.base_version or len(known) != effect.n_talks:
        return Rejected(reason="changed_meanwhile")
    memory = replace(memory, version=memory.version + 1, upto_seq=effect.upto_seq)
    draft.memories[key] = memory
    draft.group.memories.append(NewMemory(memory=memory, text=effect.text))
    untold = tuple(talk for talk in desk.untold if talk not in known)
    draft.desks[effect.agent] = replace(desk, untold=untold)
    return Committed()


def miss(draft: Draft, effect: Miss) -> Result:
    """Count an unusable answer to a debt; the second in a row closes the thread as lost."""
    thread = draft.threads.get(effect.root)
    side = None if thread is None else thread.side(effect.agent)
    if thread is None or side is None or thread.cycle != effect.cycle:
        return Rejected(reason="not_owed")
    thread = threads.with_side(thread, replace(side, misses=side.misses + 1))
    if side.misses + 1 >= MOST_MISSES:
        threads.close(draft, thread, Outcome.LOST)
    else:
        threads.enter(draft, thread)
    return Committed()


def close(draft: Draft, effect: Close) -> Result:
    """End a cycle that nobody will go on with."""
    thread = draft.threads.get(effect.root)
    if thread is None or thread.cycle != effect.cycle:
        return Rejected(reason="closed_already")
    threads.close(draft, thread, effect.outcome)
    return Committed()
