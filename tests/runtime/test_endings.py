"""How runs end and pause: idle, limits, stops, drains, failures, and who is left."""

from __future__ import annotations

from datetime import timedelta

import pytest

from engine.core.effects import TurnOutcome
from engine.core.errors import PermanentLlmError, TransientLlmError
from engine.core.logged import what_is_logged_about
from engine.core.records import AgentState, Outcome, Status
from engine.ports.llm import Decision, LlmRequest
from engine.ports.store import Wish
from tests.runtime.scripted_llm import by_phase, eager, silent
from tests.runtime.society import START, Live, Played, Society, make_agent, make_society, play


def lasted(played: Played) -> timedelta:
    return played.live.clock.now() - START


def outcomes(society: Society) -> list[TurnOutcome]:
    return [turn.outcome for turn in society.tables.turns.values()]


# --- idle -------------------------------------------------------------------------------------------


def test_idle_does_not_wait_for_post_timers_and_midnight() -> None:
    played = play(make_society(2), script=silent)
    assert (played.reason, lasted(played)) == ("idle", timedelta(0))
    assert played.engine.watch.whys == {1: "post_timer", 2: "post_timer"}


def test_idle_waits_for_cooldowns() -> None:
    """A person writes while everybody rests: it is read when the rest is over."""

    async def write(live: Live) -> None:
        await live.sleep(1)
        live.society.people.write_message(channel=1, text="Hello", at=live.clock.now())
        live.beat()

    played = play(make_society(1), write, script=silent, turn_delay_seconds=60.0, latency=0.5)
    assert played.reason == "idle"
    assert played.llm.n_calls("scan") == 1
    assert lasted(played) >= timedelta(seconds=60)


def test_idle_waits_for_scan_delays() -> None:
    played = play(
        make_society(2, policy="off"),
        script=by_phase(silent, post=eager),
        scan_delay_seconds=30.0,
        daily_posts=1,
    )
    assert (played.reason, played.llm.n_calls("scan")) == ("idle", 2)
    assert lasted(played) == timedelta(seconds=30)


def test_idle_waits_for_back_offs() -> None:
    def busy_once(request: LlmRequest) -> Decision:
        if request.turn == 1:
            raise TransientLlmError("busy", retry_after_seconds=90.0)
        return silent(request)

    played = play(make_society(1), script=busy_once)
    assert (played.reason, lasted(played)) == ("idle", timedelta(seconds=90))
    assert outcomes(played.live.society) == [TurnOutcome.BACKOFF, TurnOutcome.SKIPPED]


def test_idle_looks_into_the_inbox_first() -> None:
    """The note comes while the last turn is in flight, and no pulse tells of it."""

    async def write(live: Live) -> None:
        await live.sleep(1)
        live.society.people.write_message(channel=1, text="Hello", at=live.clock.now())

    played = play(make_society(1), write, script=silent, latency=2.0)
    assert (played.reason, played.llm.n_calls("scan")) == ("idle", 1)


def test_run_that_is_not_to_end_when_idle_waits_for_the_calendar() -> None:
    played = play(make_society(1), script=silent, until_idle=False, max_minutes=6)
    assert (played.reason, lasted(played)) == ("time_limit", timedelta(minutes=6))
    assert played.llm.n_calls("post") == 2


# --- limits -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("slots", [1, 3])
def test_turn_limit_is_kept_exactly(slots: int) -> None:
    played = play(make_society(5), max_turns=7, concurrent_turns=slots, latency=1.0)
    assert (played.reason, len(played.tables.turns)) == ("turn_limit", 7)
    assert all(turn.finished_at for turn in played.tables.turns.values())


def test_turn_limit_counts_only_the_turns_of_its_run() -> None:
    society = make_society(5)
    play(society, max_turns=3)
    assert play(society, max_turns=4).reason == "turn_limit"
    assert list(society.tables.turns) == [1, 2, 3, 4, 5, 6, 7]


def test_time_limit_lets_turns_in_flight_finish_within_the_grace() -> None:
    played = play(make_society(1), latency=70.0, max_minutes=1, stop_grace_seconds=60.0)
    assert (played.reason, lasted(played)) == ("time_limit", timedelta(seconds=70))
    assert TurnOutcome.CANCELLED not in outcomes(played.live.society)


