"""Asks the rehearsed API through the backend and the real client, one loop for each question."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from engine.backends.clock import RealClock
from engine.backends.llm.anthropic import Access, AnthropicLlm
from engine.core.prices import PriceTable
from engine.money import shipped_prices
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
from tests.anthropic_api.models import HAIKU, SONNET
from tests.anthropic_api.server import KEY, AnthropicApi

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from engine.ports.llm import Context

BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)


#: The newest prices that came with this release, as if they had always held.
PRICES = PriceTable(replace(price, since=BEGINNING.date()) for price in shipped_prices())


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
    api: AnthropicApi,
    *,
    key: str = KEY,
    timeout_seconds: float = 60,
    base_url: str = "",
    effort: str = "",
) -> AsyncIterator[AnthropicLlm]:
    access = Access(
        key=key,
        base_url=base_url or api.url,
        timeout_seconds=timeout_seconds,
        effort=effort,
    )
    llm = AnthropicLlm(access, prices=PRICES, clock=RealClock(BEGINNING), seed=1)
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
