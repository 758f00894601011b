"""Hazards of models: what fails, repeats itself or says nothing neither loses work nor costs endlessly."""

from __future__ import annotations

import pytest

from engine.core.effects import TurnOutcome
from engine.core.errors import TransientLlmError, UnusableAnswer
from engine.core.records import InvitationState, Outcome
from engine.ports.llm import (
    Decision,
    LlmRequest,
    Move,
    PostContext,
    SkipPost,
    Written,
)
from tests.runtime.parts import (
    at_home,
    decline,
    go_on,
    rejected,
)
from tests.runtime.scripted_llm import by_phase, eager, silent
from tests.runtime.society import Live, play


@pytest.mark.parametrize(
    ("n_failures", "outcome", "n_asked"), [(1, Outcome.NO_PROPOSAL, 2), (2, Outcome.LOST, 2)]
)
def test_second_unusable_answer_in_a_row_closes_the_thread(
    n_failures: int, outcome: Outcome, n_asked: int
) -> None:
    failed: list[int] = []

    def unusable_at_first(request: LlmRequest) -> Decision:
        if request.agent == "a1" and len(failed) < n_failures:
            failed.append(request.turn)
            raise UnusableAnswer("empty")
        return decline(request)

    script = by_phase(eager, reply=unusable_at_first)
    played = play(at_home(2), script=script, daily_posts=1, max_turns=8, concurrent_turns=1)
    first = played.tables.decisions[1, 1]
    assert first.outcome is outcome
    asked = [r for r in played.llm.requests if (r.phase, r.agent, r.thread) == ("reply", "a1", 1)]
    assert len(asked) == n_asked
    assert rejected(played)["unusable_empty"] == n_failures


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("the very same words again", "repeats"),
        ("@Bot2", "unusable_empty"),
        ("\x00", "unusable_unstorable"),
    ],
    ids=["repeats", "names-only", "poison"],
)
def test_answer_that_can_never_be_stored_is_not_asked_for_endlessly(text: str, reason: str) -> None:
    def same(request: LlmRequest) -> Decision:
        return Written(move=Move.CONTINUE, text=text)

    script = by_phase(eager, reply=same)
    played = play(at_home(2), script=script, daily_posts=2, max_turns=60)
    assert {row.outcome for row in played.tables.decisions.values()} == {Outcome.LOST}
    assert rejected(played)[reason] >= 2
    assert played.llm.n_calls("reply") < 12


def test_invitation_with_an_unusable_answer_is_settled() -> None:
    async def call(live: Live) -> None:
        await live.sleep(1)
        for text in ("@Bot1 hello", "@Bot2 hello"):
            live.society.people.write_message(channel=1, text=text, at=live.clock.now())
        live.beat()

    def unusable_for_one(request: LlmRequest) -> Decision:
        if request.agent == "a1":
            raise UnusableAnswer("refused")
        return go_on(request)

    script = by_phase(silent, reply=unusable_for_one)
    played = play(at_home(2), call, script=script, latency=2.0, max_minutes=60)
    states = {agent: row.state for (agent, _), row in played.tables.invitations.items()}
    assert states == {1: InvitationState.REFUSED, 2: InvitationState.ANSWERED}
    assert played.llm.n_calls("reply") == 2


def test_failed_scan_leaves_the_posts_unread() -> None:
    failed: list[int] = []

    def busy_once(request: LlmRequest) -> Decision:
        if request.agent == "a2" and not failed:
            failed.append(request.turn)
            raise TransientLlmError("busy", retry_after_seconds=60)
        return eager(request)

    played = play(at_home(2), script=by_phase(eager, scan=busy_once))
    assert failed
    (turn,) = (t for t in played.tables.turns.values() if t.outcome is TurnOutcome.BACKOFF)
    scans = [r for r in played.llm.requests if (r.phase, r.agent) == ("scan", "a2")]
    shown = [tuple(post.seq for post in r.context.posts) for r in scans]  # type: ignore[union-attr]
    assert shown[0] == (1,)
    assert 1 in shown[1]
    assert turn.agent == 2


def test_post_that_comes_during_a_scan_is_read_by_the_next() -> None:
    async def write(live: Live) -> None:
        for text in ("before", "during"):
            live.society.people.write_message(channel=1, text=text, at=live.clock.now())
            live.beat()
            await live.sleep(15)

    played = play(at_home(1), write, script=silent, latency=20.0, daily_posts=0)
    scans = [r for r in played.llm.requests if r.phase == "scan"]
    shown = [tuple(post.text for post in r.context.posts) for r in scans]  # type: ignore[union-attr]
    assert shown == [("before",), ("during",)]
    assert played.tables.states[1].cursor == 2


def test_failure_while_posting_leaves_the_bank_whole() -> None:
    """The list that a prompt is given is its own: an exception cannot leave a short bank behind."""

    def fail_on_full_bank(request: LlmRequest) -> Decision:
        assert isinstance(request.context, PostContext)
        if request.agent == "a2" and len(request.context.bank) == 3:
            raise RuntimeError("a fault of ours")
        return SkipPost(reason="not yet")

    async def write(live: Live) -> None:
        for number in range(3):
            live.society.people.write_message(channel=1, text=f"no {number}", at=live.clock.now())
        live.beat()

    script = by_phase(eager, post=fail_on_full_bank)
    played = play(at_home(2), write, script=script, max_minutes=4, latency=1.0)
    failed = [turn for turn in played.tables.turns.values() if turn.outcome is TurnOutcome.FAILED]
    assert {turn.agent for turn in failed} == {2}
    assert failed[0].detail == "RuntimeError: a fault of ours"
    assert played.tables.states[2].bank == (1, 2, 3)
    assert played.engine.rules.claims.is_empty
