"""Hazards of reads and calls that fail in the middle of a turn or of a run: what was paid for stays,
and only what cannot go on ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from engine.core.effects import TurnOutcome
from engine.core.errors import StoreError, TransientLlmError
from engine.ports.llm import Decision, LlmPhase, LlmRequest
from tests.runtime.door import open_door, post, reasons, reply
from tests.runtime.parts import at_home
from tests.runtime.scripted_llm import Script, by_phase, eager, silent
from tests.runtime.society import (
    Live,
    Played,
    Society,
    in_virtual_time,
    make_society,
    play,
)


def failing(times: int, method: Any) -> Any:
    """Return a store's method that fails so many times before it works."""
    left = [times]

    async def read(*args: object, **options: object) -> object:
        if left[0]:
            left[0] -= 1
            raise StoreError("the index is corrupt")
        return await method(*args, **options)

    return read


# --- what was paid for ---------------------------------------------------------------------------


def talk_to_remember() -> Society:
    """Return two agents of which the first has a closed talk to remember and a person's post."""
    society = at_home(2)
    play(society, script=by_phase(eager, remember=_not_now), daily_posts=1, max_turns=12)
    society.people.write_message(channel=1, text="Any news?", at=society.starts_at)
    return society


def _not_now(request: LlmRequest) -> Decision:
    raise TransientLlmError("busy", retry_after_seconds=3600)


def remembered_after(scan: Script, latency: Callable[[LlmRequest], float]) -> Played:
    society = talk_to_remember()
    assert society.tables.memories == {}
    return play(
        society,
        script=by_phase(silent, scan=scan),
        latency=latency,
        until_idle=False,
        max_minutes=3,
        max_turn_seconds=20,
        concurrent_turns=1,
    )


def test_memory_stays_when_the_scan_after_it_fails() -> None:
    played = remembered_after(_not_now, lambda _: 1.0)
    outcomes = {turn.outcome for turn in played.tables.turns.values() if turn.number > 12}
    assert TurnOutcome.BACKOFF in outcomes
    assert {key: one.version for key, one in played.tables.memories.items()} == {
        (1, None): 1,
        (2, None): 1,
    }
    assert played.llm.n_calls("remember") == 2


def test_memory_stays_when_the_turn_is_cancelled_in_the_scan() -> None:
    def slow_scan(request: LlmRequest) -> float:
        return 60.0 if request.phase is LlmPhase.SCAN else 1.0

    played = remembered_after(silent, slow_scan)
    outcomes = {turn.outcome for turn in played.tables.turns.values() if turn.number > 12}
    assert TurnOutcome.CANCELLED in outcomes
    assert played.llm.n_calls("remember") == 2
    assert [one.version for one in played.tables.memories.values()] == [1, 1]


# --- reads that fail -------------------------------------------------------------------------------


def test_turn_whose_read_fails_is_failed_and_the_run_goes_on() -> None:
    def break_once(live: Live) -> None:
        vars(live.store)["read"] = failing(1, live.store.read)

    played = play(at_home(2), script=silent, on_begin=break_once, concurrent_turns=1)
    assert played.reason == "idle"
    first, *others = played.tables.turns.values()
    assert (first.outcome, first.detail) == (
        TurnOutcome.FAILED,
        "StoreError: the index is corrupt",
    )
    assert TurnOutcome.FAILED not in {turn.outcome for turn in others}
    assert first.agent in {turn.agent for turn in others}


@pytest.mark.parametrize("roster_changes", [False, True], ids=["version-moves", "roster-changes"])
def test_failed_reload_keeps_the_last_good_gate_until_the_next_look(
    *, roster_changes: bool
) -> None:
    kept = []

    async def change(live: Live) -> None:
        await live.until(lambda: len(live.tables.turns) == 2)
        vars(live.store)["load_gate"] = failing(1, live.store.load_gate)
        if roster_changes:
            live.society.people.save_agent(live.tables.agents[1])
        else:
            live.society.change_topology(cohorts={"north": (1,), "south": (2,)})
        live.beat()
        await live.sleep(0.1)
        kept.append(live.engine.world.gate.version)
        live.beat()
        await live.sleep(0.1)
        kept.append(live.engine.world.gate.version)

    played = play(at_home(2), change, script=silent, until_idle=False, max_minutes=1)
    assert played.reason == "time_limit"
    assert kept == ([1, 1] if roster_changes else [1, 2])


@pytest.mark.parametrize(("n_failures", "reason"), [(1, ""), (9, "topology_changing")])
def test_group_that_cannot_be_checked_again_starts_nothing(n_failures: int, reason: str) -> None:
    async def body() -> None:
        async with open_door(make_society(2)) as door:
            root = await door.seq(post(2))
            door.society.change_topology()
            vars(door.store)["load_gate"] = failing(n_failures, door.store.load_gate)
            assert reasons(await door.turn(1, reply(1, root, 1))) == [reason]
            assert door.world.gate.version == (1 if reason else 2)
            assert reasons(await door.turn(2, post(2, "and the door is open"))) == [""]
            assert await door.differing() == (["gate"] if reason else [])

    in_virtual_time(body())
