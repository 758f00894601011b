"""The composition root: settings and a run become clock, backends, store and loop.

Only this module names a backend.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.conf import settings

from engine.backends.clock import RealClock, VirtualClock, VirtualLoop
from engine.backends.llm.anthropic import Access, AnthropicLlm
from engine.backends.llm.offline import OfflineLlm
from engine.core.settings import RefusedSetting
from engine.store.database import DjangoStore

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from datetime import datetime

    from engine.core.config import RunConfig
    from engine.core.usage import Usage
    from engine.ports.clock import Clock
    from engine.ports.llm import Llm

LLMS = ("offline", "anthropic")
CHATS = ("local",)
CLOCKS = ("real", "virtual")
#: A database that does not answer is waited for as long as this many leases.
PATIENCE_LEASES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a driver drives with; `loop_factory` makes the event loop that the clock needs.

    `close_llm` is to be awaited on that loop when the run is over.
    """

    clock: Clock
    llm: Llm
    close_llm: Callable[[], Awaitable[None]]
    store: DjangoStore
    loop_factory: Callable[[], asyncio.AbstractEventLoop]


def make_ready(config: RunConfig) -> None:
    """Get ready what takes long, before a lease is taken; `RefusedSetting` says what is missing."""
    if config.llm != "anthropic":
        return
    if not settings.SIM_ANTHROPIC_API_KEY:
        raise RefusedSetting(
            "SIM_ANTHROPIC_API_KEY is not set: set it to the key of your account, or use "
            "--llm offline."
        )
    if config.clock == "virtual":
        raise RefusedSetting("A model takes real time: leave out --clock virtual.")
    AnthropicLlm.load()


def build(
    *,
    simulation_id: int,
    run_id: int,
    token: int,
    config: RunConfig,
    starts_at: datetime,
    taken_at: float,
) -> Parts:
    """Make the parts of one run that holds the lease `token` since `taken_at` (since boot).

    Its clock begins at `starts_at`, or later if a real one says so.
    """
    virtual = config.clock == "virtual"
    clock = VirtualClock(starts_at) if virtual else RealClock(starts_at)
    llm, close_llm = _llm(config, clock)
    return Parts(
        clock=clock,
        llm=llm,
        close_llm=close_llm,
        store=DjangoStore(
            simulation_id=simulation_id,
            run_id=run_id,
            token=token,
            policy=config.policy,
            lease_seconds=settings.SIM_LEASE_SECONDS,
            renew_seconds=settings.SIM_LEASE_RENEW_SECONDS,
            taken_at=taken_at,
            patience_seconds=PATIENCE_LEASES * settings.SIM_LEASE_SECONDS,
        ),
        loop_factory=VirtualLoop if virtual else asyncio.new_event_loop,
    )


def _llm(config: RunConfig, clock: Clock) -> tuple[Llm, Callable[[], Awaitable[None]]]:
    """Return the LLM of a run, and what closes it."""
    if config.llm == "anthropic":
        access = Access(
            key=settings.SIM_ANTHROPIC_API_KEY,
            base_url=settings.SIM_ANTHROPIC_BASE_URL,
            timeout_seconds=settings.SIM_ANTHROPIC_TIMEOUT_SECONDS,
        )
        llm = AnthropicLlm(access, prices=_Unpriced(), clock=clock, seed=config.seed)
        return llm, llm.close
    offline = OfflineLlm(config.seed, clock, latency_seconds=config.latency_seconds)
    return offline, _nothing


async def _nothing() -> None:
    """Close an LLM that has nothing open."""


class _Unpriced:
    """Prices of nothing."""

    def cost(self, model: str, usage: Usage, at: datetime) -> int:
        return 0

    def upper_cost(self, model: str, at: datetime, *, input_tokens: int, output_tokens: int) -> int:
        return 0
