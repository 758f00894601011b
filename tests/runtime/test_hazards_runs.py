"""Hazards of whole runs: full desks, stops, deadlines and latecomers."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from dataclasses import replace

import pytest

from engine.core.effects import Effect, TurnOutcome
from engine.core.group import Group
from engine.core.records import InvitationState, Outcome, Status
from engine.phases.scene import Scene
from engine.ports.llm import (
    Decision,
    LlmRequest,
    NewRoot,
    RememberContext,
    SkipPost,
)
from engine.store.memory import MemoryStore
from engine.turn.log import TurnLog
from tests.runtime.parts import (
    at_home,
    authors,
    decline,
    go_on,
    new_root,
    skip,
    texts,
)
from tests.runtime.scripted_llm import by_phase, eager, silent, unlike_any_other
from tests.runtime.society import Live, make_agent, make_society, play

# --- full desks ------------------------------------------------------------------------------------


def test_forty_invitations_at_two_seats_are_all_dealt_with() -> None:
    everybody = tuple(range(1, 42))
    most_threads = 0

    def call_the_first(request: LlmRequest) -> Decision:
        if request.agent == "a1":
            return SkipPost(reason="they call me")
        return NewRoot(channel="general", text=f"@Bot1 {unlike_any_other(request)}", tag=None)

    def first_goes_on(request: LlmRequest) -> Decision:
        return go_on(request) if request.agent == "a1" else decline(request)

    async def part(live: Live) -> None:
        nonlocal most_threads
        is_parted = False
        while True:
            await live.sleep(0.5)
            most_threads = max(most_threads, len(live.engine.world.desk(1).threads))
            if not is_parted and len(live.tables.decisions) >= 5:
                is_parted = True
                live.society.change_topology(
                    cohorts={"most": everybody[:36], "rest": everybody[36:]}
                )
            live.beat()

    script = by_phase(silent, post=call_the_first, reply=first_goes_on)
    society = make_society(41, cohorts={"all": everybody})
    played = play(
        society, part, script=script, latency=2.0, active_thread_threshold=2, daily_posts=1
    )
    assert played.reason == "idle"
    rows = [row for (agent, _), row in played.tables.invitations.items() if agent == 1]
    by_state = Counter((row.state, row.reason) for row in rows)
    assert len(rows) == 40
    assert set(by_state) == {
        (InvitationState.ANSWERED, ""),
        (InvitationState.REFUSED, "not_permitted"),
    }
    assert by_state[InvitationState.ANSWERED, ""] >= 35
    assert played.engine.world.desk(1).invitations == ()
    assert most_threads == 2


def test_last_seat_serves_the_post_that_was_kept_in_the_same_turn() -> None:
    script = by_phase(eager, reply=decline)
    played = play(
        at_home(2), script=script, max_turns=2, concurrent_turns=1, active_thread_threshold=1
    )
    assert authors(played) == [1, 2]
    assert list(played.tables.open_pairs) == [(1, 2)]


# --- status, deadline, stop ----------------------------------------------------------------------------


def test_agent_paused_while_its_turn_runs_posts_nothing() -> None:
    async def pause(live: Live) -> None:
        await live.sleep(5)
        live.society.save_agent(replace(live.tables.agents[1], status=Status.PAUSED))
        live.beat()

    script = by_phase(silent, post=new_root)
    played = play(at_home(2), pause, script=script, latency=10.0, daily_posts=1)
    assert authors(played) == [2]
    assert dict(played.tables.turns[1].rejected) == {"author_out": 1}
    assert played.tables.states[1].posts_made == 0
    assert [turn.agent for turn in played.tables.turns.values()].count(1) == 1


def test_debts_of_a_turn_that_met_its_deadline_are_kept() -> None:
    """Two answers owed, one slow: at the deadline neither is lost, and both are given later."""
    slow_turn = 0

    def latency(request: LlmRequest) -> float:
        nonlocal slow_turn
        if request.phase == "reply" and request.agent == "a1" and request.thread == 1:
            slow_turn = slow_turn or request.turn
            return 500.0 if request.turn == slow_turn else 1.0
        return 1.0

    script = by_phase(eager, reply=decline)
    played = play(
        at_home(3),
        script=script,
        latency=latency,
        max_turn_seconds=100,
        daily_posts=1,
        concurrent_turns=3,
    )
    late = played.tables.turns[slow_turn]
    assert (late.outcome, late.detail) == (TurnOutcome.CANCELLED, "deadline")
    assert played.tables.decisions[1, 1].outcome is Outcome.NO_PROPOSAL
    assert played.engine.world.threads == {}
    assert played.engine.rules.claims.is_empty


@pytest.mark.parametrize(("asked", "ends_after"), [(1, 35.0), (2, 5.0)])
def test_stop_reaches_a_run_whose_slots_are_all_busy(asked: int, ends_after: float) -> None:
    async def stop(live: Live) -> None:
        await live.sleep(5)
        for _ in range(asked):
            live.engine.stop()

    society = at_home(2)
    began = society.starts_at
    played = play(
        society, stop, script=eager, latency=500.0, concurrent_turns=1, stop_grace_seconds=30
    )
    assert played.reason == "stopped"
    assert (society.starts_at - began).total_seconds() == ends_after
    assert played.tables.turns[1].outcome is TurnOutcome.CANCELLED
    (call,) = played.tables.calls.values()
    assert call.error == "cancelled"


def test_turns_in_flight_finish_within_the_grace() -> None:
    async def stop(live: Live) -> None:
        await live.sleep(5)
        live.engine.stop()

    played = play(at_home(2), stop, script=eager, latency=20.0, concurrent_turns=1)
    assert played.reason == "stopped"
    assert [turn.outcome for turn in played.tables.turns.values()] == [TurnOutcome.WORKED]
    assert len(texts(played)) == 1


def test_driver_whose_lease_was_taken_ends_at_once_and_stores_nothing() -> None:
    async def take_over(live: Live) -> None:
        await live.sleep(5)
        MemoryStore(live.tables)
        live.beat()

    society = at_home(2)
    began = society.starts_at
    played = play(society, take_over, script=eager, latency=20.0, concurrent_turns=1)
    assert played.reason == "interrupted"
    assert (society.starts_at - began).total_seconds() == 5.0
    assert (texts(played), played.tables.turns) == ([], {})


def test_driver_that_is_fenced_at_a_commit_ends_interrupted() -> None:
    async def take_over(live: Live) -> None:
        await live.sleep(5)
        MemoryStore(live.tables)

    played = play(at_home(2), take_over, script=eager, latency=20.0, concurrent_turns=1)
    assert played.reason == "interrupted"
    assert texts(played) == []
    assert "the lease has moved on" in played.ending.sentence


def test_database_that_fails_ends_the_run_as_failed() -> None:
    async def fail(group: Group) -> None:
        if group.messages:
            raise OSError("the disk is full")

    played = play(at_home(2), script=eager, before_commit=fail)
    assert played.reason == "failed"
    assert played.ending.sentence == "Nothing can be stored any more: the disk is full"


# --- time ------------------------------------------------------------------------------------------


def test_agent_waits_from_the_moment_it_has_cooled_also_behind_busy_slots() -> None:
    script = by_phase(silent, post=new_root)
    played = play(
        at_home(2),
        script=script,
        latency=lambda request: 30.0 if request.phase == "post" else 0.0,
        concurrent_turns=1,
        turn_delay_seconds=10,
        daily_posts=2,
        max_turns=3,
    )
    # Agent 1 ends at 30 s, has cooled at 40 s, and gets the slot when agent 2 leaves it at 60 s.
    assert [turn.agent for turn in played.tables.turns.values()] == [1, 2, 1]
    assert [turn.waited_seconds for turn in played.tables.turns.values()] == [0.0, 30.0, 20.0]


def test_memories_that_are_being_written_hold_up_nobody_else() -> None:
    """Two closes at once are remembered in turns of their own, side by side with other talk."""

    def latency(request: LlmRequest) -> float:
        return 100.0 if request.phase == "remember" else 1.0

    async def ask(live: Live) -> None:
        await live.until(lambda: len(live.tables.decisions) == 1)
        live.society.people.write_message(channel=1, text="@Bot3 hello", at=live.clock.now())
        live.beat()

    def first_two(request: LlmRequest) -> Decision:
        return skip(request) if request.agent == "a3" else eager(request)

    script = by_phase(silent, post=first_two, reply=decline, scan=eager)
    played = play(
        at_home(3), ask, script=script, latency=latency, daily_posts=1, concurrent_turns=3
    )
    closed = played.tables.decisions[min(played.tables.decisions)]
    (said,) = (row.message for row in played.tables.messages.values() if row.message.author == 3)
    assert (said.at - closed.at).total_seconds() < 10
    memories = [call for call in played.tables.calls.values() if call.phase == "remember"]
    assert len(memories) >= 2


def test_talks_are_remembered_in_the_order_they_closed() -> None:
    script = by_phase(eager, reply=decline)
    played = play(at_home(3), script=script, latency=3.0, daily_posts=2)
    told: dict[str, list[int]] = {}
    for request in played.llm.requests:
        if isinstance(request.context, RememberContext):
            for one in request.context.talks:
                told.setdefault(request.agent, []).append(one.history[-1].seq)
    assert all(seqs == sorted(set(seqs)) for seqs in told.values())
    n_sides = sum(len(row.thread.sides) for row in played.tables.decisions.values())
    assert sum(map(len, told.values())) == n_sides >= 6


def test_turns_that_do_nothing_do_not_follow_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing(scene: Scene, log: TurnLog, work: object) -> None:
        await log.hand_in((), ends=TurnOutcome.WORKED)

    monkeypatch.setattr("engine.loop.conduct.run_turn", nothing)

    async def write(live: Live) -> None:
        await live.sleep(100)
        live.society.people.write_message(channel=1, text="@Bot1 hello", at=live.clock.now())
        live.beat()

    played = play(at_home(2), write, until_idle=False, max_minutes=10, max_turns=20)
    turns = list(played.tables.turns.values())
    # One each; then nobody until a person speaks, and again one each.
    assert [(turn.agent, str(turn.outcome)) for turn in turns] == [
        (1, "nothing"),
        (2, "nothing"),
        (1, "nothing"),
        (2, "nothing"),
    ]
    assert (turns[2].selected_at - turns[0].selected_at).total_seconds() == 100
    assert played.engine.figures.n_empty_turns == 4


def test_joiner_every_twenty_seconds_starves_nobody() -> None:
    async def join(live: Live) -> None:
        for number in range(4, 24):
            await live.sleep(20)
            live.society.save_agent(make_agent(number))
            live.beat()

    script = by_phase(silent, post=new_root)
    played = play(
        at_home(3),
        join,
        script=script,
        latency=10.0,
        concurrent_turns=1,
        daily_posts=99,
        until_idle=False,
        max_minutes=15,
    )
    turns = list(played.tables.turns.values())
    first_of = {turn.agent: turn.number for turn in reversed(turns)}
    assert sorted(first_of) == list(range(1, 24))
    # A joiner waits behind all who were there, and nobody waits for more than one round of all.
    gaps: dict[int, int] = {}
    last: dict[int, int] = {}
    for turn in turns:
        gaps[turn.agent] = max(gaps.get(turn.agent, 0), turn.number - last.get(turn.agent, 0))
        last[turn.agent] = turn.number
    assert max(gap for agent, gap in gaps.items() if agent <= 3) <= 23
    assert any(turn.waited_seconds for turn in turns)
    assert all(turn.waited_seconds <= turn.wait_bound_seconds for turn in turns)


# --- the mail --------------------------------------------------------------------------------------


def test_mail_is_taken_in_once_when_it_is_looked_for_twice(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    read = MemoryStore.read_mail

    async def slowly(store: MemoryStore) -> tuple[Effect, ...]:
        mail = await read(store)
        await asyncio.sleep(2)
        return mail

    monkeypatch.setattr(MemoryStore, "read_mail", slowly)

    async def write(live: Live) -> None:
        await live.sleep(3)
        live.society.people.write_message(channel=1, text="hello", at=live.clock.now())
        for _ in range(4):
            live.beat()
            await live.sleep(1)

    with caplog.at_level(logging.WARNING):
        played = play(at_home(1), write, script=silent, daily_posts=0, latency=1.0)
    assert texts(played) == ["hello"]
    assert caplog.messages == []


def test_message_of_the_first_moment_is_read_by_those_who_begin() -> None:
    """It is taken in while the run begins: nobody's first cursor may pass over it."""

    async def write(live: Live) -> None:
        live.society.people.write_message(channel=1, text="at once", at=live.clock.now())
        live.beat()

    played = play(at_home(2), write, script=by_phase(eager, post=skip))
    assert {agent: state.bank for agent, state in played.tables.states.items()} == {
        1: (1,),
        2: (1,),
    }
