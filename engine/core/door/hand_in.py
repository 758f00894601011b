"""One hand-in at the door: every effect in the order of its plan, then the turn's own row."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, assert_never

from engine.core.door import messages, notices, people, topology
from engine.core.effects import (
    Adopt,
    AgentChanged,
    Answer,
    ChannelChanged,
    Close,
    Committed,
    Effect,
    HandIn,
    Join,
    MemoryChanged,
    Miss,
    Post,
    PostChance,
    Rejected,
    Remember,
    Reply,
    Result,
    Reviewed,
    TakeIn,
    TakeNotice,
    TurnOutcome,
    TurnRecord,
)

if TYPE_CHECKING:
    from engine.core.draft import Draft


def prepare(draft: Draft, hand_in: HandIn, *, n_messages_before: int = 0) -> Answer:
    """Check and enter all effects of one hand-in; nothing here awaits or can fail.

    `n_messages_before` are those that the same hand-in stored earlier, when it is sent one effect
    at a time.
    """
    draft.turn = hand_in.turn
    draft.n_messages_of_hand_in = n_messages_before
    results = tuple(_enter(draft, effect) for effect in hand_in.effects)
    draft.group.calls.extend(hand_in.calls)
    if hand_in.turn is None:
        return Answer(results=results)
    turn = _record(draft, hand_in, results)
    draft.changed_turns[turn.number] = turn
    return Answer(results=results, turn=turn)


def _enter(draft: Draft, effect: Effect) -> Result:
    match effect:
        case Post():
            return messages.post(draft, effect)
        case Reply():
            return messages.reply(draft, effect)
        case TakeNotice():
            return notices.take_notice(draft, effect)
        case PostChance():
            return notices.post_chance(draft, effect)
        case Join():
            return notices.join(draft, effect)
        case Remember():
            return notices.remember(draft, effect)
        case Miss():
            return notices.miss(draft, effect)
        case Close():
            return notices.close(draft, effect)
        case TakeIn():
            return people.take_in(draft, effect)
        case Reviewed():
            return people.reviewed(draft, effect)
        case AgentChanged():
            return people.agent_changed(draft, effect)
        case ChannelChanged():
            return people.channel_changed(draft, effect)
        case MemoryChanged():
            return people.memory_changed(draft, effect)
        case Adopt():
            return topology.adopt(draft, effect)
    assert_never(effect)


def _record(draft: Draft, hand_in: HandIn, results: tuple[Result, ...]) -> TurnRecord:
    """Return the turn's row as it stands after this hand-in; at its end also the agent's state."""
    assert hand_in.turn is not None
    before, ends = hand_in.turn, hand_in.ends
    reasons = Counter(dict(before.rejected))
    reasons.update(hand_in.refused)
    reasons.update(result.reason for result in results if isinstance(result, Rejected))
    n_llm_calls = before.n_llm_calls + len(hand_in.calls)
    n_committed = before.n_committed + sum(isinstance(result, Committed) for result in results)
    if ends is TurnOutcome.WORKED and not n_committed and not n_llm_calls:
        ends = TurnOutcome.NOTHING
    state = draft.state(before.agent)
    ended_at = state.ended_at if ends is None else draft.now
    draft.set_state(before.agent, replace(state, last_selected=before.number, ended_at=ended_at))
    return replace(
        before,
        finished_at=before.finished_at if ends is None else draft.now,
        outcome=ends or before.outcome,
        n_llm_calls=n_llm_calls,
        n_committed=n_committed,
        rejected=tuple(sorted(reasons.items())),
    )
