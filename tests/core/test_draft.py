"""The draft: changes on top of the world, taken over all at once or not at all."""

from __future__ import annotations

import pytest

from engine.core.door.hand_in import prepare
from engine.core.draft import Overlay
from engine.core.effects import Adopt, HandIn, Join, Post, TakeNotice
from engine.core.records import AgentState, Status
from tests.core.facts import (
    AT,
    PRIVATE,
    PUBLIC,
    add_thread,
    agent,
    draft,
    root,
    topology,
    turn,
    world,
)


def test_overlay_reads_through_and_leaves_the_base_alone() -> None:
    base = {1: "one", 2: "two"}
    table: Overlay[int, str] = Overlay(base)
    table[1] = "eins"
    table[3] = "drei"
    table.remove(2)
    assert [table.get(key) for key in (1, 2, 3, 4)] == ["eins", None, "drei", None]
    assert [table.get(key, "none") for key in (1, 2, 4)] == ["eins", "none", "none"]
    assert table[3] == "drei"
    with pytest.raises(KeyError):
        table[2]
    assert base == {1: "one", 2: "two"}
    table.absorb()
    assert base == {1: "eins", 3: "drei"}


def test_draft_changes_nothing_until_it_is_absorbed() -> None:
    facts = world(2)
    made = draft(facts)
    post = Post(agent=1, channel=PUBLIC, text="Hello")
    prepare(made, HandIn(effects=(post,), turn=turn(1)))
    assert (facts.roots, facts.last_seq, facts.states) == ({}, 0, {})
    assert facts.unread(2, most=5) == []
    concern = made.absorb()
    assert (facts.roots, facts.last_seq, facts.commit_no) == ({1: root(1, 1)}, 1, 1)
    assert facts.states[1].last_selected == 5
    assert facts.unread(2, most=5) == [root(1, 1)]
    assert concern.roots == [root(1, 1)]


def test_joined_channel_is_looked_through_from_the_cursor_on() -> None:
    facts = world(2, members=(1, 2))
    facts.subscriptions[1] = (PUBLIC,)
    made = draft(facts)
    prepare(made, HandIn(effects=(Post(agent=2, channel=PRIVATE, text="Hi"),), turn=turn(2)))
    made.absorb()
    assert facts.unread(1, most=5) == []
    joined = draft(facts)
    prepare(joined, HandIn(effects=(Join(agent=1, channels=(PRIVATE,)),)))
    joined.absorb()
    assert [one.seq for one in facts.unread(1, most=5)] == [1]


def test_adopted_topology_files_everything_anew() -> None:
    facts = world(2, {"north": (1,), "south": (2,)})
    made = draft(facts)
    gate = topology((1, 2), {"north": (1, 2)}, version=2)
    post = Post(agent=2, channel=PUBLIC, text="Hello")
    prepare(made, HandIn(effects=(Adopt(gate=gate),)))
    prepare(made, HandIn(effects=(post,), turn=turn(2)))
    made.absorb()
    assert facts.gate is gate
    assert [one.seq for one in facts.unread(1, most=5)] == [1]


def test_finished_group_holds_every_changed_record_once() -> None:
    facts = world(2)
    made = draft(facts)
    notices = (TakeNotice(agent=1, cursor=3), TakeNotice(agent=1, cursor=5))
    prepare(made, HandIn(effects=notices))
    group = made.finish()
    assert group.states == [(1, AgentState(cursor=5))]
    assert (group.number, group.at, group.threads, group.invitations) == (1, AT, [], [])


def test_absorbed_threads_that_are_open_are_told() -> None:
    facts = world(3)
    add_thread(facts, 1, opener=1, partner=2)
    made = draft(facts)
    made.threads[1] = facts.threads[1]
    made.threads.remove(4)
    assert made.absorb().threads == [facts.threads[1]]


@pytest.mark.parametrize(
    ("status", "active", "out"),
    [
        (Status.ACTIVE, True, False),
        (Status.PAUSED, False, False),
        (Status.RETIRED, False, True),
        (None, False, True),
    ],
)
def test_draft_tells_who_is_active_and_who_is_out_for_good(
    status: Status | None, *, active: bool, out: bool
) -> None:
    facts = world([] if status is None else [agent(1, status=status)])
    made = draft(facts)
    assert (made.is_active(1), made.is_out_for_good(1)) == (active, out)
