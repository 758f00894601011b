"""Hazards of what a turn has found out before it ends badly: it is neither lost nor counted twice."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from engine.core.effects import MoveKind, Remember, TakeNotice, TurnOutcome
from engine.core.errors import LlmError, PermanentLlmError, TransientLlmError
from engine.core.group import Group
from engine.ports.llm import LlmPhase, LlmRequest
from tests.runtime.door import Door, open_door, post, reply
from tests.runtime.parts import raising
from tests.runtime.scripted_llm import Script, by_phase, eager, silent
from tests.runtime.society import Live, Played, Society, in_virtual_time, make_society, play

#: The root that 1 cannot answer any more, and the newest of all, which the gate keeps from it.
STALE, KEPT_BACK = 2, 7


def busy_society(*, told: bool = True, to_scan: bool = False) -> Society:
    """Return a society in which 1 owes an answer, one post is kept from it and one call is stale.

    Unless `told`, 1 has a closed talk to remember; if `to_scan`, it may read one more post.
    """
    society = make_society(4, cohorts={"north": (1, 2, 4), "south": (3,)}, policy="isolated")

    async def body() -> None:
        async with open_door(society) as door:
            await _live_a_little(door)
            if told:
                remember = Remember(
                    agent=1, channel=None, text="hay", upto_seq=4, n_talks=1, base_version=0
                )
                await door.turn(1, remember)
            if to_scan:
                await door.seq(post(4, "of dogs"))

    in_virtual_time(body())
    return society


async def _live_a_little(door: Door) -> None:
    """Let 2 call 1 twice; once the one talk is over, the other call is older than its close."""
    called = await door.seq(post(2, "@Bot1 of hay", tag=1))
    assert await door.seq(post(2, "@Bot1 of goats", tag=1)) == STALE
    await door.seq(reply(1, called))
    await door.seq(reply(2, called, 2, "no", MoveKind.DECLINE))
    owed = await door.seq(post(1, "of bees"))
    await door.seq(reply(4, owed))
    assert await door.seq(post(3, "of cats")) == KEPT_BACK


def one_turn(society: Society, script: Script, **options: Any) -> Played:
    """Let agent 1 have one turn, as the one that has waited longest."""
    states = society.tables.states
    states[1] = replace(states[1], last_selected=0)
    played = play(society, script=script, max_turns=1, **_quiet(options))
    assert last_turn(played).agent == 1
    return played


def _quiet(options: dict[str, Any]) -> dict[str, Any]:
    return {"daily_posts": 0, "concurrent_turns": 1} | options


def last_turn(played: Played) -> Any:
    return played.tables.turns[max(played.tables.turns)]


def noticed(played: Played) -> tuple[int, tuple[int, ...], str]:
    """Return how far 1 has read, what it keeps, and what became of the stale call."""
    state, call = played.tables.states[1], played.tables.invitations[1, STALE]
    return state.cursor, state.bank, call.reason or str(call.state)


def n_kept_back(society: Society) -> int:
    turns = society.tables.turns.values()
    return sum(turn.n_gate_filtered for turn in turns if turn.agent == 1)


def go_on_to_the_end(society: Society) -> None:
    assert play(society, script=silent, **_quiet({})).reason == "idle"


# --- the answer fails ------------------------------------------------------------------------------


async def stop_at_once(live: Live) -> None:
    await live.sleep(5)
    live.engine.stop()
    live.engine.stop()


def slow(request: LlmRequest) -> float:
    return 500.0 if request.phase is LlmPhase.REPLY else 0.0


@pytest.mark.parametrize(
    ("outcome", "error", "options"),
    [
        (TurnOutcome.FAILED, PermanentLlmError("no such key"), {}),
        (TurnOutcome.BACKOFF, TransientLlmError("busy", retry_after_seconds=3600), {}),
        (TurnOutcome.CANCELLED, None, {"latency": slow, "max_turn_seconds": 20}),
        (TurnOutcome.CANCELLED, None, {"latency": slow, "meanwhile": stop_at_once}),
    ],
    ids=["permanent", "busy", "deadline", "stop"],
)
def test_notice_stays_when_the_answer_fails(
    outcome: TurnOutcome, error: LlmError | None, options: dict[str, Any]
) -> None:
    society = busy_society()
    script = silent if error is None else by_phase(silent, reply=raising(error))
    played = one_turn(society, script, **options)
    assert (last_turn(played).outcome, last_turn(played).n_gate_filtered) == (outcome, 1)
    assert noticed(played) == (KEPT_BACK, (), "older_than_close")
    assert played.engine.world.threads  # it is owed as before
    go_on_to_the_end(society)
    assert n_kept_back(society) == 1


# --- the hand-in is withdrawn ------------------------------------------------------------------------


def turn_that_waits_for_the_store(society: Society) -> Played:
    """Let 1 have a turn whose deadline comes while the store is busy with a person's message."""

    async def hold(group: Group) -> None:
        if group.taken_in:
            await asyncio.sleep(60)

    async def write(live: Live) -> None:
        await live.sleep(1)
        live.society.people.write_message(channel=1, text="hello", at=live.clock.now())
        live.beat()

    played = one_turn(
        society,
        eager,
        meanwhile=write,
        before_commit=hold,
        latency=5.0,
        max_turn_seconds=20,
    )
    assert (last_turn(played).outcome, last_turn(played).detail) == (
        TurnOutcome.CANCELLED,
        "deadline",
    )
    assert (last_turn(played).n_llm_calls, played.llm.n_calls()) == (1, 1)
    return played


