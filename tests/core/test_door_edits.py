"""What people edit while a run goes on: agents, channels, memories; and every kind of effect."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from engine.core.door.hand_in import prepare
from engine.core.door.people import (
    agent_changed,
    channel_changed,
    memory_changed,
)
from engine.core.draft import Draft
from engine.core.effects import (
    Adopt,
    AgentChanged,
    ChannelChanged,
    Committed,
    HandIn,
    Join,
    MemoryChanged,
    Miss,
    Rejected,
    Remember,
    Reviewed,
    TakeNotice,
    Verdict,
)
from engine.core.records import (
    AgentState,
    Channel,
    Desk,
    Memory,
    Outcome,
    Status,
    Thread,
    ThreadState,
    Visibility,
)
from engine.core.world import World
from tests.core.facts import (
    AT,
    PUBLIC,
    add_root,
    add_thread,
    agent,
    draft,
    root,
    rules,
    thread,
    world,
)


def closed(**fields: Any) -> Thread:
    made = thread(1, 1, 2, state=ThreadState.CLOSED, outcome=Outcome.NO_PROPOSAL)
    return replace(made, closed_seq=4, closed_at=AT, **fields)


def changing(facts: World, **fields: Any) -> Draft:
    made = draft(facts)
    values: dict[str, Any] = {"note": 60, "agent": 1} | fields
    assert agent_changed(made, AgentChanged(**values)) == Committed()
    return made


def test_new_agent_starts_at_the_newest_seq_behind_those_who_wait() -> None:
    facts = world(2)
    add_root(facts, 9, author=2)
    made = changing(facts, agent=3, spec=agent(3), note=None)
    assert made.state(3) == AgentState(last_selected=7, cursor=9)
    assert (made.handles["bot3"], made.group.notes) == (3, [])
    assert (list(made.concern.agents), list(made.concern.seats)) == ([3], [3])
    made.absorb()
    assert facts.by_key[-1] == [1, 2]
    assert facts.handles == {"bot1": 1, "bot2": 2, "bot3": 3}


def test_agent_that_comes_back_keeps_its_turn_and_skips_what_was_said() -> None:
    facts = world([agent(1, status=Status.PAUSED), agent(2)])
    add_root(facts, 9, author=2)
    facts.states[1] = AgentState(last_selected=4, cursor=2, away=True)
    made = changing(facts, spec=agent(1))
    assert made.state(1) == AgentState(last_selected=4, cursor=9)
    assert made.group.notes == [60]


@pytest.mark.parametrize("status", [Status.PAUSED, Status.RETIRED])
def test_agent_that_goes_is_away_and_keeps_its_cursor(status: Status) -> None:
    facts = world(2)
    facts.states[1] = AgentState(last_selected=4, cursor=2)
    made = changing(facts, spec=agent(1, status=status))
    assert made.state(1) == AgentState(last_selected=4, cursor=2, away=True)


def test_new_agent_that_is_paused_queues_and_is_away() -> None:
    made = changing(world(2), agent=3, spec=agent(3, status=Status.PAUSED))
    assert made.state(3) == AgentState(last_selected=7, away=True)


def test_edited_agent_keeps_its_place_and_concerns_its_partners() -> None:
    facts = world(3)
    facts.states[1] = AgentState(last_selected=4)
    add_thread(facts, 1, opener=1, partner=2)
    made = changing(facts, spec=agent(1, bot_name="Renamed", version=2))
    assert made.states.changed == {}
    assert made.handles == {"renamed": 1, "bot2": 2, "bot3": 3}
    assert facts.handles == {"bot1": 1, "bot2": 2, "bot3": 3}
    assert list(made.concern.agents) == [1, 2]


def test_names_that_change_hands_in_one_group_are_kept_apart() -> None:
    facts = world(2)
    made = draft(facts)
    agent_changed(made, AgentChanged(note=1, agent=2, spec=agent(2, bot_name="Bot1")))
    agent_changed(made, AgentChanged(note=2, agent=1, spec=agent(1, bot_name="Bot9")))
    assert made.handles == {"bot1": 2, "bot9": 1}


def test_agent_that_retires_loses_what_it_owes_and_no_more() -> None:
    facts = world(3)
    add_thread(facts, 1, opener=2, partner=1)
    add_thread(facts, 4, opener=1, partner=3)
    made = changing(facts, spec=None)
    assert made.agents[1].status is Status.RETIRED
    assert [(row.thread.root, row.outcome) for row in made.group.decisions] == [(1, Outcome.LOST)]
    assert made.desk(1).threads == (4,)


def test_stranger_that_leaves_changes_nothing() -> None:
    made = changing(world(2), agent=9, spec=None)
    assert (made.agents.changed, made.group.notes) == ({}, [60])


def test_new_channel_concerns_everybody() -> None:
    made = draft(world(2))
    room = Channel(id=5, name="labs", topic="", visibility=Visibility.PUBLIC)
    assert channel_changed(made, ChannelChanged(note=61, channel=room)) == Committed()
    assert (made.channels[5], made.concern.everybody, made.group.notes) == (room, True, [61])


def test_edited_memory_has_a_new_version() -> None:
    made = draft(world(2))
    edit = MemoryChanged(note=62, agent=1, channel=None, version=4, upto_seq=9)
    assert memory_changed(made, edit) == Committed()
    assert made.memories[1, None] == Memory(agent=1, channel=None, version=4, upto_seq=9)
    assert made.group.notes == [62]


def test_every_kind_of_effect_is_entered() -> None:
    """What comes from outside and what a turn may ask, through the one door."""
    facts = world(2, joined=False)
    facts.desks[1] = Desk()
    made = draft(facts, rules())
    room = facts.channels[PUBLIC]
    effects = (
        AgentChanged(note=1, agent=2, spec=agent(2)),
        ChannelChanged(note=2, channel=room),
        MemoryChanged(note=3, agent=1, channel=None, version=1, upto_seq=0),
        Reviewed(
            note=4,
            root=1,
            cycle=1,
            verdict=Verdict.ACCEPTED,
            guidance="",
            known_root=root(1, 2),
            known_thread=closed(),
        ),
        Adopt(gate=facts.gate),
        Join(agent=1, channels=(PUBLIC,)),
        TakeNotice(agent=1),
        Remember(agent=1, channel=None, text="", upto_seq=0, base_version=1, n_talks=0),
        Miss(agent=1, root=1, cycle=1),
    )
    answer = prepare(made, HandIn(effects=effects))
    assert answer.turn is None
    assert answer.results == (*[Committed()] * 8, Rejected(reason="not_owed"))


def test_note_of_a_channel_that_is_gone_changes_nothing_and_goes() -> None:
    facts = world(2)
    made = draft(facts)
    assert channel_changed(made, ChannelChanged(note=9, channel=None)) == Committed()
    assert (made.group.notes, made.channels.changed, made.concern.everybody) == ([9], {}, False)