def test_time_limit_comes_while_every_slot_is_busy() -> None:
    played = play(
        make_society(1),
        latency=1000.0,
        max_minutes=1,
        stop_grace_seconds=30.0,
        max_turn_seconds=5000.0,
    )
    assert (played.reason, lasted(played)) == ("time_limit", timedelta(seconds=90))
    assert outcomes(played.live.society) == [TurnOutcome.CANCELLED]


# --- asked by people -----------------------------------------------------------------------------------


def test_stop_lets_turns_in_flight_finish() -> None:
    async def stop(live: Live) -> None:
        await live.sleep(5)
        live.engine.stop()

    played = play(make_society(3), stop, latency=8.0, concurrent_turns=2)
    assert (played.reason, lasted(played)) == ("stopped", timedelta(seconds=8))
    assert len(played.tables.turns) == 2
    assert len(played.tables.messages) == 2


def test_stop_cancels_what_outlasts_the_grace() -> None:
    async def stop(live: Live) -> None:
        await live.sleep(5)
        live.engine.stop()

    played = play(make_society(3), stop, latency=500.0, stop_grace_seconds=20.0)
    assert (played.reason, lasted(played)) == ("stopped", timedelta(seconds=25))
    assert outcomes(played.live.society) == [TurnOutcome.CANCELLED] * 3
    assert [call.error for call in played.tables.calls.values()] == ["cancelled"] * 3


def test_second_stop_is_immediate() -> None:
    async def stop_twice(live: Live) -> None:
        await live.sleep(5)
        live.engine.stop()
        await live.sleep(2)
        live.engine.stop()

    played = play(make_society(3), stop_twice, latency=500.0)
    assert (played.reason, lasted(played)) == ("stopped", timedelta(seconds=7))
    assert outcomes(played.live.society) == [TurnOutcome.CANCELLED] * 3


@pytest.mark.parametrize(
    ("wish", "reason"), [(Wish.STOP, "stopped"), (Wish.PAUSE, "pause_requested")]
)
def test_wish_of_a_person_ends_or_pauses_the_run(wish: Wish, reason: str) -> None:
    async def ask(live: Live) -> None:
        await live.sleep(5)
        live.tables.wish = wish
        await live.sleep(1)
        live.beat()

    played = play(make_society(3), ask, latency=8.0, beat_seconds=0.5, until_idle=False)
    assert played.reason == reason
    assert lasted(played) == timedelta(seconds=8)


def test_drain_finishes_what_is_open_and_starts_nothing() -> None:
    async def drain(live: Live) -> None:
        await live.until(lambda: len(live.tables.threads) >= 2, step_seconds=1.0)
        live.tables.wish = Wish.DRAIN
        live.beat()
        n_threads.append(len(live.tables.threads))

    n_threads: list[int] = []
    society = make_society(6, policy="off")
    played = play(society, drain, latency=3.0, until_idle=False, concurrent_turns=2)
    assert played.reason == "stopped"
    assert not played.engine.world.threads
    assert len(played.tables.decisions) == len(played.tables.threads) > 0
    drained_at = max(thread.opened_at for thread in played.tables.threads.values())
    assert lasted(played) > drained_at - START
    # What was in flight when the drain was asked for may still open its thread.
    assert len(played.tables.threads) <= n_threads[0] + 2


def test_lost_lease_ends_the_run_at_once() -> None:
    async def take_over(live: Live) -> None:
        await live.sleep(5)
        live.tables.token += 1
        live.beat()

    played = play(make_society(3), take_over, latency=500.0)
    assert (played.reason, lasted(played)) == ("interrupted", timedelta(seconds=5))
    assert played.tables.messages == {}


def test_lost_lease_is_also_told_by_the_fence() -> None:
    async def take_over(live: Live) -> None:
        await live.sleep(1)
        live.tables.token += 1

    played = play(make_society(3), take_over, latency=5.0)
    assert (played.reason, lasted(played)) == ("interrupted", timedelta(seconds=5))
    assert played.tables.messages == {}
    assert outcomes(played.live.society) == [TurnOutcome.RUNNING] * 3


# --- who is left ----------------------------------------------------------------------------------------


def test_run_without_anybody_ends() -> None:
    played = play(make_society(0), until_idle=False)
    assert played.reason == "nobody_left"


def test_run_ends_when_the_last_agent_is_retired() -> None:
    async def retire(live: Live) -> None:
        await live.sleep(5)
        for number in (1, 2):
            live.society.save_agent(make_agent(number, status=Status.RETIRED))
        live.beat()

    played = play(make_society(2), retire, script=silent, until_idle=False)
    assert (played.reason, lasted(played)) == ("nobody_left", timedelta(seconds=5))


