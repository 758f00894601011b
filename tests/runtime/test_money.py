"""Money in whole runs in memory: twenty agents at five slots, and two runs under one day's cap."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from engine.core.errors import TransientLlmError, UnusableAnswer
from engine.core.prices import PriceTable, in_usd
from engine.core.usage import Receipt, Usage
from engine.money.table import shipped_prices
from tests.paid_llm import PaidLlm
from tests.runtime.parts import at_home, raising
from tests.runtime.scripted_llm import Script, eager
from tests.runtime.society import (
    Live,
    Played,
    Society,
    drive,
    in_virtual_time,
    make_agent,
    make_society,
    play,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.ports.clock import Clock
    from engine.ports.llm import Llm, LlmAnswer, LlmRequest

CENT = 10**7
PRICES = PriceTable(shipped_prices())


def paid(model: str = "claude-sonnet-4-5", script: Script = eager) -> Callable[[Clock], Llm]:
    def make(clock: Clock) -> Llm:
        return PaidLlm(
            clock=clock,
            prices=PRICES,
            model=model,
            script=script,
            seconds=lambda request: 1.0 + len(request.agent) % 3,
        )

    return make


def llm_of(played: Played) -> PaidLlm:
    assert isinstance(played.live.llm, PaidLlm)
    return played.live.llm


def spent(society: Society) -> int:
    return sum(call.cost_nano_usd or 0 for call in society.tables.calls.values())


@pytest.mark.parametrize("cents", [7, 8, 30])
def test_twenty_agents_at_five_slots_never_overshoot(cents: int) -> None:
    society = make_society(20)
    cap = cents * CENT
    played = play(society, concurrent_turns=5, max_nano_usd=cap, llm=paid())
    assert played.reason == "money_cap"
    assert 0 < llm_of(played).billed_nano_usd <= cap
    assert spent(society) == llm_of(played).billed_nano_usd
    assert not society.tables.reserved
    purse = society.tables.purses.by_name[f"run {society.tables.run}"]
    assert (purse.spent, purse.reserved) == (spent(society), 0)
    assert "raise max_usd, then resume it" in played.ending.sentence


def test_two_runs_at_once_never_overshoot_the_money_of_a_day() -> None:
    """Each of the two, alone, would spend more than the day has."""
    one, other = make_society(10), make_society(10)
    other.tables.purses = one.tables.purses
    other.tables.run = 100
    one.tables.purses.day_cap = cap = 20 * CENT

    async def both() -> list[Played]:
        return await asyncio.gather(
            *(
                drive(each, concurrent_turns=5, llm=paid(), beat_seconds=0.5)
                for each in (one, other)
            )
        )

    for played in (all_played := in_virtual_time(both())):
        assert played.reason == "money_cap"
        assert "resume it after midnight (UTC), or raise" in played.ending.sentence
    billed = [llm_of(played).billed_nano_usd for played in all_played]
    assert cap * 8 // 10 < sum(billed) <= cap
    assert min(billed) > 0
    day = one.tables.purses.day_money(one.starts_at.date())
    assert (day.spent, day.reserved) == (sum(billed), 0)


def test_day_that_begins_lets_a_run_go_on() -> None:
    """At midnight the day's money is there again, for a run that has not paused."""
    society = at_home(2)
    society.tables.purses.day_cap = 3 * CENT
    assert play(society, llm=paid(), beat_seconds=0.5).reason == "money_cap"
    assert play(society, llm=paid(), beat_seconds=0.5).reason == "money_cap"
    first = spent(society)
    assert 0 < first <= 3 * CENT
    society.starts_at = society.starts_at.replace(day=society.starts_at.day + 1)
    play(society, llm=paid(), beat_seconds=0.5)
    assert spent(society) > first


def test_raised_money_of_a_day_is_heard_by_a_run_that_waits() -> None:
    """Another run's promise keeps it waiting; the raise wakes it before it would pause."""
    society = make_society(4)
    purses = society.tables.purses
    purses.day_cap = 3 * CENT
    purses.by_name[f"day {society.starts_at.date().isoformat()}"].reserved = 3 * CENT

    async def raise_it(live: Live) -> None:
        await live.sleep(20)
        assert not society.tables.calls
        purses.day_cap = 10 * CENT

    play(society, raise_it, llm=paid(), beat_seconds=0.5)
    assert 0 < spent(society) <= 7 * CENT


def test_run_pauses_when_the_month_of_its_schedule_is_spent() -> None:
    society = make_society(10)
    society.tables.schedule, society.tables.purses.month_caps[7] = 7, 8 * CENT
    played = play(society, concurrent_turns=5, llm=paid(), beat_seconds=0.5)
    assert played.reason == "money_cap"
    assert 0 < llm_of(played).billed_nano_usd <= 8 * CENT
    month = society.tables.purses.month_money(7, society.starts_at.date())
    assert month is not None
    assert (month.spent, month.reserved) == (spent(society), 0)
    assert played.ending.sentence == (
        f"The runs of its schedule have spent or promised {in_usd(spent(society))} of the $0.0800 "
        f"that they may in {society.starts_at:%Y-%m}: raise the money of a month on the page of "
        "the schedule, or wait for the next, then resume it."
    )


def test_raised_money_of_a_month_is_heard_by_a_run_that_goes_on() -> None:
    society = make_society(4)
    purses = society.tables.purses
    society.tables.schedule, purses.month_caps[7] = 7, 10 * CENT
    purses.by_name[f"schedule 7 month {society.starts_at:%Y-%m}"].spent = 9 * CENT

    async def raise_it(live: Live) -> None:
        purses.month_caps[7] = 100 * CENT
        await live.sleep(1)

    play(society, raise_it, llm=paid(), beat_seconds=0.5)
    assert spent(society) > 2 * CENT


