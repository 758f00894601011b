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
    reasons = Counter(dict(hand_in.turn.rejected))
    reasons.update(hand_in.refused)
    reasons.update(result.reason for result in results if isinstance(result, Rejected))
    turn = replace(
        hand_in.turn,
        n_llm_calls=hand_in.turn.n_llm_calls + len(hand_in.calls),
        n_committed=hand_in.turn.n_committed
        + sum(isinstance(result, Committed) for result in results),
        rejected=tuple(sorted(reasons.items())),
    )
    state = replace(draft.state(turn.agent), last_selected=turn.number)
    if hand_in.ends is not None:
        turn = replace(turn, finished_at=draft.now, outcome=_outcome(hand_in.ends, turn))
        state = replace(state, ended_at=draft.now)
    draft.set_state(turn.agent, state)
    return turn


def _outcome(ends: TurnOutcome, turn: TurnRecord) -> TurnOutcome:
    """A turn that worked for nothing did nothing."""
    if ends is TurnOutcome.WORKED and not turn.n_committed and not turn.n_llm_calls:
        return TurnOutcome.NOTHING
    return ends
