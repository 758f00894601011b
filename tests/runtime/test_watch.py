"""The watch: who is woken by what, and how a turn that did nothing is slept off."""

from __future__ import annotations

import asyncio
from datetime import datetime
from itertools import pairwise
from typing import Any

import pytest

from engine.core.draft import Concern
from engine.core.participation import Rules
from engine.core.records import AgentState, Channel, Visibility
from engine.core.scheduler import Place, Scheduler
from engine.core.standing import Standing, standing
from engine.core.world import World
from engine.loop.watch import Watch
from tests.core.facts import AT, add_invitation, add_root, add_thread, later, rules, world
from tests.runtime.parts import at_home
from tests.runtime.society import Live, play


def watch_of(facts: World, judged_by: Rules | None = None) -> Watch:
    made = Watch(facts, judged_by or rules(), Scheduler())
    made.everybody(AT)
    return made


def quiet_world() -> World:
    """Return three agents, none of which may post or has anything to read."""
    facts = world(3)
    for one in facts.agents:
        facts.states[one] = AgentState(next_post_at=later(900))
    return facts


def select(watch: Watch, at: datetime) -> int:
    one = watch.scheduler.next_ready()
    assert one is not None
    found = watch.standing(one, at)
    assert watch.scheduler.grant(at) is not None
    watch.selected(one, found)
    return one


def wake(watch: Watch, one: int, at: datetime) -> None:
    watch.concerned(Concern(agents={one: None}), at)


def after_empty_turn(facts: World, judged_by: Rules | None = None) -> Watch:
    """Return a watch whose agent 1 has work, was selected, did nothing and fell asleep."""
    watch = watch_of(facts, judged_by)
    assert select(watch, AT) == 1
    watch.turn_over(1, AT, empty=True, retry_at=None)
    assert (watch.scheduler.place(1), watch.whys[1]) == (Place.PARKED, "asleep")
    return watch


def world_with_a_debt() -> World:
    facts = quiet_world()
    add_thread(facts, 1, opener=2, partner=1)
    return facts


def test_empty_turns_rest_longer_each_time() -> None:
    watch = after_empty_turn(world_with_a_debt())
    rests = []
    at = AT
    for _ in range(4):
        wake(watch, 1, at)
        due_at = watch.scheduler.next_due()
        assert due_at is not None
        rests.append((due_at - at).total_seconds())
        at = due_at
        watch.timers_fired(at)
        assert select(watch, at) == 1
        watch.turn_over(1, at, empty=True, retry_at=None)
    assert rests == [5.0, 15.0, 30.0, 30.0]


def test_turn_that_did_something_ends_the_rests() -> None:
    watch = after_empty_turn(world_with_a_debt())
    wake(watch, 1, later(60))
    assert select(watch, later(60)) == 1
    watch.turn_over(1, later(60), empty=False, retry_at=None)
    assert watch.scheduler.place(1) is Place.READY


def test_sleeper_stays_asleep_while_nothing_concerns_it() -> None:
    watch = after_empty_turn(world_with_a_debt())
    watch.timers_fired(later(600))
    watch.judge(1, later(600))
    assert watch.scheduler.place(1) is Place.PARKED


def test_root_that_comes_during_an_empty_turn_wakes_its_reader() -> None:
    facts = world_with_a_debt()
    watch = watch_of(facts)
    assert select(watch, AT) == 1
    watch.concerned(Concern(roots=[add_root(facts, 9, author=3)]), AT)
    watch.turn_over(1, AT, empty=True, retry_at=None)
    assert watch.scheduler.next_due() == later(5)
    watch.timers_fired(later(5))
    assert watch.scheduler.place(1) is Place.READY


def test_sleeper_is_woken_by_its_post_timer() -> None:
    facts = world_with_a_debt()
    watch = after_empty_turn(facts)
    facts.states[1] = AgentState(next_post_at=later(100))
    watch.judge(1, later(1))
    assert watch.scheduler.next_due() == later(100)
    watch.timers_fired(later(100))
    assert watch.scheduler.place(1) is Place.READY


