"""The composition root: settings and a run become clock, backends, store and loop.

Only this module names a backend.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.conf import settings

from engine.backends.clock import RealClock, VirtualClock, VirtualLoop
from engine.backends.llm.offline import OfflineLlm
from engine.store.database import DjangoStore

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from engine.core.config import RunConfig
    from engine.ports.clock import Clock
    from engine.ports.llm import Llm

LLMS = ("offline",)
CHATS = ("local",)
CLOCKS = ("real", "virtual")
#: A database that does not answer is waited for as long as this many leases.
PATIENCE_LEASES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a driver drives with; `loop_factory` makes the event loop that the clock needs."""

    clock: Clock
    llm: Llm
    store: DjangoStore
    loop_factory: Callable[[], asyncio.AbstractEventLoop]


def models_of(_config: RunConfig) -> tuple[str, ...]:
    """Return the models that a run may pay for; the offline LLM is free and none of them."""
    return ()


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
    return Parts(
        clock=clock,
        llm=OfflineLlm(config.seed, clock, latency_seconds=config.latency_seconds),
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
