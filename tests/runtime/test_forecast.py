"""Forecasts: what rehearsals tell holds for runs of other seeds, and nothing of them stays."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest

from engine.core.config import RunConfig
from engine.core.prices import PriceTable
from engine.core.usage import Usage
from engine.money.table import shipped_prices
from engine.runs.forecasts import REHEARSALS, Spread, Taken, rehearse, spread, weigh
from engine.store.memory import MemoryStore
from engine.store.memory.loading import loaded as load
from tests.runtime.society import Society, demo_society, offline, play

if TYPE_CHECKING:
    from engine.core.records import AgentSpec

MODELS: dict[str, Any] = {
    "llm": "anthropic",
    "small_model": "claude-haiku-4-5",
    "large_model": "claude-sonnet-4-5",
}
PRICES = PriceTable(shipped_prices())
SEEDS = 20


def small_society() -> Society:
    """Return four of the invented organisations, whose texts are as long as real ones."""
    society = demo_society()
    kept: dict[int, AgentSpec] = dict(list(society.tables.agents.items())[:4])
    society.tables.agents = kept
    society.cohorts = {
        name: tuple(agent for agent in members if agent in kept)
        for name, members in society.cohorts.items()
    }
    society.members = {
        channel: tuple(agent for agent in members if agent in kept)
        for channel, members in society.members.items()
    }
    society.tables.gate = society.topology(1)
    return society


def taken(society: Society, seed: int, **settings: Any) -> Taken:
    """Return what one run takes, played from where the society stands."""
    snapshot = load(society.tables)
    reader = MemoryStore(society.tables)
    config = RunConfig(policy=str(society.policy), until_idle=True, **MODELS, **settings)
    trial = rehearse(snapshot, reader, config, seed, society.starts_at)
    return weigh(trial, {}, PRICES)


@pytest.mark.parametrize("is_fresh", [True, False], ids=["fresh", "with history"])
def test_actual_lies_within_the_forecast_for_nineteen_of_twenty_seeds(
    *, is_fresh: bool, is_soak: bool
) -> None:
    society = demo_society() if is_soak else small_society()
    if not is_fresh:
        play(society, llm=offline(3), max_turns=12)
        society.starts_at = society.starts_at.replace(day=society.starts_at.day + 1)
    settings = {} if is_soak else {"daily_posts": 1}
    rehearsals = [taken(society, seed, **settings) for seed in range(1, 1 + REHEARSALS)]
    actual = [taken(society, 1_000 + number, **settings) for number in range(SEEDS)]
    for name in ("calls", "input_tokens", "output_tokens", "cost"):
        told = spread([getattr(one, name) for one in rehearsals])
        amounts = [getattr(one, name) for one in actual]
        assert 0 < told.low <= told.likely <= told.high <= 3 * told.low
        assert sum(told.low <= amount <= told.high for amount in amounts) >= 19, (told, amounts)


def test_rehearsal_leaves_the_society_as_it_is() -> None:
    society = small_society()
    play(society, llm=offline(3), max_turns=12)
    before = deepcopy(load(society.tables))
    assert before.last_seq > 0
    assert taken(society, 5).calls > 0
    assert load(society.tables) == before


def test_rehearsal_takes_what_the_run_of_its_seed_takes() -> None:
    """The trial's store reads like the real one, across what was stored before and what is new."""
    society = small_society()
    play(society, llm=offline(3), max_turns=12)
    config = RunConfig(policy=str(society.policy), until_idle=True, seed=5)
    trial = rehearse(
        load(society.tables), MemoryStore(society.tables), config, 5, society.starts_at
    )
    n_before = len(society.tables.calls)
    play(society, llm=offline(5, latency_seconds=5.0), seed=5, max_minutes=24 * 60.0)
    calls = list(society.tables.calls.values())[n_before:]
    assert len(trial.llm.counted) == len(calls) > 20
    assert trial.llm.upper_estimate(None) == 0  # type: ignore[arg-type]


def test_spread_has_a_margin_and_is_never_wider_than_three() -> None:
    assert spread([100, 120, 110]) == Spread(low=70, likely=110, high=156)
    assert spread([10, 100]) == Spread(low=44, likely=100, high=130)
    assert spread([0, 0]) == Spread(low=0, likely=0, high=0)


def test_calls_made_before_tell_how_many_tokens_the_next_one_has() -> None:
    society = small_society()
    snapshot, reader = load(society.tables), MemoryStore(society.tables)
    config = RunConfig(policy=str(society.policy), until_idle=True, **MODELS)
    trial = rehearse(snapshot, reader, config, 1, society.starts_at)
    n_replies = sum(counted.phase == "reply" for counted in trial.llm.counted)
    plain = weigh(trial, {}, PRICES)
    known = Usage(input_tokens=9_000, cache_read_tokens=1_000, output_tokens=1_000)
    told = weigh(trial, {"reply": known}, PRICES)
    assert told.calls == plain.calls
    assert told.input_tokens > n_replies * 10_000
    assert told.cost > plain.cost
    assert weigh(trial, {}, PriceTable(())).cost == 0
