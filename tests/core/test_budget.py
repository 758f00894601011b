"""The budget: calls and money reserved before each call, and never more than allowed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.budget import Budget, Reservation, Spent
from engine.core.config import RunConfig
from engine.core.money import Caps, DayMoney, MonthMoney, NoMoney
from tests.core.facts import AT, agent, later


def budget_of(**settings: int) -> Budget:
    return Budget(RunConfig(**settings))  # type: ignore[arg-type]


def reserve(budget: Budget, price: int = 0, *, of: int = 1) -> Reservation | Spent:
    return budget.reserve(agent(of), AT, n_threads=0, nano_usd=price)


def test_calls_are_capped_open_reservations_counted() -> None:
    budget = budget_of(max_calls=2)
    first = reserve(budget)
    assert isinstance(first, Reservation)
    assert isinstance(reserve(budget), Reservation)
    assert reserve(budget) == Spent(reason="call_cap", of_run=True)
    budget.settle(first, cost_nano_usd=0)
    assert reserve(budget) == Spent(reason="call_cap", of_run=True)
    assert budget.run_refusal(AT) == Spent(reason="call_cap", of_run=True)
    assert (budget.n_calls, budget.n_open, budget.is_open) == (1, 1, True)


def test_money_is_reserved_at_the_estimate_and_settled_at_the_cost() -> None:
    budget = budget_of(max_nano_usd=100)
    first = reserve(budget, 60)
    assert isinstance(first, Reservation)
    assert reserve(budget, 41) == Spent(reason="money_cap", of_run=True)
    budget.settle(first, cost_nano_usd=10)
    assert budget.run_refusal(AT) is None
    assert reserve(budget, 90) == Reservation(agent=1, nano_usd=90)
    assert budget.run_refusal(AT) == Spent(reason="money_cap", of_run=True)


def test_agent_is_refused_while_it_cannot_pay_what_it_could_not_pay() -> None:
    budget = budget_of(max_nano_usd=100)
    first = reserve(budget, 60)
    assert isinstance(first, Reservation)
    reserve(budget, 50, of=2)
    assert budget.refusal(agent(2), AT, n_threads=0) == Spent(reason="money_cap", of_run=True)
    assert budget.refusal(agent(3), AT, n_threads=0) is None
    budget.settle(first, cost_nano_usd=20)
    assert budget.refusal(agent(2), AT, n_threads=0) is None
    assert isinstance(reserve(budget, 30, of=2), Reservation)
    budget.settle(Reservation(agent=2, nano_usd=30), cost_nano_usd=40)
    assert budget.refusal(agent(2), AT, n_threads=0) is None


def test_without_caps_nothing_is_refused() -> None:
    budget = budget_of()
    assert isinstance(reserve(budget, 10**15), Reservation)
    assert budget.run_refusal(AT) is None


def test_own_cap_benches_one_agent() -> None:
    budget = budget_of()
    spec = agent(1, max_calls=1)
    assert isinstance(budget.reserve(spec, AT, n_threads=0, nano_usd=0), Reservation)
    assert budget.refusal(spec, AT, n_threads=0) == Spent(reason="own_call_cap")
    assert budget.refusal(agent(2, max_calls=1), AT, n_threads=0) is None


@pytest.mark.parametrize(("n_threads", "allowed"), [(0, 2), (1, 2), (2, 4), (3, 6), (9, 6)])
def test_window_allows_more_with_more_open_threads(n_threads: int, allowed: int) -> None:
    budget = budget_of(calls_per_window=2, active_thread_threshold=3)
    for _ in range(allowed):
        assert isinstance(
            budget.reserve(agent(1), AT, n_threads=n_threads, nano_usd=0), Reservation
        )
    refused = budget.refusal(agent(1), later(599), n_threads=n_threads)
    assert refused == Spent(reason="window", until=later(600))
    assert budget.refusal(agent(1), later(600), n_threads=n_threads) is None


def test_window_slides() -> None:
    budget = Budget(
        RunConfig(calls_per_window=1, active_thread_threshold=2), [(1, AT), (1, later(100))]
    )
    assert budget.refusal(agent(1), later(200), n_threads=2) == Spent(
        reason="window", until=later(600)
    )
    assert budget.refusal(agent(1), later(200), n_threads=1) == Spent(
        reason="window", until=later(700)
    )
    assert budget.refusal(agent(1), later(650), n_threads=2) is None


def test_own_window_goes_before_the_runs() -> None:
    budget = Budget(RunConfig(calls_per_window=1), [(1, AT)])
    assert budget.refusal(agent(1, calls_per_window=2), AT, n_threads=1) is None
    assert budget.refusal(agent(1), AT, n_threads=1) == Spent(reason="window", until=later(600))


def test_calls_made_before_count_against_every_cap() -> None:
    budget = budget_of(max_calls=5, max_nano_usd=100)
    budget.count(1, n_calls=3, nano_usd=40)
    budget.count(2, n_calls=1, nano_usd=10)
    assert (budget.n_calls, budget.spent_nano_usd) == (4, 50)
    assert budget.refusal(agent(1, max_calls=3), AT, n_threads=0) == Spent(reason="own_call_cap")
    assert reserve(budget, 51, of=3) == Spent(reason="money_cap", of_run=True)
    assert isinstance(reserve(budget, 50, of=3), Reservation)
    assert reserve(budget, of=3) == Spent(reason="call_cap", of_run=True)


@given(
    cap=st.integers(0, 500),
    calls=st.lists(st.tuples(st.integers(0, 100), st.floats(0, 1), st.integers(0, 5)), max_size=60),
)
def test_money_is_never_exceeded_whatever_is_open(
    cap: int, calls: list[tuple[int, float, int]]
) -> None:
    budget = budget_of(max_nano_usd=cap)
    in_flight: list[tuple[Reservation, int]] = []
    for estimate, share, n_settled in calls:
        made = reserve(budget, estimate)
        if isinstance(made, Reservation):
            in_flight.append((made, int(estimate * share)))
        for _ in range(min(n_settled, len(in_flight))):
            reservation, cost = in_flight.pop(0)
            budget.settle(reservation, cost_nano_usd=cost)
        assert budget.spent_nano_usd + sum(one.nano_usd or 0 for one, _ in in_flight) <= cap


def test_calls_are_kept_in_mind_only_where_a_window_is_set() -> None:
    budget = Budget(RunConfig())
    for spec in (agent(1), agent(2, calls_per_window=9)):
        for _ in range(3):
            assert not isinstance(budget.reserve(spec, AT, n_threads=0, nano_usd=0), Spent)
    assert {one: len(calls) for one, calls in budget._window.items() if calls} == {2: 3}


# --- the day's money, an agent's own, and models without a price ---------------------------------

TODAY = AT.date()


def day(spent: int, reserved: int = 0, *, cap: int | None = 100) -> DayMoney:
    return DayMoney(day=TODAY, spent=spent, reserved=reserved, cap=cap)


def test_day_has_room_until_its_cap_and_none_when_it_is_used_up() -> None:
    assert day(60, 30).has_room_for(10)
    assert not day(60, 30).has_room_for(11)
    assert not day(100).has_room_for(0)
    assert day(10**12, cap=None).has_room_for(10**12)


def test_spent_day_refuses_everybody_until_it_is_over() -> None:
    budget = budget_of()
    budget.day = day(100)
    assert reserve(budget, 1) == Spent(reason="day_cap", of_run=True)
    assert budget.run_refusal(AT) == Spent(reason="day_cap", of_run=True)
    tomorrow = later(24 * 3600)
    assert budget.run_refusal(tomorrow) is None
    assert budget.refusal(agent(1), tomorrow, n_threads=0) is None


def test_refusal_of_the_store_gives_the_reservation_back() -> None:
    budget = budget_of(max_calls=1, max_nano_usd=100)
    made = reserve(budget, 60)
    assert isinstance(made, Reservation)
    refused = budget.refused(made, NoMoney(reason="day_cap", day=day(50)), AT)
    assert refused == Spent(reason="day_cap", of_run=True)
    assert not budget.is_open
    assert budget.refusal(agent(1), AT, n_threads=0) == refused  # 60 more, and 50 are left
    assert budget.refusal(agent(2), AT, n_threads=0) is None
    budget.day = day(40)
    assert isinstance(reserve(budget, 60), Reservation)


def test_money_that_other_runs_may_give_back_is_waited_for_a_while() -> None:
    budget = budget_of()
    made = reserve(budget, 60)
    assert isinstance(made, Reservation)
    budget.granted(AT)
    assert not budget.waits_for_others(later(1))  # nobody was refused
    budget.refused(made, NoMoney(reason="day_cap", day=day(20, 50)), AT)
    assert budget.waits_for_others(later(59))
    assert not budget.waits_for_others(later(60))
    budget.day = day(70, 0)
    assert not budget.waits_for_others(later(1))
    budget.day = day(20, 50)
    budget.granted(later(40))  # a cheaper call; the refused one waits on
    assert budget.waits_for_others(later(99))
    assert not budget.waits_for_others(later(100))


def test_spent_month_refuses_everybody_until_it_is_over() -> None:
    budget = budget_of()
    made = reserve(budget, 60)
    assert isinstance(made, Reservation)
    month = MonthMoney(month=TODAY.replace(day=1), spent=50, cap=100)
    refused = budget.refused(made, NoMoney(reason="month_cap", month=month), AT)
    assert refused == Spent(reason="month_cap", of_run=True)
    assert budget.refusal(agent(1), AT, n_threads=0) == refused  # 60 more, and 50 are left
    assert isinstance(reserve(budget, 50), Reservation)
    budget.month = replace(month, spent=100)
    assert budget.run_refusal(AT) == refused
    assert budget.run_refusal(later(31 * 24 * 3600)) is None


def test_own_money_benches_one_agent() -> None:
    budget = budget_of()
    spec = agent(1, max_nano_usd=100)
    made = budget.reserve(spec, AT, n_threads=0, nano_usd=60)
    assert isinstance(made, Reservation)
    assert budget.reserve(spec, AT, n_threads=0, nano_usd=41) == Spent(reason="own_money_cap")
    budget.settle(made, cost_nano_usd=60)
    assert budget.refusal(spec, AT, n_threads=0) == Spent(reason="own_money_cap")
    assert budget.refusal(agent(2, max_nano_usd=100), AT, n_threads=0) is None
    assert budget.refusal(replace(spec, max_nano_usd=101), AT, n_threads=0) is None


def test_own_money_that_the_store_refuses_is_not_the_runs() -> None:
    budget = budget_of()
    spec = agent(1, max_nano_usd=100)
    made = budget.reserve(spec, AT, n_threads=0, nano_usd=60)
    assert isinstance(made, Reservation)
    refused = budget.refused(made, NoMoney(reason="own_money_cap"), AT)
    assert refused == Spent(reason="own_money_cap")


def test_own_cap_of_nothing_stops_no_free_call() -> None:
    budget = budget_of()
    spec = agent(1, max_nano_usd=0)
    assert isinstance(budget.reserve(spec, AT, n_threads=0, nano_usd=0), Reservation)
    assert budget.reserve(spec, AT, n_threads=0, nano_usd=1) == Spent(reason="own_money_cap")


@pytest.mark.parametrize("capped", ["run", "agent", "day", "month"])
def test_model_without_a_price_is_refused_where_money_counts(capped: str) -> None:
    budget = budget_of(**({"max_nano_usd": 100} if capped == "run" else {}))
    budget.day = day(0, cap=100 if capped == "day" else None)
    if capped == "month":
        budget.month = MonthMoney(month=TODAY.replace(day=1), cap=100)
    spec = agent(1, max_nano_usd=100 if capped == "agent" else None)
    assert budget.reserve(spec, AT, n_threads=0, nano_usd=None) == Spent(reason="unpriced")
    assert budget.refusal(spec, AT, n_threads=0) == Spent(reason="unpriced")


def test_model_without_a_price_is_free_to_go_where_no_money_counts() -> None:
    budget = budget_of()
    made = reserve_unpriced(budget)
    assert made == Reservation(agent=1, nano_usd=None)
    budget.settle(made, cost_nano_usd=None)
    assert (budget.spent_nano_usd, budget.n_calls) == (0, 1)


def reserve_unpriced(budget: Budget) -> Reservation:
    made = budget.reserve(agent(1), AT, n_threads=0, nano_usd=None)
    assert isinstance(made, Reservation)
    return made


def test_call_that_was_not_made_leaves_nothing_behind() -> None:
    budget = budget_of(max_calls=1, max_nano_usd=50, calls_per_window=1)
    made = reserve(budget, 50)
    assert isinstance(made, Reservation)
    budget.give_back(made)
    assert isinstance(reserve(budget, 50), Reservation)


def test_caps_of_a_call_are_the_runs_and_the_agents() -> None:
    assert budget_of(max_nano_usd=7).caps_of(agent(1, max_nano_usd=5)) == Caps(run=7, agent=5)
    assert budget_of().today(AT) == TODAY