def test_promise_that_never_comes_back_is_waited_for_a_minute() -> None:
    society = make_society(4)
    purses = society.tables.purses
    purses.day_cap = 3 * CENT
    purses.by_name[f"day {society.starts_at.date().isoformat()}"].reserved = 3 * CENT
    begun_at = society.starts_at
    played = play(society, llm=paid(), beat_seconds=0.5)
    assert played.reason == "money_cap"
    assert 60 <= (played.live.clock.now() - begun_at).total_seconds() < 62


def test_own_money_rests_only_its_agent() -> None:
    agents = [make_agent(number) for number in range(1, 9)]
    agents[0] = make_agent(1, max_nano_usd=25 * CENT // 10)
    society = make_society(agents)
    played = play(society, llm=paid())
    assert played.reason == "idle"
    calls = society.tables.calls.values()
    own = sum(call.cost_nano_usd or 0 for call in calls if call.agent == 1)
    others = sum(call.cost_nano_usd or 0 for call in calls if call.agent == 2)
    assert 0 < own <= 25 * CENT // 10 < others
    assert played.engine.watch.whys[1] == "own_money_cap"


def test_unpriced_model_is_shown_as_that_and_stops_under_a_cap() -> None:
    society = make_society(2)
    played = play(society, llm=paid("claude-next"), max_turns=3)
    assert {call.cost_nano_usd for call in society.tables.calls.values()} == {None}
    capped = make_society(2)
    played = play(capped, llm=paid("claude-next"), max_nano_usd=CENT)
    assert (played.reason, len(capped.tables.calls)) == ("nobody_left", 0)
    assert set(played.engine.watch.whys.values()) == {"unpriced"}


def receipt(usage: Usage) -> Receipt:
    return Receipt(model="m", prompt_version="1", finish_reason="", usage=usage)


BILLED = Usage(input_tokens=50, output_tokens=5, cache_read_tokens=7, cost_nano_usd=1_234)


@pytest.mark.parametrize(
    ("error", "cost"),
    [
        (UnusableAnswer("refused", receipt=receipt(BILLED)), 1_234),
        (TransientLlmError("busy", retry_after_seconds=60, receipt=receipt(Usage())), 0),
        (TransientLlmError("cut off", retry_after_seconds=60), None),
    ],
    ids=["unusable", "refused before", "of unknown fate"],
)
def test_failed_call_costs_what_was_billed_or_its_estimate(
    error: Exception, cost: int | None
) -> None:
    society = at_home(1)
    play(society, llm=paid(script=raising(error)), max_turns=1)  # type: ignore[arg-type]
    (call,) = society.tables.calls.values()
    assert call.cost_nano_usd == (call.reserved_nano_usd if cost is None else cost)
    assert call.input_tokens == (50 if cost == 1_234 else 0)
    assert call.reserved_nano_usd > 10_000


def test_call_leaves_only_after_its_reservation_is_stored() -> None:
    society = at_home(3)
    seen: list[bool] = []

    def asked(request: Any) -> Any:
        seen.append((request.turn, 1) in society.tables.reserved)
        return eager(request)

    play(society, llm=paid(script=asked), max_turns=3)
    assert seen
    assert all(seen)


def test_call_does_not_leave_when_trust_is_lost_while_it_is_reserved() -> None:
    """A store that is waited for may take longer than the lease is trusted."""
    seen: list[bool] = []
    reserved = asyncio.Event()

    def distrust_after_reserving(live: Live) -> None:
        reserve = live.store.reserve

        async def slow(*args: Any, **options: Any) -> Any:
            answer = await reserve(*args, **options)
            live.store.is_trusted = bool(seen)
            reserved.set()
            return answer

        vars(live.store)["reserve"] = slow

    async def watch(live: Live) -> None:
        await reserved.wait()
        for _ in range(200):
            await asyncio.sleep(0)
        assert isinstance(live.llm, PaidLlm)
        seen.append(live.llm.n_unbilled == 0 and live.llm.billed_nano_usd == 0)
        live.store.is_trusted = True
        live.beat()

    played = play(at_home(1), watch, llm=paid(), on_begin=distrust_after_reserving, max_turns=1)
    assert seen == [True]
    assert llm_of(played).billed_nano_usd > 0


def test_two_runs_share_the_places_on_the_way_to_the_model() -> None:
    """Three calls at once, of ten that the two would make: who finds no place waits, and comes."""
    one, other = make_society(6), make_society(6)
    other.tables.purses = one.tables.purses
    other.tables.run = 100
    one.tables.purses.max_in_flight = 3
    in_flight = most = 0

    class Counting(PaidLlm):
        async def complete(self, request: LlmRequest) -> LlmAnswer:
            nonlocal in_flight, most
            in_flight += 1
            most = max(most, in_flight)
            try:
                return await super().complete(request)
            finally:
                in_flight -= 1

    def counting(clock: Clock) -> Llm:
        return Counting(clock=clock, prices=PRICES, script=eager)

    async def both() -> list[Played]:
        return await asyncio.gather(
            *(drive(each, concurrent_turns=5, max_turns=20, llm=counting) for each in (one, other))
        )

    for played in in_virtual_time(both()):
        assert played.reason == "turn_limit"
    assert most == 3
    assert one.tables.purses.n_in_flight == 0