def test_sleeper_is_not_woken_by_its_cooldown() -> None:
    facts = world_with_a_debt()
    watch = watch_of(facts, rules(turn_delay_seconds=10))
    assert select(watch, AT) == 1
    facts.states[1] = AgentState(next_post_at=later(900), ended_at=AT)
    watch.turn_over(1, AT, empty=True, retry_at=None)
    assert (watch.scheduler.place(1), watch.whys[1]) == (Place.COOLING, "cooling")
    watch.timers_fired(later(10))
    assert (watch.scheduler.place(1), watch.whys[1]) == (Place.PARKED, "asleep")
    wake(watch, 1, later(11))
    assert watch.scheduler.place(1) is Place.READY


def test_sleeper_is_woken_by_a_seat_that_it_waits_for() -> None:
    facts = world_with_a_debt()
    judged_by = rules(active_thread_threshold=2)
    add_root(facts, 5, author=3, addressed=1)
    add_invitation(facts, 1, 5)
    for key in (98, 99):
        judged_by.claims.take_seat(3, key)
    watch = after_empty_turn(facts, judged_by)
    judged_by.claims.release_all(3)
    watch.seats_returned(3, later(1))
    assert watch.scheduler.next_due() == later(5)


def test_own_claim_that_comes_back_is_no_news() -> None:
    facts = world_with_a_debt()
    add_root(facts, 5, author=3, addressed=1)
    add_invitation(facts, 1, 5)
    watch = watch_of(facts, rules(active_thread_threshold=1))
    assert select(watch, AT) == 1
    watch.seats_returned(1, AT)
    watch.turn_over(1, AT, empty=True, retry_at=None)
    assert (watch.whys[1], watch.has_timer_of_ours) == ("asleep", False)


def test_failed_turn_comes_back_although_it_did_nothing() -> None:
    watch = watch_of(world_with_a_debt())
    assert select(watch, AT) == 1
    watch.turn_over(1, AT, empty=True, retry_at=later(30))
    assert (watch.whys[1], watch.has_timer_of_ours) == ("backoff", True)
    watch.timers_fired(later(30))
    assert watch.scheduler.place(1) is Place.READY


def test_budget_that_comes_back_wakes_who_waits_for_it() -> None:
    judged_by = rules(max_calls=1)
    judged_by.budget.n_calls = 1
    watch = watch_of(world_with_a_debt(), judged_by)
    assert watch.whys == {1: "call_cap", 2: "call_cap", 3: "call_cap"}
    judged_by.budget.max_calls = 2
    watch.budget_returned(later(1))
    assert [watch.scheduler.place(one) for one in (1, 2, 3)] == [
        Place.READY,
        Place.PARKED,
        Place.PARKED,
    ]


@pytest.mark.parametrize(("author", "woken"), [(1, [2]), (3, []), (None, [1, 2, 3])])
def test_root_touches_only_those_who_read_its_feed(author: int | None, woken: list[int]) -> None:
    facts = world(3, {"north": (1, 2), "south": (3,)})
    for one in facts.agents:
        facts.states[one] = AgentState(next_post_at=later(900))
    watch = watch_of(facts)
    watch.concerned(Concern(roots=[add_root(facts, 1, author=author)]), AT)
    assert list(watch.scheduler.agents(Place.READY)) == woken


# --- posts that only few wake for ---------------------------------------------------------------


def watch_with_scan_delay(facts: World) -> Watch:
    return watch_of(facts, rules(scan_delay_seconds=30))


