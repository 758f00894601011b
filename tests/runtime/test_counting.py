"""What a forecast takes for cached: prefixes up to a mark, long enough, used within five minutes."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from engine.backends.clock import VirtualClock
from engine.backends.llm.counting import CountingLlm, PrefixCache
from engine.backends.llm.offline import OfflineLlm
from engine.core.tokens import likely_tokens
from engine.core.usage import Usage
from engine.ports.llm import LlmPhase, ReplyContext
from engine.prompts import render
from tests.core.golden_prompts import CASES
from tests.core.offline_society import request

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
_CASE = CASES["reply"]
assert isinstance(_CASE, ReplyContext)
REPLY = replace(_CASE, memory="We met the ferry. " * 100)
PROMPT = render(REPLY)
BLOCKS = tuple(PROMPT.blocks())
MARKED = likely_tokens(text for text in PROMPT.texts() if text != PROMPT.now)


def at(seconds: int) -> datetime:
    return NOON + timedelta(seconds=seconds)


def test_prompt_is_read_from_the_cache_up_to_its_last_mark() -> None:
    cache = PrefixCache()
    assert cache.read("m", BLOCKS, NOON) == 0
    assert cache.write("m", BLOCKS, NOON) == MARKED > 1_500
    assert cache.read("m", BLOCKS, at(1)) == MARKED
    assert cache.read("other", BLOCKS, at(1)) == 0
    assert cache.read("m", tuple(replace(PROMPT, now="Something else.").blocks()), at(1)) == MARKED


def test_prompt_shares_what_comes_before_the_first_difference() -> None:
    cache = PrefixCache()
    cache.write("m", BLOCKS, NOON)
    forgot = tuple(replace(PROMPT, memory="We met nobody.").blocks())
    before = likely_tokens([next(PROMPT.texts()), PROMPT.rules, PROMPT.agent])
    assert cache.read("m", forgot, at(1)) == before > 1_024
    assert cache.read("m", tuple(replace(PROMPT, rules="None.").blocks()), at(1)) == 0


def test_cache_keeps_what_is_used_within_five_minutes() -> None:
    cache = PrefixCache()
    cache.write("m", BLOCKS, NOON)
    assert cache.read("m", BLOCKS, at(299)) == MARKED
    assert cache.read("m", BLOCKS, at(598)) == MARKED
    assert cache.read("m", BLOCKS, at(898)) == 0


def test_cache_keeps_nothing_that_is_short() -> None:
    cache = PrefixCache()
    few = replace(PROMPT, rules="Talk.", agent="You.", memory="", talk=(), tools=())
    short = tuple(few.blocks())
    assert cache.write("m", short, NOON) == 0
    assert cache.read("m", short, NOON) == 0


def test_calls_are_counted_as_a_service_would_bill_them() -> None:
    clock = VirtualClock(NOON)
    llm = CountingLlm(inner=OfflineLlm(1, clock), clock=clock)
    asked = replace(request(LlmPhase.REPLY, REPLY, thread=1), model="m")

    async def ask() -> None:
        for _ in range(2):
            await llm.complete(asked)

    asyncio.run(ask())

    first, second = (counted.usage for counted in llm.counted)
    now = likely_tokens([PROMPT.now])
    written = first.output_tokens
    assert first == Usage(input_tokens=now, output_tokens=written, cache_write_tokens=MARKED)
    assert second == Usage(input_tokens=now, output_tokens=written, cache_read_tokens=MARKED)
    assert {(one.phase, one.model) for one in llm.counted} == {("reply", "m")}
    assert written > 40
