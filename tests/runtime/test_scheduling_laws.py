"""The laws of selection, in random societies on the virtual clock."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, fields
from datetime import timedelta
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.core.chance import keyed_random
from engine.core.effects import TurnOutcome
from engine.core.errors import TransientLlmError, UnusableAnswer
from engine.core.records import Status
from engine.loop import engine, watch
from engine.ports.llm import Decision, LlmRequest
from engine.store.memory import Tables
from tests.runtime.observer import Observer
from tests.runtime.scripted_llm import by_phase, eager, silent
from tests.runtime.society import (
    Live,
    Meanwhile,
    Played,
    Society,
    demo_society,
    make_agent,
    make_society,
    offline,
    play,
)

PROJECT = Path(__file__).parents[2]


def observed(
    society: Society, meanwhile: Meanwhile | None = None, **options: Any
) -> tuple[Played, Observer]:
    """Play with an observer, who must have seen no law broken."""
    observers: list[Observer] = []
    played = play(
        society,
        meanwhile,
        on_begin=lambda live: observers.append(Observer(live)),
        **options,
    )
    assert observers[0].breaches == []
    return played, observers[0]


# --- random societies -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Weather:
    """What a random model and random people do to a run, by a seed of their own."""

    seed: int
    p_hang: float
    p_fail: float
    p_unusable: float

    def latency(self, request: LlmRequest) -> float:
        luck = self._luck("latency", request)
        return 1000.0 if luck.random() < self.p_hang else luck.expovariate(1 / 4)

    def script(self, request: LlmRequest) -> Decision:
        luck = self._luck("script", request)
        if luck.random() < self.p_fail:
            raise TransientLlmError("busy", retry_after_seconds=luck.choice((None, 2.0, 30.0)))
        if luck.random() < self.p_unusable:
            raise UnusableAnswer("unparsable")
        return eager(request)

    def _luck(self, purpose: str, request: LlmRequest) -> Random:
        key = (request.agent, request.turn, request.phase, request.thread or 0, request.attempt)
        return keyed_random(self.seed, purpose, *key)

    async def people(self, live: Live) -> None:
        """Write, call, answer, open again, pause, bring back, regroup and add, at random times."""
        luck = keyed_random(self.seed, "people")
        while True:
            await live.sleep(luck.expovariate(1 / 15))
            agents = list(live.tables.agents)
            one = live.tables.agents[luck.choice(agents)]
            match luck.randrange(5):
                case 0:
                    text = luck.choice(("Hello", f"@{one.bot_name} hello"))
                    live.society.people.write_message(channel=1, text=text, at=live.clock.now())
                case 1:
                    state = luck.choice((Status.ACTIVE, Status.PAUSED))
                    live.society.save_agent(make_agent(one.id, status=state))
                case 2 if len(agents) < 16:
                    live.society.save_agent(make_agent(max(agents) + 1))
                case 3:
                    chosen = tuple(sorted(luck.sample(agents, len(agents) // 2)))
                    live.society.change_topology(cohorts={"north": chosen, "south": (1, 2)})
                case 4 if live.tables.heights:
                    text = luck.choice(("And?", f"@{one.bot_name} and?"))
                    root = luck.choice(list(live.tables.heights))
                    live.society.people.write_message(
                        channel=1, text=text, root=root, at=live.clock.now()
                    )
            live.beat()


societies = st.fixed_dictionaries(
    {
        "n_agents": st.integers(2, 10),
        "policy": st.sampled_from(["open", "isolated", "off"]),
        "n_cohorts": st.integers(1, 3),
    }
)
weathers = st.builds(
    Weather,
    seed=st.integers(0, 10_000),
    p_hang=st.sampled_from([0.0, 0.02, 0.2]),
    p_fail=st.sampled_from([0.0, 0.1]),
    p_unusable=st.sampled_from([0.0, 0.1]),
)
run_settings = st.fixed_dictionaries(
    {
        "concurrent_turns": st.integers(1, 4),
        "max_llm_calls_in_flight": st.sampled_from([1, 3, 16]),
        "turn_delay_seconds": st.sampled_from([0.0, 7.0]),
        "scan_delay_seconds": st.sampled_from([0.0, 30.0]),
        "post_interval_seconds": st.sampled_from([0.0, 40.0]),
        "pair_rest_seconds": st.sampled_from([0.0, 60.0]),
        "active_thread_threshold": st.integers(1, 3),
        "daily_posts": st.sampled_from([1, 50]),
        "unreviewed_proposals": st.sampled_from([1, 50]),
        "calls_per_window": st.sampled_from([None, 3]),
        "max_turn_seconds": st.sampled_from([15.0, 60.0]),
        "max_calls": st.sampled_from([None, 60]),
    }
)


def grouped(n_agents: int, policy: str, n_cohorts: int) -> Society:
    numbers = range(1, n_agents + 1)
    cohorts = {
        f"c{key}": tuple(one for one in numbers if one % n_cohorts == key)
        for key in range(n_cohorts)
    }
    cohorts["c0"] = (*cohorts["c0"], 1) if 1 not in cohorts["c0"] else cohorts["c0"]
    return make_society(n_agents, cohorts=cohorts, policy=policy)


@settings(max_examples=settings().max_examples // 7, suppress_health_check=[HealthCheck.too_slow])
@given(made_of=societies, weather=weathers, values=run_settings, crowd=st.sampled_from([1, 100]))
def test_selection_keeps_its_laws_in_random_societies(
    made_of: dict[str, Any], weather: Weather, values: dict[str, Any], crowd: int
) -> None:
    """Order, full slots, one turn at a time, cooldown, the number of slots, the bound of a wait.

    Also where two agents are a crowd already, of whom each is judged when a slot is granted.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(watch, "JUDGED_AT_ONCE", crowd)
        patch.setattr(engine, "JUDGED_AT_ONCE", crowd)
        played, observer = observed(
            grouped(**made_of),
            weather.people,
            script=weather.script,
            latency=weather.latency,
            until_idle=False,
            max_turns=40,
            max_minutes=60,
            **values,
        )
    turns = played.tables.turns.values()
    assert observer.longest_wait_seconds <= max(turn.waited_seconds for turn in turns)
    assert all(turn.waited_seconds <= turn.wait_bound_seconds for turn in turns)
    assert played.engine.rules.claims.is_empty


