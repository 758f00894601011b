"""Money that is promised before it is spent: the same rules in every store."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING

import pytest

from engine.core.errors import Fenced
from engine.core.money import Caps, DayMoney, MonthMoney, NoMoney
from tests.contract.groups import call, group, turn
from tests.contract.site import commit, run

if TYPE_CHECKING:
    from engine.core.effects import CallRecord
    from engine.ports.store import Store
    from tests.contract.site import Site

MONDAY, TUESDAY = date(2026, 3, 2), date(2026, 3, 3)
NO_CAPS = Caps()


def paid(number: int, price: int, *, agent: int = 1, on: date = MONDAY, of: int = 1) -> CallRecord:
    """Return call `number` of turn `of`, about to leave at this price."""
    made = call(of, number, agent=agent)
    return replace(made, reserved_on=on, reserved_nano_usd=price, cost_nano_usd=None)


def cost(made: CallRecord, nano_usd: int | None) -> CallRecord:
    return replace(made, cost_nano_usd=nano_usd, input_tokens=10, model="paid")


async def ask(store: Store, made: CallRecord, caps: Caps = NO_CAPS) -> NoMoney | None:
    return await store.reserve(made, turn=turn(made.turn, agent=made.agent), caps=caps)


def reserve(store: Store, made: CallRecord, caps: Caps = NO_CAPS) -> NoMoney | None:
    return run(ask(store, made, caps))


def settle(store: Store, made: CallRecord) -> None:
    """Settle a call and wait until that is stored: reservations come after it, in order."""

    async def settled() -> None:
        store.settle(made)
        await ask(store, paid(99, 0, of=99))

    run(settled())


def test_reservation_is_stored_with_its_turn_before_the_call_leaves(site: Site) -> None:
    store = site.open_store()
    assert reserve(store, paid(1, 60)) is None
    assert site.calls() == {(1, 1): ("reserved", 60, None)}
    assert site.turns() == {1}
    assert site.day(MONDAY) == DayMoney(day=MONDAY, spent=0, reserved=60)


@pytest.mark.parametrize(
    ("caps", "reason"),
    [(Caps(run=100), "money_cap"), (Caps(agent=100), "own_money_cap")],
)
def test_cap_is_never_exceeded_by_promises(site: Site, caps: Caps, reason: str) -> None:
    store = site.open_store()
    assert reserve(store, paid(1, 60), caps) is None
    assert reserve(store, paid(2, 41), caps) == NoMoney(reason=reason)
    assert reserve(store, paid(3, 40), caps) is None
    assert reserve(store, paid(4, 1), caps) == NoMoney(reason=reason)
    assert site.day(MONDAY).reserved == 100
    assert set(site.calls()) == {(1, 1), (1, 3)}


def test_first_promise_is_compared_with_the_cap_too(site: Site) -> None:
    store = site.open_store()
    assert reserve(store, paid(1, 101), Caps(run=100)) == NoMoney(reason="money_cap")
    assert site.calls() == {}
    assert site.day(MONDAY).reserved == 0


def test_own_cap_counts_one_agent_alone(site: Site) -> None:
    store = site.open_store()
    assert reserve(store, paid(1, 100), Caps(agent=100)) is None
    assert reserve(store, paid(2, 100, agent=2), Caps(agent=100)) is None
    assert reserve(store, paid(3, 1), Caps(agent=100)) == NoMoney(reason="own_money_cap")


def test_day_has_a_cap_of_its_own_and_another_day_another_account(site: Site) -> None:
    store = site.open_store()
    site.set_day_cap(100)
    assert reserve(store, paid(1, 70)) is None
    spent = DayMoney(day=MONDAY, spent=0, reserved=70, cap=100)
    assert reserve(store, paid(2, 31)) == NoMoney(reason="day_cap", day=spent)
    assert reserve(store, paid(3, 100, on=TUESDAY)) is None
    site.set_day_cap(101)
    assert reserve(store, paid(4, 31)) is None


def test_raised_cap_of_a_run_holds_at_once(site: Site) -> None:
    store = site.open_store()
    assert reserve(store, paid(1, 150), Caps(run=100)) == NoMoney(reason="money_cap")
    site.raise_money(150)
    assert reserve(store, paid(1, 150), Caps(run=100)) is None


def test_settling_gives_back_what_the_call_did_not_cost(site: Site) -> None:
    store = site.open_store()
    made = paid(1, 100)
    assert reserve(store, made, Caps(run=100)) is None
    settle(store, cost(made, 30))
    assert site.calls()[1, 1] == ("settled", 100, 30)
    assert site.day(MONDAY) == DayMoney(day=MONDAY, spent=30, reserved=0)
    assert reserve(store, paid(2, 71), Caps(run=100)) == NoMoney(reason="money_cap")
    assert reserve(store, paid(3, 70), Caps(run=100)) is None


@pytest.mark.parametrize("first", ["settle", "commit"])
def test_call_is_settled_once_by_whoever_comes_first(site: Site, first: str) -> None:
    store = site.open_store()
    made = paid(1, 100)
    assert reserve(store, made) is None
    done = cost(made, 30)
    carrying = group(1, turns=[turn(1)], calls=[done])
    if first == "settle":
        settle(store, done)
        commit(store, carrying)
    else:
        commit(store, carrying)
        settle(store, done)
    assert site.calls()[1, 1] == ("settled", 100, 30)
    assert site.day(MONDAY) == DayMoney(day=MONDAY, spent=30, reserved=0)


def test_call_without_a_price_is_stored_and_promises_nothing(site: Site) -> None:
    store = site.open_store()
    made = paid(1, 0)
    assert reserve(store, made, Caps(run=1)) is None
    settle(store, cost(made, None))
    assert site.calls()[1, 1] == ("settled", 0, None)
    assert site.day(MONDAY) == DayMoney(day=MONDAY)


def test_free_call_needs_no_reservation(site: Site) -> None:
    store = site.open_store()
    commit(store, group(1, turns=[turn(1)], calls=[call(1, 1)]))
    assert site.calls() == {(1, 1): ("settled", 0, 0)}
    assert site.day(MONDAY) == DayMoney(day=MONDAY)


def test_driver_that_lost_its_lease_reserves_nothing(site: Site) -> None:
    early = site.open_store()
    assert reserve(early, paid(1, 1)) is None
    late = site.open_store()
    with pytest.raises(Fenced):
        reserve(early, paid(2, 1))
    assert reserve(late, paid(3, 1)) is None
    assert set(site.calls()) == {(1, 1), (1, 3)}


def test_driver_that_lost_its_lease_settles_nothing(site: Site) -> None:
    early = site.open_store()
    made = paid(1, 100)
    assert reserve(early, made) is None
    site.open_store()
    with pytest.raises(Fenced):
        settle(early, cost(made, 30))
    site.take_over()
    assert site.calls()[1, 1] == ("settled", 100, 100)


def test_take_over_settles_at_its_estimate_what_died_in_flight(site: Site) -> None:
    early = site.open_store()
    assert reserve(early, paid(1, 100)) is None
    assert reserve(early, paid(2, 40, agent=2, on=TUESDAY)) is None
    assert reserve(early, paid(3, 0)) is None
    settled = paid(4, 50)
    assert reserve(early, settled) is None
    settle(early, cost(settled, 5))
    late = site.open_store()
    site.take_over()
    assert site.calls() == {
        (1, 1): ("settled", 100, 100),
        (1, 2): ("settled", 40, 40),
        (1, 3): ("settled", 0, None),
        (1, 4): ("settled", 50, 5),
    }
    assert site.day(MONDAY) == DayMoney(day=MONDAY, spent=105, reserved=0)
    assert site.day(TUESDAY) == DayMoney(day=TUESDAY, spent=40, reserved=0)
    assert reserve(late, paid(5, 56), Caps(run=200)) == NoMoney(reason="money_cap")


def test_cancelled_reservation_promises_nothing(site: Site) -> None:
    store = site.open_store()

    async def cancelled() -> None:
        asking = asyncio.ensure_future(ask(store, paid(1, 100)))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        asking.cancel()
        await asyncio.wait([asking])
        assert asking.cancelled()
        await ask(store, paid(2, 0))

    run(cancelled())
    assert set(site.calls()) == {(1, 2)}
    assert site.day(MONDAY) == DayMoney(day=MONDAY)


def test_reservations_of_one_moment_are_answered_each_for_itself(site: Site) -> None:
    store = site.open_store()

    async def at_once() -> list[NoMoney | None]:
        return await asyncio.gather(
            *(ask(store, paid(number, 30), Caps(run=100)) for number in range(1, 6))
        )

    answers = run(at_once())
    assert [answer is None for answer in answers] == [True, True, True, False, False]
    assert site.day(MONDAY).reserved == 90


def test_beat_tells_the_money_of_the_day_once_something_is_paid_for(site: Site) -> None:
    store = site.open_store()
    assert store.beat().day is None
    site.set_day_cap(100)
    assert reserve(store, paid(1, 30)) is None
    assert store.beat().day == DayMoney(day=MONDAY, spent=0, reserved=30, cap=100)


def test_runs_of_a_schedule_share_the_money_of_a_month(site: Site) -> None:
    site.belong_to_a_schedule(100)
    store = site.open_store()
    assert reserve(store, paid(1, 60)) is None
    month = MonthMoney(month=date(2026, 3, 1), spent=0, reserved=60, cap=100)
    assert reserve(store, paid(2, 41, on=TUESDAY)) == NoMoney(reason="month_cap", month=month)
    assert site.day(TUESDAY).reserved == 0
    assert reserve(store, paid(3, 100, on=date(2026, 4, 1))) is None
    settle(store, cost(paid(1, 60), 30))
    assert store.beat().month == replace(month, spent=30, reserved=0)
    assert reserve(store, paid(4, 70)) is None
    site.take_over()
    assert store.beat().month == replace(month, spent=100, reserved=0)


def test_run_without_a_schedule_has_no_money_of_a_month(site: Site) -> None:
    store = site.open_store()
    assert reserve(store, paid(1, 60)) is None
    assert store.beat().month is None


def test_schedule_without_a_cap_counts_its_month_all_the_same(site: Site) -> None:
    site.belong_to_a_schedule(None)
    store = site.open_store()
    assert reserve(store, paid(1, 60)) is None
    assert store.beat().month == MonthMoney(month=date(2026, 3, 1), reserved=60)


def test_as_many_calls_are_on_their_way_as_may(site: Site) -> None:
    """Whatever they cost; one that is back makes place for another."""
    site.set_max_in_flight(2)
    store = site.open_store()
    first = paid(1, 60)
    assert [reserve(store, first), reserve(store, paid(2, 0))] == [None, None]
    crowded = NoMoney(reason="too_many_calls")
    assert reserve(store, paid(3, 10)) == crowded
    assert site.day(MONDAY).reserved == 60
    assert set(site.calls()) == {(1, 1), (1, 2)}
    settled = replace(first, cost_nano_usd=5)
    commit(store, group(1, turns=[turn(1)], calls=[settled]))
    assert [reserve(store, paid(3, 10)), reserve(store, paid(4, 10))] == [None, crowded]
