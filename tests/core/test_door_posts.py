"""Posts and whole hand-ins at the door: every reason to refuse one, and all that it changes."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from engine.core.door.hand_in import prepare
from engine.core.door.messages import post
from engine.core.effects import (
    Committed,
    HandIn,
    Post,
    PostChance,
    Rejected,
    Reply,
    TurnOutcome,
)
from engine.core.records import (
    AgentState,
    Desk,
    InvitationKind,
    InvitationState,
    PairHistory,
)
from engine.core.world import World
from tests.core.doors import nothing, opened, paused, posting, reason_of
from tests.core.facts import (
    AT,
    PRIVATE,
    PUBLIC,
    add_invitation,
    add_root,
    add_thread,
    agent,
    draft,
    invitation,
    later,
    root,
    rules,
    turn,
    world,
)

TODAY = date(2026, 3, 2)


# --- posts ------------------------------------------------------------------------------------------


def test_post_gets_the_next_seq_and_its_place() -> None:
    facts = world(3)
    facts.last_seq = 7
    result, made = posting(facts, text="  Hello all ")
    assert result == Committed(seq=8)
    (message,) = made.group.messages
    assert (message.seq, message.ordinal, message.text, message.turn) == (8, 1, "Hello all", 5)
    assert made.roots[8] == root(8, 1)
    assert made.state(1) == AgentState(posts_on=TODAY, posts_made=1)
    assert made.concern.roots == [root(8, 1)]
    assert made.group.topology_version is None


def test_post_to_an_agent_invites_it_under_the_topology_of_now() -> None:
    result, made = posting(world(3), text="@Bot2 hello", tag=2)
    assert result == Committed(seq=1)
    assert made.roots[1].addressed == 2
    assert made.desk(2).invitations == (invitation(2, 1),)
    assert list(made.changed_invitations.values()) == [invitation(2, 1)]
    assert list(made.concern.agents) == [2]
    assert made.group.topology_version == 1


def test_post_in_a_private_channel_counts_apart() -> None:
    facts = world(3, members=(1, 2))
    facts.states[1] = AgentState(posts_on=TODAY, posts_made=2)
    _, made = posting(facts, channel=PRIVATE)
    assert made.state(1) == AgentState(posts_on=TODAY, posts_made=2, private_posts_made=1)
    assert made.group.messages[0].visibility == "private"


def test_post_on_a_new_day_counts_from_one() -> None:
    facts = world(3)
    facts.states[1] = AgentState(posts_on=date(2026, 3, 1), posts_made=3)
    _, made = posting(facts)
    assert made.state(1) == AgentState(posts_on=TODAY, posts_made=1)


def test_post_for_a_person_settles_its_call_and_counts_for_no_cap() -> None:
    facts = world(3)
    facts.states[1] = AgentState(posts_on=TODAY, posts_made=3)
    called = add_invitation(facts, 1, 9, kind=InvitationKind.REFERENCE, by_person=True)
    result, made = posting(facts, refers_to=9)
    assert result == Committed(seq=1)
    assert made.state(1).posts_made == 3
    assert made.desk(1).invitations == ()
    assert made.changed_invitations[1, 9] == replace(called, state=InvitationState.ANSWERED)


def test_names_that_the_author_may_not_address_are_taken_out() -> None:
    facts = world(3, {"north": (1, 2), "south": (3,)})
    _, made = posting(facts, text="Hello @Bot3 and @Bot2")
    assert made.group.messages[0].text == "Hello and @Bot2"
    assert made.roots[1].addressed == 2


def written_out(facts: World) -> None:
    facts.states[1] = AgentState(posts_on=TODAY, posts_made=3)


def with_proposals(facts: World) -> None:
    facts.desks[1] = Desk(unreviewed=((1, 1), (5, 1)))


def talking(facts: World) -> None:
    add_thread(facts, 1, opener=1, partner=2)


def rested(facts: World) -> None:
    facts.pairs[1, 2] = PairHistory(closed_seq=0, closed_at=later(-9), n_barren=0)


def without_partner(facts: World) -> None:
    del facts.agents[2]


@pytest.mark.parametrize(
    ("change", "fields", "expected"),
    [
        (paused, {}, "author_out"),
        (nothing, {"channel": 77}, "unknown_channel"),
        (nothing, {"channel": PRIVATE}, "not_a_member"),
        (written_out, {}, "post_caps"),
        (with_proposals, {}, "post_caps"),
        (nothing, {"text": "@Bot3 hello", "tag": 3}, "not_permitted"),
        (talking, {"tag": 2}, "pair_taken"),
        (rested, {"tag": 2}, "pair_resting"),
        (without_partner, {"tag": 2}, "not_permitted"),
        (nothing, {"text": " @Bot3, "}, "nothing_left"),
        (nothing, {"tag": 2}, ""),
    ],
)
def test_post_is_refused_for_one_reason(change: Any, fields: dict[str, Any], expected: str) -> None:
    facts = world(3, {"north": (1, 2), "south": (3,)})
    change(facts)
    if change is without_partner:
        facts.gate = world([agent(1), agent(3)], {"north": (1,), "south": (3,)}).gate
    result, made = posting(facts, rules(pair_rest_seconds=60), **fields)
    assert reason_of(result) == expected
    assert len(made.group.messages) == (not expected)


def test_post_to_an_agent_whose_seats_are_full_invites_it_all_the_same() -> None:
    facts = world(3)
    add_thread(facts, 1, opener=2, partner=3)
    result, made = posting(facts, rules(active_thread_threshold=1), text="@Bot2 hello", tag=2)
    assert result == Committed(seq=3)
    assert made.desk(2).invitations == (invitation(2, 3),)


def test_post_that_names_somebody_waits_while_the_topology_changes() -> None:
    made = opened(world(3))
    made.may_start = False
    named = Post(agent=1, channel=PUBLIC, text="@Bot2 hello")
    assert post(made, named) == Rejected(reason="topology_changing")
    assert post(made, replace(named, text="Hello")) == Committed(seq=1)


# --- a hand-in -------------------------------------------------------------------------------------------


def test_effects_of_a_group_see_what_earlier_ones_took() -> None:
    """Two agents answer one root, and one of them a second root of the same author."""
    facts = world(3)
    add_root(facts, 1, author=2)
    add_root(facts, 2, author=2)
    made = draft(facts)
    first, second, third = (
        prepare(made, HandIn(effects=(effect,), turn=turn(effect.agent, number)))
        for number, effect in enumerate(
            (
                Reply(agent=1, root=1, text="First", answers_ordinal=1),
                Reply(agent=3, root=1, text="Second", answers_ordinal=1),
                Reply(agent=1, root=2, text="Third", answers_ordinal=1),
            ),
            5,
        )
    )
    assert first.results == (Committed(seq=3),)
    assert second.results == (Rejected(reason="not_entitled"),)
    assert third.results == (Rejected(reason="pair_taken"),)


def test_turn_counts_what_became_of_its_effects() -> None:
    made = draft(world(2))
    effects = (
        Post(agent=1, channel=PUBLIC, text="Hello"),
        Post(agent=1, channel=77, text="Hello"),
        PostChance(agent=1, used=True),
    )
    begun = replace(turn(1), rejected=(("stale", 1),))
    answer = prepare(
        made,
        HandIn(effects=effects, turn=begun, refused=("repeats",), ends=TurnOutcome.WORKED),
    )
    ended = answer.turn
    assert ended is not None
    assert (ended.n_committed, ended.outcome, ended.finished_at) == (2, TurnOutcome.WORKED, AT)
    assert ended.rejected == (("repeats", 1), ("stale", 1), ("unknown_channel", 1))
    state = made.state(1)
    assert (state.last_selected, state.ended_at) == (5, AT)
    assert made.finish().turns == [ended]


def test_turn_that_did_nothing_says_so() -> None:
    answer = prepare(draft(world(2)), HandIn(turn=turn(1), ends=TurnOutcome.WORKED))
    assert answer.turn is not None
    assert answer.turn.outcome is TurnOutcome.NOTHING
    begun = prepare(draft(world(2)), HandIn(turn=turn(1)))
    assert begun.turn is not None
    assert (begun.turn.outcome, begun.turn.finished_at) == (TurnOutcome.RUNNING, None)
