"""A new topology: what is dropped, marked and skipped when it comes into force."""

from __future__ import annotations

from dataclasses import replace

from engine.core.door.topology import adopt
from engine.core.draft import Draft
from engine.core.effects import Adopt, Committed, Rejected
from engine.core.records import AgentState, InvitationState
from engine.core.world import World
from tests.core.facts import (
    AT,
    PRIVATE,
    add_invitation,
    add_root,
    add_thread,
    agent,
    draft,
    topology,
    world,
)

APART: dict[str, tuple[int, ...]] = {"north": (1,), "south": (2, 3)}
TOGETHER: dict[str, tuple[int, ...]] = {"north": (1, 2), "south": (2, 3)}


def adopting(facts: World, cohorts: dict[str, tuple[int, ...]], *, version: int = 2) -> Draft:
    made = draft(facts)
    gate = topology(facts.agents, cohorts, version=version)
    assert adopt(made, Adopt(gate=gate)) == Committed()
    return made


def test_older_topology_is_refused() -> None:
    facts = world(3, TOGETHER)
    facts.gate = topology(facts.agents, TOGETHER, version=3)
    made = draft(facts)
    refused = adopt(made, Adopt(gate=topology(facts.agents, APART, version=2)))
    assert refused == Rejected(reason="older_topology")
    assert made.group.adopted is None


def test_new_topology_concerns_those_whose_mates_changed() -> None:
    made = adopting(world(4, TOGETHER), APART)
    assert list(made.concern.agents) == [1, 2]
    assert made.group.adopted is made.gate
    assert made.gate.version == 2


def test_unknown_agent_of_a_topology_is_passed_over() -> None:
    facts = world(2, {"north": (1,)})
    made = draft(facts)
    adopt(made, Adopt(gate=topology((1, 2, 9), {"north": (1, 2, 9)}, version=2)))
    assert 9 not in made.concern.agents


def test_kept_and_called_to_is_dropped_when_no_longer_permitted() -> None:
    facts = world(3, TOGETHER)
    for seq, author in ((1, 2), (2, None), (3, 2), (4, 2)):
        add_root(facts, seq, author=author)
    facts.states[1] = AgentState(cursor=4, bank=(1, 2, 99))
    called = add_invitation(facts, 1, 3)
    add_invitation(facts, 1, 4, by_person=True)
    made = adopting(facts, APART)
    assert made.state(1).bank == (2,)
    assert [one.message for one in made.desk(1).invitations] == [4]
    assert made.changed_invitations[1, 3] == replace(
        called, state=InvitationState.REFUSED, reason="not_permitted"
    )


def test_open_threads_are_marked_and_unmarked_again() -> None:
    facts = world(3, TOGETHER)
    add_thread(facts, 1, opener=1, partner=2)
    add_thread(facts, 4, opener=2, partner=3)
    add_thread(facts, 7, opener=1, partner=None)
    made = adopting(facts, APART)
    assert {root: row.grandfathered_at for root, row in made.changed_threads.items()} == {1: AT}
    made.absorb()
    again = adopting(facts, TOGETHER, version=3)
    assert {root: row.grandfathered_at for root, row in again.changed_threads.items()} == {1: None}


def test_private_thread_is_never_marked() -> None:
    facts = world(3, TOGETHER, members=(1, 2))
    add_thread(facts, 1, opener=1, partner=2, channel=PRIVATE)
    assert adopting(facts, APART).changed_threads == {}


def test_thread_that_closed_in_the_same_group_is_not_marked() -> None:
    facts = world(3, TOGETHER)
    add_thread(facts, 1, opener=1, partner=2)
    made = draft(facts)
    made.threads.remove(1)
    adopt(made, Adopt(gate=topology(facts.agents, APART, version=2)))
    assert made.threads.get(1) is None


def with_old_posts() -> World:
    facts = world(3, APART)
    for seq in (1, 2, 3):
        add_root(facts, seq, author=2)
    facts.states[1] = AgentState(cursor=0)
    return facts


def test_new_mate_replays_nothing() -> None:
    made = adopting(with_old_posts(), TOGETHER)
    assert made.state(1).cursor == 3


def test_what_was_permitted_and_unread_holds_the_cursor() -> None:
    facts = with_old_posts()
    add_root(facts, 4, author=None)
    assert 1 not in adopting(facts, TOGETHER).states.changed


def test_agent_that_has_read_everything_keeps_its_cursor() -> None:
    facts = with_old_posts()
    facts.states[1] = AgentState(cursor=3)
    assert 1 not in adopting(facts, TOGETHER).states.changed


def test_agent_that_only_loses_mates_keeps_its_cursor() -> None:
    facts = world([agent(1), agent(2), agent(3)], TOGETHER)
    add_root(facts, 1, author=3)
    assert 1 not in adopting(facts, APART).states.changed


def test_new_member_of_a_private_channel_replays_nothing() -> None:
    facts = world(3, APART)
    add_root(facts, 1, author=2, channel=PRIVATE)
    made = draft(facts)
    adopt(made, Adopt(gate=topology(facts.agents, APART, members=(1,), version=2)))
    assert made.state(1).cursor == 1
