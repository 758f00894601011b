"""The judge: every reason for which an agent has work, or has none."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any

import pytest

from engine.core.participation import Rules
from engine.core.records import (
    AgentState,
    Desk,
    PairHistory,
    Status,
    Talk,
)
from engine.core.standing import (
    Standing,
    Work,
    banked,
    offered_channels,
    posts_on,
    standing,
)
from engine.core.world import World
from tests.core.facts import (
    AT,
    PRIVATE,
    PUBLIC,
    add_invitation,
    add_root,
    add_thread,
    agent,
    later,
    rules,
    world,
)

MIDNIGHT = datetime(2026, 3, 3, tzinfo=UTC)
TODAY = date(2026, 3, 2)
#: It has written all that it may today, so that nothing but the tested work is left.
WRITTEN = AgentState(posts_on=TODAY, posts_made=3, private_posts_made=3)


def quiet(n_agents: int = 3, **fields: Any) -> World:
    """Return a world in which agent 1 has nothing to do before midnight."""
    facts = world(n_agents, **fields)
    facts.states[1] = WRITTEN
    return facts


def judge(facts: World, judged_by: Rules | None = None, **settings: Any) -> Standing:
    return standing(facts, 1, AT, judged_by or rules(**settings))


def test_agent_with_nothing_to_do_waits_for_midnight() -> None:
    assert judge(quiet()) == Standing(calendar_at=MIDNIGHT, n_posts_wanted=1, why="daily_posts")


def test_agent_that_is_not_active_is_out() -> None:
    facts = world([agent(1, status=Status.PAUSED), agent(2, status=Status.RETIRED)])
    assert standing(facts, 1, AT, rules()) == Standing(out=True, why="paused")
    assert standing(facts, 2, AT, rules()) == Standing(out=True, why="retired")
    assert standing(facts, 9, AT, rules()) == Standing(out=True, why="left")


def test_cooling_agent_has_a_timer_and_no_work() -> None:
    facts = world(2)
    facts.states[1] = AgentState(ended_at=later(-4))
    assert judge(facts, turn_delay_seconds=10) == Standing(due_at=later(6), why="cooling")
    assert judge(facts, turn_delay_seconds=4).work == (Work.POST,)
    assert judge(facts, turn_delay_seconds=0).work == (Work.POST,)
    facts.states[1] = AgentState()
    assert judge(facts, turn_delay_seconds=10).work == (Work.POST,)


def test_spent_cap_of_the_run_leaves_no_work() -> None:
    judged_by = rules(max_calls=1)
    judged_by.budget.n_calls = 1
    assert judge(world(2), judged_by) == Standing(why="call_cap")


def test_spent_cap_of_its_own_puts_an_agent_out() -> None:
    facts = world([agent(1, max_calls=0), agent(2)])
    assert judge(facts) == Standing(out=True, why="own_call_cap")


def test_full_window_has_a_timer() -> None:
    judged_by = rules(calls_per_window=1)
    judged_by.budget.reserve(agent(1), later(-100), n_threads=0, nano_usd=0)
    assert judge(world(2), judged_by) == Standing(due_at=later(500), why="window")


def test_untold_talk_is_to_be_remembered() -> None:
    facts = quiet()
    facts.desks[1] = Desk(untold=(Talk(closed_seq=3, root=1, channel=None),))
    assert judge(facts).work == (Work.REMEMBER,)


def test_debt_is_work() -> None:
    facts = quiet()
    add_thread(facts, 1, opener=2, partner=1)
    found = judge(facts)
    assert (found.work, found.why) == ((Work.DEBT,), "")
    facts.threads[1] = replace(facts.threads[1], last_agent=1)
    assert judge(facts).work == ()


def test_brief_look_ends_at_a_debt() -> None:
    facts = quiet(joined=False)
    add_thread(facts, 1, opener=2, partner=1)
    assert judge(facts).work == (Work.DEBT, Work.DISCOVER)
    assert standing(facts, 1, AT, rules(), briefly=True).work == (Work.DEBT,)
    facts.threads[1] = replace(facts.threads[1], last_agent=1)
    assert standing(facts, 1, AT, rules(), briefly=True) == judge(facts)


def test_channel_to_join_is_work() -> None:
    facts = quiet(joined=False)
    assert judge(facts).work == (Work.DISCOVER,)
    assert facts.to_join(1) == (PUBLIC,)
    facts.subscriptions[1] = (PUBLIC,)
    assert facts.to_join(1) == ()


def test_draining_leaves_only_what_is_owed() -> None:
    facts = world(3, joined=False)
    add_root(facts, 1, author=2)
    judged_by = rules()
    judged_by.draining = True
    assert judge(facts, judged_by) == Standing(why="nothing_new")
    add_thread(facts, 2, opener=3, partner=1)
    facts.desks[1] = replace(facts.desks[1], untold=(Talk(closed_seq=9, root=5, channel=None),))
    assert judge(facts, judged_by).work == (Work.REMEMBER, Work.DEBT)


def test_unread_root_is_work_when_it_is_ripe() -> None:
    facts = quiet()
    add_root(facts, 1, author=2, at=later(-29))
    found = judge(facts, scan_delay_seconds=30)
    assert found == Standing(
        due_at=later(1), calendar_at=MIDNIGHT, n_posts_wanted=9, why="scan_delay"
    )
    assert judge(facts, scan_delay_seconds=29).work == (Work.SCAN,)


def test_ten_unread_roots_are_work_at_once() -> None:
    facts = quiet()
    for seq in range(1, 10):
        add_root(facts, seq, author=2)
    assert judge(facts, scan_delay_seconds=30).work == ()
    add_root(facts, 10, author=3)
    assert judge(facts, scan_delay_seconds=30).work == (Work.SCAN,)


def test_root_of_a_person_is_work_at_once() -> None:
    facts = quiet()
    add_root(facts, 1, author=2)
    add_root(facts, 2, author=None)
    assert judge(facts, scan_delay_seconds=30).work == (Work.SCAN,)


def test_invitation_is_work_when_it_can_be_taken_up_or_settled() -> None:
    facts = quiet()
    add_root(facts, 1, author=2, addressed=1)
    add_invitation(facts, 1, 1)
    assert judge(facts).work == (Work.INVITATION,)
    facts.roots[1] = replace(facts.roots[1], answered_by=(3,))
    assert judge(facts).work == (Work.INVITATION,)


def test_invitation_that_cannot_be_taken_up_now_says_what_it_waits_for() -> None:
    facts = quiet()
    add_root(facts, 1, author=2, addressed=1)
    add_root(facts, 2, author=3, addressed=1)
    add_invitation(facts, 1, 1)
    add_invitation(facts, 1, 2)
    facts.pairs[1, 3] = PairHistory(closed_seq=0, closed_at=later(-10), n_barren=0)
    judged_by = rules(active_thread_threshold=1, pair_rest_seconds=60)
    judged_by.claims.take_seat(2, 9)
    assert judge(facts, judged_by) == Standing(
        calendar_at=later(50),
        waits_for=(2,),
        invited_to=(1, 2),
        n_posts_wanted=1,
        why="partner_full",
    )


def test_post_is_work_when_its_timer_has_come() -> None:
    facts = world(2)
    facts.states[1] = AgentState(next_post_at=later(1))
    assert judge(facts) == Standing(calendar_at=later(1), n_posts_wanted=1, why="post_timer")
    facts.states[1] = AgentState(next_post_at=AT)
    assert judge(facts).work == (Work.POST,)


def test_banked_post_alone_makes_a_chance() -> None:
    facts = quiet()
    add_root(facts, 1, author=2)
    facts.states[1] = replace(WRITTEN, bank=(1,), cursor=1)
    assert judge(facts).work == (Work.POST,)
    assert judge(facts, active_thread_threshold=0).work == ()


def test_banked_post_needs_a_seat_of_ones_own() -> None:
    facts = quiet()
    add_root(facts, 1, author=None)
    facts.states[1] = replace(WRITTEN, bank=(1,), cursor=1)
    found = judge(facts, active_thread_threshold=0)
    assert found == Standing(
        calendar_at=MIDNIGHT, waits_for=(1,), n_posts_wanted=1, why="daily_posts"
    )


def test_banked_post_that_cannot_be_answered_now_says_what_it_waits_for() -> None:
    facts = quiet()
    add_thread(facts, 1, opener=3, partner=2)
    add_root(facts, 4, author=2)
    facts.states[1] = replace(WRITTEN, bank=(4,), cursor=4)
    found = judge(facts, active_thread_threshold=1)
    assert found == Standing(
        calendar_at=MIDNIGHT, waits_for=(2,), n_posts_wanted=1, why="daily_posts"
    )


def test_banked_yields_known_roots_with_their_refusals() -> None:
    facts = world(3)
    add_root(facts, 1, author=2)
    add_root(facts, 2, author=2, answered_by=(3,))
    facts.states[1] = AgentState(bank=(1, 2, 99))
    found = [
        (root.seq, None if refusal is None else refusal.reason)
        for root, refusal in banked(facts, 1, AT, rules())
    ]
    assert found == [(1, None), (2, "not_entitled")]


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (AgentState(), (0, 0)),
        (AgentState(posts_on=TODAY, posts_made=2, private_posts_made=1), (2, 1)),
        (AgentState(posts_on=date(2026, 3, 1), posts_made=2), (0, 0)),
    ],
)
def test_posts_count_on_their_local_day(state: AgentState, expected: tuple[int, int]) -> None:
    assert posts_on(state, AT, rules().config) == expected


def test_local_day_is_that_of_the_zone() -> None:
    late = datetime(2026, 3, 2, 23, 30, tzinfo=UTC)
    state = AgentState(posts_on=date(2026, 3, 3), posts_made=2)
    assert posts_on(state, late, rules(time_zone="Europe/Berlin").config) == (2, 0)
    assert posts_on(state, late, rules().config) == (0, 0)


def offered(facts: World, **settings: Any) -> list[int]:
    return [one.id for one in offered_channels(facts, 1, AT, rules(**settings).config)]


def test_channels_are_offered_within_their_own_caps() -> None:
    facts = world(2, members=(1,))
    assert offered(facts) == [PUBLIC, PRIVATE]
    facts.states[1] = AgentState(posts_on=TODAY, posts_made=3)
    assert offered(facts) == [PRIVATE]
    facts.states[1] = AgentState(posts_on=TODAY, private_posts_made=3)
    assert offered(facts) == [PUBLIC]
    assert offered(facts, daily_posts=4) == [PUBLIC, PRIVATE]


def test_own_daily_limit_goes_before_the_runs() -> None:
    facts = world([agent(1, daily_posts=0), agent(2)])
    assert offered(facts) == []
    facts.agents[1] = agent(1, daily_posts=1)
    assert offered(facts, daily_posts=0) == [PUBLIC]


def test_channel_that_one_left_is_not_offered() -> None:
    facts = world(2, members=(1,))
    facts.gate = world(2).gate
    assert offered(facts) == [PUBLIC]


def test_proposals_that_wait_for_a_review_block_new_roots() -> None:
    facts = world(2)
    facts.desks[1] = Desk(unreviewed=((1, 1), (5, 1)))
    assert offered(facts) == []
    assert offered(facts, unreviewed_proposals=3) == [PUBLIC]