def test_observer_sees_queues_at_all() -> None:
    """The control: where everybody always has work, somebody waits whenever time passes."""
    _, observer = observed(always_at_work(6), **SATURATED, latency=2.0, max_turns=60)
    assert observer.n_jumps_with_a_queue > 20
    assert observer.most_in_flight == 2


# --- saturation -------------------------------------------------------------------------------------

#: Nothing rests and nothing is capped: whoever may write always has something to write.
SATURATED: dict[str, Any] = {
    "concurrent_turns": 2,
    "daily_posts": 10**6,
    "unreviewed_proposals": 10**6,
    "until_idle": False,
}


def always_at_work(n_agents: int) -> Society:
    """Return agents that may deal with nobody: each turn of theirs is one new root."""
    apart = {f"c{one}": (one,) for one in range(1, n_agents + 1)}
    return make_society(n_agents, cohorts=apart, policy="isolated")


def turns_of(tables: Tables) -> Counter[int]:
    return Counter(turn.agent for turn in tables.turns.values())


@pytest.mark.parametrize(
    ("policy", "cohorts"),
    [
        ("open", {"big": tuple(range(1, 9)), "small": (9, 10)}),
        ("isolated", {"one": (1,), "pair": (1, 2), "hub": (1, 3, 4, 5, 6)}),
        ("off", {"all": tuple(range(1, 13))}),
    ],
)
def test_saturated_agents_get_the_same_share_whatever_their_cohorts(
    policy: str, cohorts: dict[str, tuple[int, ...]]
) -> None:
    society = make_society(12, cohorts=cohorts, policy=policy)
    options = SATURATED | {"concurrent_turns": 4, "max_turns": 180}
    played, _ = observed(society, **options, script=by_phase(eager, scan=silent), latency=1.0)
    shares = turns_of(played.tables)
    assert set(shares.values()) == {15}


def test_slots_are_refilled_at_once() -> None:
    """Nine take 2 s and one takes 50 s: the slow one holds one slot, and never all three."""
    played, _ = observed(
        always_at_work(10),
        **SATURATED | {"concurrent_turns": 3},
        latency=lambda request: 50.0 if request.agent == "a10" else 2.0,
        max_minutes=100 / 60,
    )
    finished = Counter(
        turn.agent
        for turn in played.tables.turns.values()
        if turn.outcome is not TurnOutcome.CANCELLED
    )
    assert finished.pop(10) in {1, 2}
    assert all(10 <= finished[one] <= 13 for one in range(1, 10))


