"""The scheduler: one place for each agent, the longest-waiting first, timers in order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.scheduler import Grant, Place, Scheduler
from tests.core.facts import AT, later


def scheduler_of(*last_selected: int) -> Scheduler:
    """Return a scheduler with agents 1, 2, … that were selected then, all parked."""
    made = Scheduler(n_selections=10)
    for number, selected in enumerate(last_selected, 1):
        made.add(number, selected)
    return made


def test_grant_selects_the_smallest_last_selected_then_the_lower_number() -> None:
    scheduler = scheduler_of(5, 3, 3)
    for agent in (3, 1, 2):
        scheduler.make_ready(agent, AT)
    order = []
    while grant := scheduler.grant(AT):
        order.append((grant.agent, grant.number))
    assert order == [(2, 11), (3, 12), (1, 13)]
    assert scheduler.n_selections == 13


def test_selected_agent_goes_behind_those_who_wait() -> None:
    scheduler = scheduler_of(1, 2)
    order = []
    for _ in range(4):
        for agent in (1, 2):
            scheduler.make_ready(agent, AT)
        grant = scheduler.grant(AT)
        assert grant is not None
        order.append(grant.agent)
        scheduler.rest(grant.agent, Place.PARKED, None)
    assert order == [1, 2, 1, 2]


def test_grant_tells_wait_and_rivals() -> None:
    scheduler = scheduler_of(1, 2, 3, 4)
    scheduler.make_ready(2, AT)
    scheduler.make_ready(3, later(5))
    assert scheduler.grant(later(7)) == Grant(number=11, agent=2, waited_seconds=7.0, n_rivals=2)
    scheduler.make_ready(1, later(8))
    assert scheduler.grant(later(9)) == Grant(number=12, agent=1, waited_seconds=1.0, n_rivals=2)
    assert scheduler.grant(later(9)) == Grant(number=13, agent=3, waited_seconds=4.0, n_rivals=3)
    assert scheduler.grant(later(9)) is None


def test_rival_that_comes_again_and_again_is_counted_once() -> None:
    scheduler = scheduler_of(1, 2, 3)
    scheduler.make_ready(2, AT)
    for second in range(5):
        scheduler.make_ready(1, later(second))
        scheduler.rest(1, Place.PARKED, None)
    scheduler.make_ready(3, later(9))
    grant = scheduler.grant(later(9))
    assert grant is not None
    assert (grant.agent, grant.n_rivals) == (2, 3)


def test_rival_that_was_selected_and_waits_again_is_counted_once() -> None:
    scheduler = scheduler_of(1, 2, 3, 4)
    for agent in (1, 2):
        scheduler.make_ready(agent, AT)
    for _ in range(3):
        grant = scheduler.grant(later(1))
        assert grant is not None
        scheduler.rest(grant.agent, Place.PARKED, None)
        scheduler.make_ready(grant.agent, later(1))
        assert grant.n_rivals == 2


def test_agent_that_left_before_a_wait_is_no_rival_of_it() -> None:
    scheduler = scheduler_of(1, 2)
    scheduler.make_ready(1, AT)
    scheduler.rest(1, Place.PARKED, None)
    scheduler.make_ready(2, later(1))
    grant = scheduler.grant(later(2))
    assert grant is not None
    assert (grant.agent, grant.n_rivals) == (2, 1)


@given(
    moves=st.lists(st.tuples(st.sampled_from(["ready", "rest", "grant"]), st.integers(1, 5))),
)
def test_rivals_are_those_who_were_ready_meanwhile(moves: list[tuple[str, int]]) -> None:
    """Against a set for each wait, into which everybody who is ready is put after each move."""
    scheduler = scheduler_of(0, 0, 0, 0, 0)
    met: dict[int, set[int]] = {}
    for move, agent in moves:
        if move == "ready" and scheduler.place(agent) is not Place.READY:
            scheduler.make_ready(agent, AT)
            met[agent] = set()
        elif move == "rest":
            scheduler.rest(agent, Place.PARKED, None)
            met.pop(agent, None)
        elif move == "grant" and (grant := scheduler.grant(AT)) is not None:
            assert grant.n_rivals == len(met.pop(grant.agent))
        for others in met.values():
            others.update(met)


@pytest.mark.parametrize(("n_rivals", "rounds"), [(1, 1), (3, 1), (4, 2), (7, 3)])
def test_bound_of_a_wait_is_a_longest_turn_for_each_round_of_rivals(
    n_rivals: int, rounds: int
) -> None:
    grant = Grant(number=1, agent=1, waited_seconds=0.0, n_rivals=n_rivals)
    assert grant.wait_bound_seconds(n_slots=3, max_turn_seconds=10.0) == 10.0 * rounds


def test_agent_that_is_ready_keeps_its_waiting_time() -> None:
    scheduler = scheduler_of(1)
    scheduler.make_ready(1, AT)
    scheduler.make_ready(1, later(5))
    grant = scheduler.grant(later(6))
    assert grant is not None
    assert grant.waited_seconds == 6.0


def test_agent_that_left_the_ready_is_not_selected() -> None:
    scheduler = scheduler_of(1, 2)
    scheduler.make_ready(1, AT)
    scheduler.make_ready(2, AT)
    scheduler.rest(1, Place.PARKED, None)
    assert (scheduler.n_ready, scheduler.next_ready()) == (1, 2)
    assert scheduler.place(1) is Place.PARKED


def test_timers_fire_in_order_and_once() -> None:
    scheduler = scheduler_of(1, 2, 3)
    scheduler.rest(1, Place.COOLING, later(20))
    scheduler.rest(2, Place.PARKED, later(10))
    scheduler.rest(3, Place.PARKED, later(30))
    assert scheduler.next_due() == later(10)
    assert scheduler.fired(later(25)) == [2, 1]
    assert scheduler.fired(later(25)) == []
    assert scheduler.next_due() == later(30)


def test_timer_that_was_replaced_is_dropped() -> None:
    scheduler = scheduler_of(1)
    scheduler.rest(1, Place.PARKED, later(10))
    scheduler.rest(1, Place.PARKED, later(40))
    assert scheduler.next_due() == later(40)
    scheduler.rest(1, Place.PARKED, later(30))
    assert scheduler.fired(later(35)) == [1]
    assert scheduler.next_due() is None


def test_timer_is_hastened_and_never_put_off() -> None:
    scheduler = scheduler_of(1, 2)
    scheduler.rest(1, Place.PARKED, later(40))
    scheduler.hasten(1, later(30))
    scheduler.hasten(1, later(50))
    scheduler.hasten(2, later(60))
    assert scheduler.next_due() == later(30)
    assert scheduler.fired(later(60)) == [1, 2]


def test_ready_agent_has_no_timer() -> None:
    scheduler = scheduler_of(1)
    scheduler.rest(1, Place.PARKED, later(10))
    scheduler.make_ready(1, AT)
    assert scheduler.fired(later(10)) == []
    assert scheduler.next_due() is None


def test_same_rest_again_makes_no_second_entry() -> None:
    scheduler = scheduler_of(1)
    for _ in range(3):
        scheduler.rest(1, Place.PARKED, later(10))
    assert len(scheduler._timers) == 1


def test_entries_that_no_longer_count_are_swept() -> None:
    scheduler = scheduler_of(1, 2, 3)
    scheduler.rest(2, Place.PARKED, later(50))
    for second in range(100):
        scheduler.make_ready(3, AT)
        scheduler.rest(3, Place.PARKED, later(100 + second))
        scheduler.make_ready(1, AT)
        scheduler.rest(1, Place.PARKED, later(1000 + second))
    assert len(scheduler._ready) <= 6
    assert len(scheduler._timers) <= 6
    assert scheduler.fired(later(5000)) == [2, 3, 1]
    scheduler.make_ready(1, AT)
    assert scheduler.next_ready() == 1


def test_agent_that_is_known_stays_as_it_is() -> None:
    scheduler = scheduler_of(1)
    scheduler.make_ready(1, AT)
    scheduler.add(1, 99)
    assert (1 in scheduler, 2 in scheduler) == (True, False)
    assert scheduler.place(1) is Place.READY


def test_agents_are_listed_by_place() -> None:
    scheduler = scheduler_of(1, 2, 3)
    scheduler.make_ready(3, AT)
    scheduler.rest(1, Place.OUT, None)
    assert list(scheduler.agents()) == [1, 2, 3]
    assert list(scheduler.agents(Place.READY, Place.OUT)) == [1, 3]
