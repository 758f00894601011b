"""Asks the rehearsed API through the backend and the real client, one loop for each question."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from engine.backends.clock import RealClock
from engine.backends.llm.anthropic import Access, AnthropicLlm
from engine.core.usage import Usage
from engine.ports.llm import (
    LlmAnswer,
    LlmPhase,
    LlmRequest,
    PostContext,
    PruneContext,
    RememberContext,
    ReplyContext,
    Tier,
)
from tests.anthropic_api.models import HAIKU, MODELS, SONNET
from tests.anthropic_api.server import KEY, AnthropicApi

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from engine.ports.llm import Context

BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)


class ListPrices:
    """The server's own prices, in nano-USD."""

    def cost(self, model: str, usage: Usage, at: datetime) -> int:
        prices = next(one for one in MODELS if one.id == model).prices
        return (
            usage.input_tokens * prices.input
            + usage.output_tokens * prices.output
            + usage.cache_write_tokens * prices.write_5m
            + usage.cache_read_tokens * prices.read
        )

    def upper_cost(self, model: str, at: datetime, *, input_tokens: int, output_tokens: int) -> int:
        prices = next(one for one in MODELS if one.id == model).prices
        return input_tokens * prices.write_5m + output_tokens * prices.output


def request(context: Context, **fields: Any) -> LlmRequest:
    """Return a request for a context, of its phase and with a model of its tier."""
    phases = {
        PruneContext: LlmPhase.PRUNE,
        ReplyContext: LlmPhase.REPLY,
        PostContext: LlmPhase.POST,
        RememberContext: LlmPhase.REMEMBER,
    }
    phase = phases.get(type(context), LlmPhase.SCAN)
    is_large = phase in {LlmPhase.REPLY, LlmPhase.POST}
    usual: dict[str, Any] = {
        "agent": context.persona.slug,
        "turn": 1,
        "phase": phase,
        "tier": Tier.LARGE if is_large else Tier.SMALL,
        "thread": 11 if phase is LlmPhase.REPLY else None,
        "attempt": 1,
        "context": context,
        "model": SONNET.id if is_large else HAIKU.id,
    }
    return LlmRequest(**usual | fields)


@asynccontextmanager
async def backend(
    api: AnthropicApi, *, key: str = KEY, timeout_seconds: float = 60, base_url: str = ""
) -> AsyncIterator[AnthropicLlm]:
    access = Access(key=key, base_url=base_url or api.url, timeout_seconds=timeout_seconds)
    llm = AnthropicLlm(access, prices=ListPrices(), clock=RealClock(BEGINNING), seed=1)
    try:
        yield llm
    finally:
        await llm.close()


def ask(api: AnthropicApi, *asked: LlmRequest, **options: Any) -> list[LlmAnswer]:
    """Ask one after the other."""

    async def answers() -> list[LlmAnswer]:
        async with backend(api, **options) as llm:
            return [await llm.complete(one) for one in asked]

    return asyncio.run(answers())


def failure(api: AnthropicApi, asked: LlmRequest, **options: Any) -> BaseException:
    """Return what asking raises."""
    try:
        ask(api, asked, **options)
    except BaseException as error:  # noqa: BLE001 - it is what is looked at
        return error
    raise AssertionError("it was answered")
