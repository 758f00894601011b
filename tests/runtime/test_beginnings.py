"""How runs begin: who is new, and who only had no turn yet."""

from __future__ import annotations

from dataclasses import replace

from engine.core.records import Channel, Visibility
from tests.runtime.scripted_llm import silent
from tests.runtime.society import Live, make_agent, make_society, play


def test_agent_that_had_no_turn_yet_is_not_new_to_the_next_run() -> None:
    society = make_society(3)
    society.people.write_message(channel=1, text="Hello all", at=society.starts_at)
    play(society, script=silent, max_turns=1)
    assert list(society.tables.states) == [1, 2, 3]
    played = play(society, script=silent)
    scanned = {request.agent for request in played.llm.requests if request.phase == "scan"}
    assert scanned >= {"a2", "a3"}


def test_agent_that_joins_between_two_runs_reads_nothing_old_and_waits_its_turn() -> None:
    society = make_society(2)
    society.people.write_message(channel=1, text="Hello all", at=society.starts_at)
    play(society, script=silent)
    n_selections = len(society.tables.turns)
    society.tables.agents[3] = make_agent(3)
    society.change_topology()
    society.people.write_message(channel=1, text="Hello again", at=society.starts_at)
    played = play(society, script=silent)
    shown = [
        [post.text for post in request.context.posts]  # type: ignore[union-attr]
        for request in played.llm.requests
        if (request.agent, request.phase) == ("a3", "scan")
    ]
    assert shown == [["Hello again"]]
    first_turns = [played.tables.turns[n_selections + number].agent for number in (1, 2, 3)]
    assert first_turns == [1, 2, 3]


def test_agent_that_joins_a_live_run_waits_behind_those_who_wait() -> None:
    async def join(live: Live) -> None:
        await live.sleep(5)
        live.society.save_agent(make_agent(9))
        live.beat()

    society = make_society(4)
    played = play(society, join, latency=2.0, concurrent_turns=1, max_turns=12)
    turns = [turn.agent for turn in played.tables.turns.values()]
    joined_at = turns.index(9)
    assert set(turns[:joined_at]) == {1, 2, 3, 4}
    assert played.tables.states[9].cursor >= 0


def test_channel_that_is_made_while_a_run_goes_on_is_joined() -> None:
    async def make_room(live: Live) -> None:
        await live.sleep(1)
        room = Channel(id=7, name="kinds", topic="Things of a kind", visibility=Visibility.PUBLIC)
        live.society.people.save_channel(room)
        live.beat()

    society = make_society(2)
    play(society, make_room, script=silent, latency=3.0)
    assert sorted(society.tables.subscriptions) == [(1, 1), (1, 7), (2, 1), (2, 7)]


def test_agent_that_comes_back_skips_what_was_said_meanwhile() -> None:
    async def come_back(live: Live) -> None:
        people = live.society.people
        await live.sleep(5)
        people.write_message(channel=1, text="While away", at=live.clock.now())
        live.beat()
        await live.sleep(50)
        live.society.save_agent(make_agent(2))
        live.beat()
        await live.sleep(5)
        people.write_message(channel=1, text="After", at=live.clock.now())
        live.beat()
        await live.sleep(50)
        live.engine.stop()

    away = replace(make_agent(2), status=type(make_agent(2).status)("paused"))
    played = play(make_society([make_agent(1), away]), come_back, script=silent, until_idle=False)
    shown = [
        [post.text for post in request.context.posts]  # type: ignore[union-attr]
        for request in played.llm.requests
        if (request.agent, request.phase) == ("a2", "scan")
    ]
    assert shown == [["After"]]
