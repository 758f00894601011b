"""The calls of a turn: retried, reserved, counted, and what ends a run."""

from __future__ import annotations

from typing import Any

import pytest

from engine.core.effects import TurnOutcome
from engine.core.errors import LlmError, PermanentLlmError, TransientLlmError
from engine.ports.llm import (
    Decision,
    LlmRequest,
    NewRoot,
    SkipPost,
)
from engine.ports.store import Wish
from tests.runtime.parts import (
    at_home,
    people_write,
    raising,
)
from tests.runtime.scripted_llm import Script, by_phase, eager, silent
from tests.runtime.society import Live, Played, play


def chances_of(script: Script, **settings: Any) -> Played:
    return play(at_home(1), script=by_phase(silent, post=script), daily_posts=1, **settings)


def test_short_wait_for_a_retry_is_waited_inside_the_turn() -> None:
    tried: list[int] = []

    def busy_twice(request: LlmRequest) -> Decision:
        tried.append(request.attempt)
        if request.attempt < 3:
            raise TransientLlmError("busy")
        return NewRoot(channel="general", text="at last", tag=None)

    played = chances_of(busy_twice)
    (turn,) = played.tables.turns.values()
    assert (tried, turn.outcome, turn.n_llm_calls) == ([1, 2, 3], TurnOutcome.WORKED, 3)
    assert turn.finished_at is not None
    assert (turn.finished_at - turn.selected_at).total_seconds() == 3  # 1 s, then 2 s
    errors = [call.error for call in played.tables.calls.values()]
    assert errors == ["transient: busy", "transient: busy", ""]


def test_long_wait_ends_the_turn_and_brings_the_agent_again() -> None:
    failed: list[int] = []

    def busy_once(request: LlmRequest) -> Decision:
        if not failed:
            failed.append(request.turn)
            raise TransientLlmError("busy", retry_after_seconds=30)
        return NewRoot(channel="general", text="at last", tag=None)

    played = chances_of(busy_once)
    first, second = played.tables.turns.values()
    assert first.outcome is TurnOutcome.BACKOFF
    assert first.detail == f"busy Waiting until {second.selected_at:%H:%M:%S} UTC."
    assert second.outcome is TurnOutcome.WORKED
    assert (second.selected_at - first.selected_at).total_seconds() == 30


def test_many_failures_in_a_row_open_the_circuit() -> None:
    played = chances_of(raising(TransientLlmError("busy")), max_minutes=10)
    assert played.reason == "circuit_open"
    assert played.ending.sentence == (
        "The model failed 12 times in a row, at last like this: busy Look at its status, then resume."
    )
    assert played.llm.n_calls() == 12  # in whole turns of three attempts


def test_success_between_failures_keeps_the_circuit_closed() -> None:
    def every_third(request: LlmRequest) -> Decision:
        if request.attempt < 3:
            raise TransientLlmError("busy")
        return SkipPost(reason="nothing to say")

    played = chances_of(every_third, until_idle=False, max_minutes=120)
    assert played.reason != "circuit_open"
    assert sum(bool(call.error) for call in played.tables.calls.values()) > 10


def test_permanent_failure_ends_the_run_with_its_sentence() -> None:
    played = chances_of(raising(PermanentLlmError("The key is not valid; set another.")))
    assert (played.reason, played.ending.sentence) == (
        "failed",
        "The key is not valid; set another.",
    )
    (turn,) = played.tables.turns.values()
    assert (turn.outcome, turn.detail) == (TurnOutcome.FAILED, played.ending.sentence)
    (call,) = played.tables.calls.values()
    assert call.error == "permanent: The key is not valid; set another."


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (LlmError("odd\x00ly"), "failed: odd\N{REPLACEMENT CHARACTER}ly"),
        (ValueError("a fault of ours"), "failed: ValueError"),
    ],
)
def test_call_that_failed_otherwise_is_told_so(error: Exception, told: str) -> None:
    def fails(request: LlmRequest) -> Decision:
        raise error

    played = chances_of(fails, max_turns=1)
    (call,) = played.tables.calls.values()
    (turn,) = played.tables.turns.values()
    assert (call.error, turn.outcome) == (told, TurnOutcome.FAILED)


def test_budget_that_is_spent_in_mid_turn_ends_the_turn_with_what_it_has() -> None:
    """The scan took the last call: its result stands, and the run pauses."""
    played = play(
        at_home(1),
        people_write("hello"),
        script=by_phase(eager, scan=eager),
        max_calls=2,
        latency=1.0,
    )
    turns = list(played.tables.turns.values())
    assert played.reason == "call_cap"
    assert len(played.tables.calls) == 2
    assert turns[-1].outcome is TurnOutcome.WORKED
    assert played.engine.rules.claims.is_empty


def test_drained_run_offers_nothing_new_and_finishes_what_is_owed() -> None:
    async def drain(live: Live) -> None:
        await live.until(lambda: bool(live.tables.open_pairs))
        live.tables.wish = Wish.DRAIN
        live.beat()

    played = play(at_home(4), drain, script=eager, latency=5.0, concurrent_turns=2)
    assert played.reason == "stopped"
    assert played.engine.world.threads == {}
    drained_at = min(t.opened_seq for t in played.tables.threads.values())
    late = [t for t in played.tables.threads.values() if t.opened_seq > drained_at]
    assert len(late) <= 2  # no more than were in flight