def post(watch: Watch, facts: World, seq: int, author: int | None, **fields: Any) -> None:
    """Let a root come in `seq` seconds after the start."""
    root = add_root(facts, seq, author, at=later(seq), **fields)
    watch.concerned(Concern(roots=[root]), later(seq))


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the agents that are judged from now on, as they are."""
    seen: list[int] = []

    def counted(
        facts: World, agent: int, now: datetime, judged_by: Rules, *, briefly: bool
    ) -> Standing:
        seen.append(agent)
        return standing(facts, agent, now, judged_by, briefly=briefly)

    monkeypatch.setattr("engine.loop.watch.standing", counted)
    return seen


def test_posts_wake_a_reader_when_ten_of_them_wait(judged: list[int]) -> None:
    facts = quiet_world()
    watch = watch_with_scan_delay(facts)
    judged.clear()
    for seq in range(1, 10):
        post(watch, facts, seq, author=3)
    assert judged == []
    assert (watch.scheduler.place(1), watch.whys[1]) == (Place.PARKED, "scan_delay")
    post(watch, facts, 10, author=3)
    assert judged == [1, 2]
    assert watch.scheduler.place(1) is Place.READY


def test_first_post_wakes_a_reader_when_it_is_old_enough() -> None:
    facts = quiet_world()
    watch = watch_with_scan_delay(facts)
    before = watch.has_timer_of_ours
    post(watch, facts, 4, author=3)
    post(watch, facts, 5, author=3)
    assert (before, watch.has_timer_of_ours) == (False, True)
    assert watch.scheduler.next_due() == later(34)
    watch.timers_fired(later(34))
    assert list(watch.scheduler.agents(Place.READY)) == [1, 2]


def test_post_of_a_person_wakes_a_reader_that_waits_for_ten() -> None:
    facts = quiet_world()
    watch = watch_with_scan_delay(facts)
    post(watch, facts, 1, author=3)
    post(watch, facts, 2, author=None)
    assert list(watch.scheduler.agents(Place.READY)) == [1, 2, 3]


def test_post_to_somebody_else_is_no_post_to_wait_for(judged: list[int]) -> None:
    facts = quiet_world()
    watch = watch_of(facts)
    judged.clear()
    post(watch, facts, 1, author=3, addressed=2)
    assert judged == []
    post(watch, facts, 2, author=3)
    assert judged == [1, 2]


def test_agent_that_may_do_nothing_now_is_not_judged_for_a_post(judged: list[int]) -> None:
    facts = quiet_world()
    facts.states[1] = AgentState(ended_at=AT)
    watch = watch_of(facts, rules(turn_delay_seconds=60))
    judged.clear()
    post(watch, facts, 1, author=3)
    assert judged == [2]
    assert watch.scheduler.place(1) is Place.COOLING
    watch.timers_fired(later(60))
    assert watch.scheduler.place(1) is Place.READY


# --- crowds -------------------------------------------------------------------------------------


def test_crowd_is_ready_until_each_is_judged(judged: list[int]) -> None:
    facts = world(300)
    for one in facts.agents:
        facts.states[one] = AgentState(next_post_at=later(900))
    watch = watch_of(facts)
    assert (judged, watch.scheduler.n_ready) == ([], 300)
    watch.concerned(Concern(everybody=True), AT)
    assert judged == []
    watch.judge(1, AT)
    assert (judged, watch.scheduler.place(1)) == ([1], Place.PARKED)


def test_crowd_leaves_who_is_in_flight_alone() -> None:
    facts = world(300)
    watch = watch_of(facts)
    assert select(watch, AT) == 1
    watch.everybody(AT)
    assert watch.scheduler.place(1) is Place.IN_FLIGHT


def test_crowd_without_work_holds_nobody_up(judged: list[int]) -> None:
    """Nobody of a thousand may do anything: they are judged in parts, and others go on between."""
    n_judged: list[int] = []

    async def look(live: Live) -> None:
        while True:
            n_judged.append(len(judged))
            await asyncio.sleep(0)

    played = play(at_home(1000), look, daily_posts=0)
    assert (played.reason, len(judged)) == ("idle", 1000)
    assert max(after - before for before, after in pairwise(n_judged)) == 100


def test_change_of_unknown_reach_concerns_everybody() -> None:
    facts = quiet_world()
    watch = watch_of(facts)
    facts.channels[3] = Channel(id=3, name="labs", topic="", visibility=Visibility.PUBLIC)
    facts.subscriptions = {}
    watch.concerned(Concern(everybody=True), AT)
    assert list(watch.scheduler.agents(Place.READY)) == [1, 2, 3]


def test_agent_that_left_is_out() -> None:
    facts = quiet_world()
    watch = watch_of(facts)
    del facts.agents[2]
    watch.judge(2, AT)
    assert (watch.scheduler.place(2), watch.whys[2]) == (Place.OUT, "left")