@pytest.mark.parametrize(
    ("to_scan", "found"),
    [
        (False, (KEPT_BACK, (), "older_than_close")),
        (True, (KEPT_BACK + 1, (KEPT_BACK + 1,), "older_than_close")),
    ],
    ids=["free", "scanned"],
)
def test_notice_stays_when_its_hand_in_is_withdrawn(
    *, to_scan: bool, found: tuple[int, tuple[int, ...], str]
) -> None:
    society = busy_society(to_scan=to_scan)
    played = turn_that_waits_for_the_store(society)
    assert [call.phase for call in played.llm.requests] == ["scan" if to_scan else "reply"]
    assert noticed(played) == found
    go_on_to_the_end(society)
    assert n_kept_back(society) == 1


def test_memory_stays_when_its_hand_in_is_withdrawn() -> None:
    society = busy_society(told=False)
    played = turn_that_waits_for_the_store(society)
    assert [call.phase for call in played.llm.requests] == ["remember"]
    assert played.tables.memories[1, None].upto_seq == 4
    assert noticed(played) == (0, (), "pending")
    go_on_to_the_end(society)
    assert n_kept_back(society) == 1


# --- the scan fails --------------------------------------------------------------------------------


def full_bank() -> Society:
    """Return a society in which 1 keeps twenty posts and has one more to read."""
    society = make_society(3, cohorts={"north": (1, 2), "south": (3,)}, policy="isolated")

    async def body() -> None:
        async with open_door(society) as door:
            for number in range(20):
                society.people.write_message(channel=1, text=f"{number}", at=door.clock.now())
            await door.take_mail()
            kept = TakeNotice(agent=1, cursor=20, keep=tuple(range(1, 21)))
            await door.turn(1, kept)
            await door.seq(post(3, "of cats"))
            await door.seq(post(2, "of dogs"))

    in_virtual_time(body())
    return society


def test_scan_that_is_done_again_counts_what_the_gate_keeps_once() -> None:
    society = full_bank()
    busy = raising(TransientLlmError("busy", retry_after_seconds=3600))
    played = one_turn(society, by_phase(eager, prune=busy, post=silent))
    assert (last_turn(played).outcome, last_turn(played).n_gate_filtered) == (
        TurnOutcome.BACKOFF,
        0,
    )
    assert played.tables.states[1].cursor == 20
    one_turn(society, by_phase(eager, post=silent))
    assert society.tables.states[1].cursor == 22
    assert n_kept_back(society) == 1
