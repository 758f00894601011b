"""The replaying LLM by itself: when an answer comes, and what an unknown request is told."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from engine.backends.clock import VirtualClock
from engine.backends.llm.replay import ReplayLlm
from engine.core.errors import PermanentLlmError
from engine.core.recording import CallText, RecordedCall
from engine.core.usage import Receipt, Usage
from engine.ports.llm import Chosen, LlmPhase, LlmRequest, PruneContext, Tier
from engine.prompts import asked_of
from tests.core.offline_society import entry, persona
from tests.runtime.society import in_virtual_time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.ports.llm import LlmAnswer

BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
FIRST = '[{"type": "text", "text": "{\\"posts\\": [1]}"}]'
SECOND = '[{"type": "text", "text": "{\\"posts\\": [2]}"}]'


def asked(slug: str = "kelp", *, first: str = "Who has drying racks?") -> LlmRequest:
    context = PruneContext(
        persona=persona(slug, "We dry kelp.", "Be brief.", ""),
        posts=(entry(4, "MillBot", first), entry(9, "ChoirBot", "Who sings?")),
        n_keep=1,
    )
    return LlmRequest(
        agent=slug,
        turn=3,
        phase=LlmPhase.PRUNE,
        tier=Tier.SMALL,
        thread=None,
        attempt=1,
        context=context,
    )


def recorded(request: LlmRequest, said: str, *, after: float, error: str = "") -> RecordedCall:
    return RecordedCall(
        agent=request.agent,
        phase=request.phase,
        turn=7,
        after_seconds=after,
        text=CallText(asked=asked_of(request), said=said),
        receipt=Receipt(
            model="claude-haiku-5-5",
            prompt_version="1",
            finish_reason="end_turn",
            usage=Usage(input_tokens=10, output_tokens=5),
            said=said,
        ),
        error=error,
    )


def replay(calls: Sequence[RecordedCall], *requests: LlmRequest) -> list[tuple[float, LlmAnswer]]:
    """Ask all at once, on the virtual clock; each answer with the seconds after which it came."""

    async def all_of_them() -> list[tuple[float, LlmAnswer]]:
        clock = VirtualClock(BEGINNING)
        llm = ReplayLlm(calls, run=5, clock=clock, starts_at=BEGINNING)

        async def one(request: LlmRequest) -> tuple[float, LlmAnswer]:
            answer = await llm.complete(request)
            return (clock.now() - BEGINNING).total_seconds(), answer

        return await asyncio.gather(*map(one, requests))

    return in_virtual_time(all_of_them())


def test_answers_come_when_they_came() -> None:
    kelp, mill = asked("kelp"), asked("mill")
    calls = [recorded(kelp, FIRST, after=5.0), recorded(mill, SECOND, after=2.0)]

    (kelp_at, one), (mill_at, other) = replay(calls, kelp, mill)

    assert (kelp_at, mill_at) == (5.0, 2.0)
    assert (one.decision, other.decision) == (Chosen(seqs=(4,)), Chosen(seqs=(9,)))
    assert one.usage.cost_nano_usd == 0


def test_equal_requests_are_answered_in_the_recorded_order() -> None:
    kelp = asked()
    calls = [recorded(kelp, FIRST, after=1.0), recorded(kelp, SECOND, after=2.0)]

    found = replay(calls, kelp, replace(kelp, turn=4))

    assert [answer.decision for _, answer in found] == [Chosen(seqs=(4,)), Chosen(seqs=(9,))]


NEVER_ASKED = (
    "In turn 3 mill is asked to prune, which run 5 never asked of it: there is no answer to replay."
)
OTHERWISE = (
    "In turn 3 kelp is asked to prune otherwise than in run 5: where turn 7 there was shown “| Who "
    "has drying racks?”, it is now shown “| Who has wet racks?”."
)


@pytest.mark.parametrize(
    ("request_", "sentence"),
    [(asked("mill"), NEVER_ASKED), (asked(first="Who has wet racks?"), OTHERWISE)],
)
def test_unknown_request_is_told_from_the_nearest(request_: LlmRequest, sentence: str) -> None:
    with pytest.raises(PermanentLlmError) as raised:
        replay([recorded(asked(), FIRST, after=1.0)], request_)

    assert str(raised.value) == sentence


def test_request_that_comes_once_too_often_says_so() -> None:
    kelp = asked()

    with pytest.raises(PermanentLlmError) as raised:
        replay([recorded(kelp, FIRST, after=1.0)], kelp, kelp)

    assert str(raised.value) == (
        "In turn 3 kelp is asked to prune once more than in run 5, with the same words: all its "
        "answers are used up."
    )
