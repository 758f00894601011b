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
from engine.backends.llm.counting import CountingLlm
from engine.backends.llm.offline import OfflineLlm
from engine.backends.llm.replay import ReplayLlm
from engine.core.records import Status
from engine.core.settings import RefusedSetting
from engine.money import price_table
from engine.store.database import DjangoStore, count_recorded, recorded_calls
from engine.store.trial import TrialStore

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from datetime import datetime

    from engine.core.config import RunConfig
    from engine.core.records import AgentSpec
    from engine.ports.clock import Clock
    from engine.ports.llm import Llm
    from engine.ports.store import Loaded, Store

LLMS = ("offline", "anthropic")
#: What an LLM is called that answers from a recorded run, before the number of the run.
REPLAY = "replay:"
CHATS = ("local",)
CLOCKS = ("real", "virtual")
#: A database that does not answer is waited for as long as this many leases.
PATIENCE_LEASES = 10
#: In a rehearsal the model answers after about so long, as a real one does.
TRIAL_LATENCY_SECONDS = 5.0


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


def models_of(config: RunConfig, agents: Iterable[AgentSpec]) -> tuple[str, ...]:
    """Return the models that a run of these agents may pay for: without a service none."""
    if config.llm != "anthropic":
        return ()
    own = [
        model
        for agent in agents
        if agent.status is Status.ACTIVE
        for model in (agent.small_model, agent.large_model)
    ]
    return tuple(dict.fromkeys(filter(None, (config.small_model, config.large_model, *own))))


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """The parts of one rehearsal in memory."""

    clock: VirtualClock
    llm: CountingLlm
    store: TrialStore


def build_trial(loaded: Loaded, reader: Store, *, seed: int, starts_at: datetime) -> Trial:
    """Make the parts of a rehearsal from a snapshot on: a virtual clock, the offline LLM, counted."""
    clock = VirtualClock(starts_at)
    llm = OfflineLlm(seed, clock, latency_seconds=TRIAL_LATENCY_SECONDS)
    return Trial(
        clock=clock, llm=CountingLlm(inner=llm, clock=clock), store=TrialStore(loaded, reader)
    )


def trial_runner() -> asyncio.Runner:
    """Return what runs a rehearsal: waits cost no time."""
    return asyncio.Runner(loop_factory=VirtualLoop)


def reader_of(simulation_id: int, policy: str) -> DjangoStore:
    """Return a store to read a simulation with, by nobody who drives it."""
    return DjangoStore(simulation_id=simulation_id, run_id=0, token=0, policy=policy)


def make_ready(config: RunConfig) -> None:
    """Get ready what takes long, before a lease is taken; `RefusedSetting` says what is missing."""
    check_ready(config)
    if config.llm == "anthropic":
        AnthropicLlm.load()


def check_ready(config: RunConfig) -> None:
    """Raise `RefusedSetting` for what a run would lack; nothing is loaded for it."""
    if config.llm.startswith(REPLAY):
        _check_recording(replayed_run(config.llm))
    if config.llm != "anthropic":
        return
    if not settings.SIM_ANTHROPIC_API_KEY:
        raise RefusedSetting(
            "SIM_ANTHROPIC_API_KEY is not set: set it to the key of your account, or use "
            "--llm offline."
        )
    if config.clock == "virtual":
        raise RefusedSetting("A model takes real time: leave out --clock virtual.")


def replayed_run(llm: str) -> int:
    """Return the number of the run that an LLM called `replay:RUN` answers from."""
    number = llm.removeprefix(REPLAY)
    if not (number.isascii() and number.isdigit() and len(number) < 18):
        raise RefusedSetting(f"{llm} names no run: give its number, like {REPLAY}7.")
    return int(number)


def _check_recording(run: int) -> None:
    n_answered, n_recorded = count_recorded(run)
    if not n_answered:
        raise RefusedSetting(
            f"Run {run} asked no model that costs money, so nothing of it is recorded; the offline "
            "LLM answers alike for the same --seed."
        )
    if n_recorded < n_answered:
        raise RefusedSetting(
            f"Of {n_answered:,} calls of run {run} {n_recorded:,} are recorded: the others were not "
            "to be (SIM_RECORD_CALLS), or are pruned (prunesim). It cannot be replayed."
        )


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
    llm, close_llm = _llm(config, clock, starts_at)
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
            max_calls_in_flight=settings.SIM_MAX_CALLS_IN_FLIGHT,
        ),
        loop_factory=VirtualLoop if virtual else asyncio.new_event_loop,
    )


def _llm(
    config: RunConfig, clock: Clock, starts_at: datetime
) -> tuple[Llm, Callable[[], Awaitable[None]]]:
    """Return the LLM of a run, and what closes it."""
    if config.llm == "anthropic":
        access = Access(
            key=settings.SIM_ANTHROPIC_API_KEY,
            base_url=settings.SIM_ANTHROPIC_BASE_URL,
            timeout_seconds=settings.SIM_ANTHROPIC_TIMEOUT_SECONDS,
            effort=""
            if settings.SIM_ANTHROPIC_EFFORT == "default"
            else settings.SIM_ANTHROPIC_EFFORT,
        )
        llm = AnthropicLlm(access, prices=price_table(), clock=clock, seed=config.seed)
        return llm, llm.close
    if config.llm.startswith(REPLAY):
        run = replayed_run(config.llm)
        return ReplayLlm(recorded_calls(run), run=run, clock=clock, starts_at=starts_at), _nothing
    offline = OfflineLlm(config.seed, clock, latency_seconds=config.latency_seconds)
    return offline, _nothing


async def _nothing() -> None:
    """Close an LLM that has nothing open."""
