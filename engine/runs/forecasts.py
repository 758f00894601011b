"""What a run will likely take, before anything is spent: rehearsals in memory, counted.

The offline LLM plays the next run of the simulation several times, from where it stands and with
its own texts; what a model would have been shown and would have written is counted. Low and high
are the least and the most of them, with a margin for what a real model does otherwise. Nothing is
stored.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from django.db import transaction
from django.db.models import Avg, Count
from django.utils import timezone

from engine.build import build_trial, models_of, reader_of, trial_runner
from engine.core.usage import Usage
from engine.loop.engine import Engine
from engine.models import LlmCall
from engine.money import price_table
from engine.runs.end import first_moment
from engine.store.database import read_lease
from engine.store.database.loading import load

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from engine.build import Trial
    from engine.core.config import RunConfig
    from engine.core.prices import PriceTable
    from engine.models import Simulation
    from engine.ports.store import Loaded, Store

#: So many rehearsals are played, each with a seed of its own.
REHEARSALS = 8
#: What the least is lowered by and the most raised by, as a share: for what was not rehearsed.
MARGIN = 0.3
#: High is at most so many times low; beyond, low is raised: to be warned too high does no harm.
WIDEST = 3
#: A run without an end is forecast until it is idle, and for no longer than a day.
LONGEST_MINUTES = 24 * 60.0
#: So many calls of a purpose tell better than a count of bytes how many tokens the next one has.
ENOUGH_CALLS = 20

KINDS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """A quantity at the least, likely, and at the most."""

    low: int
    likely: int
    high: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What a run will likely take. Money in nano-USD: None when nothing is paid for, or when a
    model has no price (`unpriced` then names it). `from_history` says whether calls made before
    were of help, `until_idle` that the run would go on after what is told here."""

    calls: Spread
    input_tokens: Spread
    output_tokens: Spread
    cost: Spread | None
    unpriced: str | None
    from_history: bool
    until_idle: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What one rehearsal took."""

    calls: int
    input_tokens: int
    output_tokens: int
    cost: int


def forecast(simulation: Simulation, config: RunConfig) -> Forecast:
    """Play the next run of a simulation in memory, several times, and tell what it would take."""
    loaded, starts_at = _snapshot(simulation, config)
    models, prices = models_of(config, loaded.agents), price_table()
    unpriced = [model for model in models if not prices.knows(model, timezone.now())]
    known = _history(simulation, models)
    with closing(reader_of(simulation.pk, config.policy)) as reader:
        taken = [
            weigh(rehearse(loaded, reader, config, seed, starts_at), known, prices)
            for seed in range(config.seed + 1, config.seed + 1 + REHEARSALS)
        ]
    return Forecast(
        calls=spread([one.calls for one in taken]),
        input_tokens=spread([one.input_tokens for one in taken]),
        output_tokens=spread([one.output_tokens for one in taken]),
        cost=spread([one.cost for one in taken]) if models and not unpriced else None,
        unpriced=next(iter(unpriced), None),
        from_history=bool(known),
        until_idle=not (config.until_idle or _has_end(config)),
    )


def rehearse(
    loaded: Loaded, reader: Store, config: RunConfig, seed: int, starts_at: datetime
) -> Trial:
    """Play one run in memory to its end."""
    trial = build_trial(loaded, reader, seed=seed, starts_at=starts_at)
    played = replace(
        config,
        seed=seed,
        max_nano_usd=None,
        until_idle=config.until_idle or not _has_end(config),
        max_minutes=config.max_minutes or LONGEST_MINUTES,
    )
    with trial_runner() as runner:
        engine = Engine(
            loaded=loaded, store=trial.store, llm=trial.llm, clock=trial.clock, config=played
        )
        runner.run(engine.run())
    return trial


def _has_end(config: RunConfig) -> bool:
    return config.max_turns is not None or config.max_minutes is not None


def spread(amounts: Sequence[int]) -> Spread:
    """Return the least and the most with their margins, and what lies in the middle."""
    high = round(max(amounts) * (1 + MARGIN))
    low = max(round(min(amounts) * (1 - MARGIN)), -(-high // WIDEST))
    return Spread(low=low, likely=sorted(amounts)[len(amounts) // 2], high=high)


def _snapshot(simulation: Simulation, config: RunConfig) -> tuple[Loaded, datetime]:
    """Read the simulation as it is; what a first reading would make is not kept."""
    with transaction.atomic():
        read_lease(simulation.pk)
        loaded, starts_at = load(simulation.pk, config.policy), first_moment(simulation.pk)
        transaction.set_rollback(True)
    return loaded, starts_at


def _history(simulation: Simulation, models: Sequence[str]) -> dict[str, Usage]:
    """Return the mean tokens of a call by phase, where enough calls to these models were made."""
    calls = LlmCall.objects.filter(
        run__simulation=simulation, model__in=models, error="", output_tokens__gt=0
    )
    means = calls.order_by("phase").values_list("phase").annotate(Count("pk"), *map(Avg, KINDS))
    return {
        phase: Usage(**dict(zip(KINDS, map(round, tokens), strict=True)))
        for phase, n_calls, *tokens in means
        if n_calls >= ENOUGH_CALLS
    }


def weigh(trial: Trial, known: Mapping[str, Usage], prices: PriceTable) -> Taken:
    """Return what a rehearsal would have taken of its models; what has no price costs nothing here."""
    calls = [
        replace(counted, usage=known.get(counted.phase, counted.usage))
        for counted in trial.llm.counted
    ]
    now = timezone.now()
    return Taken(
        calls=len(calls),
        input_tokens=sum(call.usage.prompt_tokens for call in calls),
        output_tokens=sum(call.usage.output_tokens for call in calls),
        cost=sum(prices.cost(call.model, call.usage, now) or 0 for call in calls),
    )
