"""Caps of calls and money: reserved before each call, never exceeded, and the pause they make."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from engine.core.records import Outcome
from engine.loop.watch import JUDGED_AT_ONCE
from tests.runtime.parts import at_home
from tests.runtime.scripted_llm import ScriptedLlm, by_phase, eager, silent
from tests.runtime.society import Live, Society, make_agent, make_society, play

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.ports.clock import Clock
    from engine.ports.llm import Llm

MANY = 20


def priced(estimate: int, cost: int, seconds: float = 1.0) -> Callable[[Clock], Llm]:
    """Return what makes a model whose calls cost money, in nano-USD."""

    def make(clock: Clock) -> Llm:
        return ScriptedLlm(
            clock=clock,
            script=eager,
            latency=lambda request: seconds * (1 + len(request.agent) % 3),
            estimate_nano_usd=estimate,
            cost_nano_usd=cost,
        )

    return make


def money_of(society: Society) -> int:
    return sum(call.cost_nano_usd or 0 for call in society.tables.calls.values())


@pytest.mark.parametrize("slots", [1, 8])
def test_calls_stop_at_the_cap_exactly(slots: int) -> None:
    played = play(make_society(MANY), latency=1.0, concurrent_turns=slots, max_calls=37)
    assert played.reason == "call_cap"
    assert len(played.tables.calls) == len(played.llm.requests) == 37


@pytest.mark.parametrize("slots", [1, 8])
def test_money_never_exceeds_its_cap(slots: int) -> None:
    society = make_society(MANY)
    played = play(society, concurrent_turns=slots, max_nano_usd=1_000, llm=priced(30, 20))
    assert played.reason == "money_cap"
    assert 970 < money_of(society) <= 1_000


def test_money_too_little_for_one_more_call_pauses_the_run() -> None:
    society = make_society(MANY)
    played = play(
        society,
        until_idle=False,
        max_minutes=60,
        concurrent_turns=8,
        max_nano_usd=95,
        llm=priced(10, 10),
    )
    assert (played.reason, money_of(society)) == ("money_cap", 90)


def test_money_reserved_by_others_is_waited_for() -> None:
    """Eight estimates fill the cap at once; what was not spent of them buys further calls."""
    society = make_society(MANY)
    played = play(society, concurrent_turns=8, max_nano_usd=800, llm=priced(100, 10))
    assert played.reason == "money_cap"
    assert money_of(society) == 710


def test_raised_cap_lets_the_next_run_go_on() -> None:
    society = make_society(4)
    assert play(society, max_calls=5).reason == "call_cap"
    assert play(society, max_calls=5).reason == "call_cap"
    assert len(society.tables.calls) == 10


def test_raised_cap_is_heard_while_the_run_goes_on() -> None:
    async def raise_cap(live: Live) -> None:
        await live.sleep(1)
        live.tables.max_calls = 9
        live.beat()

    played = play(make_society(4), raise_cap, latency=2.0, max_calls=3)
    assert (played.reason, len(played.tables.calls)) == ("call_cap", 9)


def test_own_cap_benches_only_its_agent() -> None:
    agents = [make_agent(1, max_calls=1), make_agent(2), make_agent(3)]
    played = play(make_society(agents), script=silent)
    assert played.reason == "idle"
    calls = [call.agent for call in played.tables.calls.values()]
    assert calls.count(1) == 1
    assert played.engine.watch.whys[1] == "own_call_cap"


def test_run_ends_when_everybody_is_benched() -> None:
    agents = [make_agent(number, max_calls=1) for number in (1, 2)]
    played = play(make_society(agents), until_idle=False)
    assert played.reason == "nobody_left"


def test_debts_of_a_benched_agent_are_lost_at_once() -> None:
    """Its cap is spent by the first of two answers that it owes; nobody waits for the second."""
    society = make_society(3)
    for text in ("@Bot1 hello", "@Bot1 and this?"):
        society.people.write_message(channel=1, text=text, at=society.starts_at)
    quiet = by_phase(silent, reply=eager)
    play(society, script=quiet)
    assert len(society.tables.threads) == 2
    society.tables.agents[1] = make_agent(1, max_calls=1)
    for root in society.tables.threads:
        society.people.write_message(channel=1, text="And?", root=root, at=society.starts_at)
    played = play(society, script=quiet)
    assert [row.outcome for row in played.tables.decisions.values()] == [Outcome.LOST]
    assert len(played.engine.world.threads) == 1


@pytest.mark.parametrize("n_agents", [3, 2 * JUDGED_AT_ONCE])
def test_debts_of_an_agent_that_begins_benched_are_lost_at_once(n_agents: int) -> None:
    """Its cap was lowered between two runs; in a crowd it is judged when its turn comes."""
    society = at_home(n_agents)
    society.people.write_message(channel=1, text="@Bot1 hello", at=society.starts_at)
    quiet = by_phase(silent, reply=eager)
    play(society, script=quiet, daily_posts=0)
    (root,) = society.tables.threads
    society.people.write_message(channel=1, text="And?", root=root, at=society.starts_at)
    assert play(society, daily_posts=0, max_calls=0).reason == "call_cap"
    society.tables.agents[1] = make_agent(1, max_calls=0)
    played = play(society, script=quiet, daily_posts=0)
    assert [row.outcome for row in played.tables.decisions.values()] == [Outcome.LOST]
    assert played.engine.world.threads == {}


@pytest.mark.parametrize(("own", "most"), [(None, 2), (5, 5)])
def test_calls_of_an_agent_keep_within_the_sliding_window(own: int | None, most: int) -> None:
    agents = [make_agent(1, calls_per_window=own), make_agent(2), make_agent(3)]
    society = make_society(agents)
    played = play(
        society,
        until_idle=False,
        max_minutes=120,
        latency=1.0,
        calls_per_window=2,
        active_thread_threshold=1,
    )
    assert played.reason == "time_limit"
    times = [call.started_at for call in society.tables.calls.values() if call.agent == 1]
    assert len(times) > most
    for begin in times:
        window = [at for at in times if begin <= at < begin + timedelta(seconds=600)]
        assert len(window) <= most


def test_window_is_remembered_by_the_next_run() -> None:
    society = make_society(1)
    play(society, script=silent, calls_per_window=1, max_turns=1)
    assert len(society.tables.calls) == 1
    society.people.write_message(channel=1, text="Hello", at=society.starts_at)
    played = play(society, script=silent, calls_per_window=1)
    times = [call.started_at for call in played.tables.calls.values()]
    assert times[1] - times[0] == timedelta(seconds=600)