def test_joiner_every_twenty_seconds_starves_nobody() -> None:
    async def join(live: Live) -> None:
        while len(live.tables.agents) < 30:
            await live.sleep(20)
            number = len(live.tables.agents) + 1
            live.society.cohorts[f"c{number}"] = (number,)
            live.society.save_agent(make_agent(number))
            live.beat()

    played, observer = observed(
        always_at_work(6), join, **SATURATED | {"concurrent_turns": 1}, latency=5.0, max_turns=120
    )
    assert len(played.tables.agents) == 30
    for one in range(1, 7):
        numbers = [row.number for row in observer.selections if row.agent == one]
        assert max(later - sooner for sooner, later in pairwise(numbers)) <= 30


def test_turn_that_hangs_is_over_at_its_deadline_and_holds_nobody_up() -> None:
    played, observer = observed(
        always_at_work(6),
        **SATURATED,
        latency=lambda request: 10_000.0 if request.agent in {"a1", "a2"} else 1.0,
        max_turn_seconds=30.0,
        max_turns=60,
    )
    cancelled = [turn for turn in played.tables.turns.values() if turn.agent in {1, 2}]
    assert {(turn.outcome, turn.detail) for turn in cancelled} == {
        (TurnOutcome.CANCELLED, "deadline")
    }
    lengths = [
        turn.finished_at - turn.selected_at for turn in cancelled if turn.finished_at is not None
    ]
    assert set(lengths) == {timedelta(seconds=30)}
    assert 0 < observer.longest_wait_seconds <= 3 * 30


def test_cooldown_counts_from_the_end_of_a_turn() -> None:
    played, _ = observed(
        always_at_work(3), **SATURATED, latency=4.0, turn_delay_seconds=10.0, max_turns=30
    )
    for one in (1, 2, 3):
        turns = [turn for turn in played.tables.turns.values() if turn.agent == one]
        gaps = [
            (later.selected_at - sooner.finished_at).total_seconds()
            for sooner, later in pairwise(turns)
            if sooner.finished_at is not None
        ]
        assert len(gaps) == 9
        assert all(10.0 <= gap < 10.001 for gap in gaps)


def test_cooldown_is_kept_by_the_next_run() -> None:
    society = always_at_work(1)
    play(society, **SATURATED, turn_delay_seconds=60.0, max_turns=1)
    play(society, **SATURATED, turn_delay_seconds=60.0, max_turns=1)
    first, second = society.tables.turns.values()
    assert first.finished_at is not None
    assert second.selected_at - first.finished_at == timedelta(seconds=60)


def test_calls_in_flight_keep_their_limit_in_all_and_within_a_turn() -> None:
    society = make_society(30, policy="off")
    for _ in range(12):
        society.people.write_message(channel=1, text="@Bot1 hello", at=society.starts_at)
    played = play(
        society,
        latency=5.0,
        concurrent_turns=8,
        active_thread_threshold=20,
        max_llm_calls_in_flight=7,
        max_turns=60,
    )
    assert played.llm.most_in_flight == 7
    assert max(played.llm.most_in_flight_of.values()) == 5


# --- the same again -----------------------------------------------------------------------------------


def digest(tables: Tables) -> str:
    """Return a fingerprint of all rows; sets inside a topology have no order to print."""
    rows = {
        column.name: repr(getattr(tables, column.name))
        for column in fields(tables)
        if column.name not in {"gate", "snapshots"}
    }
    return blake2b(repr(rows).encode()).hexdigest()


def play_of_a_seed(seed: int, *, scripted: bool) -> Tables:
    society = demo_society() if not scripted else grouped(8, "open", 3)
    weather = Weather(seed=seed, p_hang=0.05, p_fail=0.1, p_unusable=0.1)
    model: dict[str, Any] = {"llm": offline(seed, latency_seconds=3.0)}
    if scripted:
        model = {"script": weather.script, "latency": weather.latency}
    played = play(
        society,
        seed=seed,
        concurrent_turns=1,
        max_turns=80 if scripted else 25,
        max_turn_seconds=60.0,
        **model,
    )
    return played.tables


@pytest.mark.parametrize("scripted", [False, True])
def test_same_seed_gives_the_same_rows(*, scripted: bool) -> None:
    first, again = (play_of_a_seed(3, scripted=scripted) for _ in range(2))
    assert len(first.messages) > 10
    assert digest(first) == digest(again)
    assert digest(first) != digest(play_of_a_seed(4, scripted=scripted))


def test_same_seed_gives_the_same_rows_in_every_process() -> None:
    code = (
        "from tests.runtime.test_scheduling_laws import digest, play_of_a_seed;"
        "print(digest(play_of_a_seed(3, scripted=False)))"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=PROJECT,
            env={**os.environ, "PYTHONHASHSEED": salt},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for salt in ("1", "2")
    }
    assert len(digests) == 1
    assert len(digests.pop()) == 128