def test_run_waits_for_a_paused_agent_to_come_back() -> None:
    async def come_back(live: Live) -> None:
        await live.sleep(100)
        live.society.save_agent(make_agent(1))
        live.beat()
        await live.sleep(100)
        live.engine.stop()

    away = make_agent(1, status=Status.PAUSED)
    played = play(make_society([away]), come_back, script=silent, until_idle=False)
    assert (played.reason, len(played.tables.turns)) == ("stopped", 1)


# --- the model fails --------------------------------------------------------------------------------------


def test_permanent_failure_fails_the_run_with_its_sentence() -> None:
    def no_key(request: LlmRequest) -> Decision:
        raise PermanentLlmError(f"The key of {request.agent} is not accepted.")

    played = play(
        make_society(3),
        script=no_key,
        latency=lambda request: 1.0 if request.agent == "a2" else 100.0,
        max_minutes=30,
    )
    assert played.reason == "failed"
    assert played.ending.sentence == "The key of a2 is not accepted."
    assert lasted(played) == timedelta(seconds=1)
    assert sorted(outcomes(played.live.society)) == ["cancelled", "cancelled", "failed"]


def test_failure_while_the_last_turns_finish_outweighs_the_stop() -> None:
    async def stop(live: Live) -> None:
        await live.sleep(1)
        live.engine.stop()

    def no_key(_request: LlmRequest) -> Decision:
        raise PermanentLlmError("The key is not accepted.")

    played = play(make_society(1), stop, script=no_key, latency=3.0)
    assert (played.reason, played.ending.sentence) == ("failed", "The key is not accepted.")


def test_ten_transient_failures_in_a_row_pause_the_run() -> None:
    def busy(_request: LlmRequest) -> Decision:
        raise TransientLlmError("busy")

    played = play(make_society(20), script=busy, concurrent_turns=2, latency=1.0, max_minutes=5)
    assert played.reason == "circuit_open"
    assert "resume" in played.ending.sentence
    assert 10 <= len(played.tables.calls) <= 14


def test_failures_that_are_not_in_a_row_open_no_circuit() -> None:
    def every_other(request: LlmRequest) -> Decision:
        if request.attempt == 1:
            raise TransientLlmError("busy")
        return silent(request)

    played = play(make_society(20), script=every_other, concurrent_turns=1)
    assert played.reason == "idle"
    assert len(played.tables.calls) == 40


def test_fault_of_a_turn_is_recorded_and_the_run_goes_on() -> None:
    about: list[object] = []

    def broken_once(request: LlmRequest) -> Decision:
        about.append(what_is_logged_about())
        if request.turn == 1:
            raise ValueError("a fault of ours")
        return silent(request)

    played = play(make_society(2), script=broken_once, concurrent_turns=1)
    assert played.reason == "idle"
    turn = played.tables.turns[1]
    assert (turn.outcome, turn.detail) == (TurnOutcome.FAILED, "ValueError: a fault of ours")
    assert [turn.agent for turn in played.tables.turns.values()] == [1, 2, 1]
    assert about[:2] == [{"turn": 1, "agent": "a1"}, {"turn": 2, "agent": "a2"}]


# --- threads that nobody goes on with ----------------------------------------------------------------------


def test_thread_that_is_owed_too_long_is_closed_as_timeout() -> None:
    """The partner is paused while it owes; nobody else is to wait for it for ever."""

    async def pause(live: Live) -> None:
        await live.until(lambda: len(live.tables.threads) == 1)
        owing = next(iter(live.tables.threads.values())).other(
            next(iter(live.tables.threads.values())).last_agent or 0
        )
        assert owing is not None
        live.society.save_agent(make_agent(owing, status=Status.PAUSED))
        live.beat()

    society = make_society(2, policy="off")
    society.tables.states[2] = AgentState(posts_on=START.date(), posts_made=9)
    played = play(
        society,
        pause,
        latency=5.0,
        until_idle=False,
        max_minutes=120,
        thread_idle_seconds=3600.0,
        concurrent_turns=1,
    )
    assert played.reason == "time_limit"
    decision = next(iter(played.tables.decisions.values()))
    assert decision.outcome is Outcome.TIMEOUT
    assert decision.at - decision.thread.owed_since == timedelta(seconds=3600)
