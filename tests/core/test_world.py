"""The world: feeds, what is unread, what the gate keeps back, and what is forgotten."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from engine.core.records import AgentState, Root, Status
from tests.core.facts import (
    PRIVATE,
    PUBLIC,
    add_invitation,
    add_root,
    add_thread,
    agent,
    topology,
    world,
)

if TYPE_CHECKING:
    from engine.core.world import World


def unread(facts: World, one: int, most: int = 40) -> list[int]:
    return [root.seq for root in facts.unread(one, most=most)]


def test_unread_roots_come_oldest_first_and_at_most_so_many() -> None:
    facts = world(3)
    for seq in (1, 2, 3, 4):
        add_root(facts, seq, author=2 + seq % 2)
    assert unread(facts, 1) == [1, 2, 3, 4]
    assert unread(facts, 1, most=2) == [1, 2]


def test_unread_begins_after_the_cursor() -> None:
    facts = world(2)
    for seq in (1, 2, 3):
        add_root(facts, seq, author=2)
    facts.states[1] = AgentState(cursor=2)
    assert unread(facts, 1) == [3]


def test_unread_leaves_out_what_is_nobody_elses_to_answer() -> None:
    facts = world(4)
    add_root(facts, 1, author=1)
    add_root(facts, 2, author=2, addressed=3)
    add_root(facts, 3, author=2, answered_by=(3,))
    add_root(facts, 4, author=None, answered_by=(1,))
    add_root(facts, 5, author=None, answered_by=(2, 3))
    add_root(facts, 6, author=2)
    add_root(facts, 7, author=None, answered_by=(2,))
    add_root(facts, 8, author=2)
    add_root(facts, 9, author=None, answered_by=(2,), closed=True)
    facts.states[1] = AgentState(bank=(6,))
    assert unread(facts, 1) == [7, 8]


def test_unread_obeys_the_gate_and_persons_pass_it() -> None:
    facts = world(4, {"north": (1, 2), "south": (3,)})
    for seq, author in enumerate((2, 3, 4, None), 1):
        add_root(facts, seq, author=author)
    assert unread(facts, 1) == [1, 3, 4]
    assert unread(facts, 3) == [3, 4]
    assert unread(facts, 4) == [1, 2, 4]


def test_unread_takes_in_only_joined_channels_and_private_ones_for_all_members() -> None:
    facts = world(4, {"north": (1,), "south": (2, 3, 4)}, members=(1, 2))
    add_root(facts, 1, author=2, channel=PRIVATE)
    assert (unread(facts, 1), unread(facts, 3)) == ([1], [])
    facts.subscriptions[1] = (PUBLIC,)
    facts.skimmed.clear()
    assert unread(facts, 1) == []


def test_bot_that_nobody_can_attribute_is_read_by_nobody_under_a_gate() -> None:
    facts = world(2, {"north": (1, 2)})
    add_root(facts, 1, author=None, is_bot=True)
    assert unread(facts, 1) == []
    without = world(2, policy="off")
    add_root(without, 1, author=None, is_bot=True)
    assert unread(without, 1) == [1]


def test_unread_skips_roots_that_were_forgotten() -> None:
    facts = world(2)
    add_root(facts, 1, author=2)
    add_root(facts, 2, author=2)
    del facts.roots[1]
    assert unread(facts, 1) == [2]


@given(
    authors=st.lists(st.sampled_from([1, 2, 3, 4, None]), max_size=30),
    cursor=st.integers(0, 30),
    most=st.integers(1, 12),
    looks=st.integers(1, 3),
)
def test_unread_is_what_a_walk_over_all_roots_finds(
    authors: list[int | None], cursor: int, most: int, looks: int
) -> None:
    """Also after earlier looks, whose skimming must lose nothing that comes later."""
    facts = world(4, {"north": (1, 2), "south": (2, 3)})
    facts.states[1] = AgentState(cursor=cursor)
    for seq, author in enumerate(authors, 1):
        add_root(facts, seq, author=author)
        if seq % looks == 0:
            facts.unread(1, most=most)

    def is_read(root: Root) -> bool:
        decision = facts.gate.decide(1, author=root.author, is_bot=root.is_bot)
        return root.seq > cursor and root.author != 1 and decision.permitted

    walked = [seq for seq, root in sorted(facts.roots.items()) if is_read(root)]
    assert unread(facts, 1, most=most) == walked[:most]


def test_kept_back_counts_what_the_gate_hides_between_two_places() -> None:
    facts = world(4, {"north": (1, 2), "south": (3,)})
    for seq, author in enumerate((2, 3, 3, 1, 4, None, 3), 1):
        add_root(facts, seq, author=author)
    assert facts.n_kept_back(1, 0, 7) == 3
    assert facts.n_kept_back(1, 2, 6) == 1
    assert facts.n_kept_back(2, 7, 7) == 0


def test_kept_back_counts_no_channel_that_was_not_joined() -> None:
    facts = world(2, {"north": (1,), "south": (2,)}, joined=False)
    add_root(facts, 1, author=2)
    assert facts.n_kept_back(1, 0, 1) == 0
    facts.subscriptions[1] = (PUBLIC, PRIVATE)
    assert facts.n_kept_back(1, 0, 1) == 1


def test_mates_are_whom_the_gate_permits() -> None:
    facts = world(5, {"north": (1, 2), "south": (2, 3), "east": (4,)})
    mates = [facts.some_mates(one, 9, Random(1)) for one in (1, 2, 4, 5)]
    assert mates == [[2, 5], [1, 3, 5], [5], [1, 2, 3, 4]]


def test_some_mates_are_no_more_than_asked_for_and_change_with_luck() -> None:
    facts = world(30, {"north": tuple(range(1, 31))})
    samples = [facts.some_mates(1, 4, Random(seed)) for seed in range(5)]
    assert {len(sample) for sample in samples} == {4}
    assert all(sample == sorted(set(sample)) and 1 not in sample for sample in samples)
    assert len({tuple(sample) for sample in samples}) > 1


def test_some_mates_of_an_agent_that_reads_nobody_are_none() -> None:
    facts = world(2, {"north": (1,)}, policy="isolated")
    assert facts.some_mates(2, 4, Random(1)) == []


def test_indexed_agent_stands_once_under_its_keys() -> None:
    facts = world(2, {"north": (1, 2)})
    facts.index_agent(replace(facts.agents[1], bot_name="Other"))
    assert facts.some_mates(2, 9, Random(1)) == [1]
    assert facts.handles["other"] == 1


def test_trim_keeps_what_is_unread_banked_invited_or_talked_in() -> None:
    facts = world([agent(1), agent(2), agent(3, status=Status.PAUSED)])
    for seq in range(1, 6):
        add_root(facts, seq, author=3)
    add_invitation(facts, 1, 2)
    facts.states.update({1: AgentState(cursor=9, bank=(1,)), 2: AgentState(cursor=4)})
    add_thread(facts, 6, opener=1, partner=2)
    facts.states[2] = AgentState(cursor=9)
    facts.last_seq = 9
    facts.trim()
    assert sorted(facts.roots) == [1, 2, 6]
    facts.states[2] = AgentState(cursor=0)
    add_root(facts, 10, author=3)
    facts.trim()
    assert sorted(facts.roots) == [1, 2, 6, 10]


def test_trim_without_anybody_active_keeps_nothing_unread() -> None:
    facts = world([agent(1, status=Status.PAUSED)])
    add_root(facts, 1, author=None)
    facts.trim()
    assert facts.roots == {}


def test_new_topology_files_old_roots_anew() -> None:
    facts = world(2, {"north": (1,), "south": (2,)})
    add_root(facts, 1, author=2)
    assert unread(facts, 1) == []
    facts.gate = topology((1, 2), {"north": (1, 2)}, version=2)
    facts.rebuild_caches()
    assert unread(facts, 1) == [1]
