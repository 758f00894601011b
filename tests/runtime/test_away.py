"""Who was away between or during runs starts at the newest post when it comes back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from engine.core.records import Status
from engine.ports.llm import Decision, LlmPhase, LlmRequest, NewRoot, ScanContext
from tests.runtime.scripted_llm import silent
from tests.runtime.society import Played, Society, make_society, play

#: Long enough for the next chance to post, which idle does not wait for.
TEN_MINUTES: dict[str, Any] = {"until_idle": False, "max_minutes": 10}


def first_posts(request: LlmRequest) -> Decision:
    """Let agent 1 write a root at its first chance, and everybody read and do nothing."""
    if request.phase is LlmPhase.POST and request.agent == "a1":
        return NewRoot(channel="general", text=f"News of turn {request.turn}.", tag=None)
    return silent(request)


def read_by(played: Played, agent: str) -> list[str]:
    """Return the texts that an agent was shown in scans."""
    contexts = [one.context for one in played.llm.requests if one.agent == agent]
    return [
        post.text
        for context in contexts
        if isinstance(context, ScanContext)
        for post in context.posts
    ]


def set_status(society: Society, agent: int, status: Status) -> None:
    society.save_agent(replace(society.tables.agents[agent], status=status))


def test_agent_paused_during_a_run_reads_nothing_of_it_when_it_comes_back() -> None:
    society = make_society(3)
    play(society, script=silent)
    set_status(society, 2, Status.PAUSED)
    away = play(society, script=first_posts, daily_posts=1, **TEN_MINUTES)
    assert read_by(away, "a2") == []
    assert len(read_by(away, "a3")) == 1
    set_status(society, 2, Status.ACTIVE)
    back = play(society, script=first_posts, daily_posts=2, **TEN_MINUTES)
    assert read_by(back, "a2") == read_by(back, "a3")
    assert len(read_by(back, "a2")) == 1
    assert read_by(back, "a2") != read_by(away, "a3")


def test_agent_that_joins_paused_queues_behind_those_who_wait() -> None:
    society = make_society(2)
    play(society, script=silent)
    n_turns = max(society.tables.turns)
    society.save_agent(
        replace(society.tables.agents[2], id=3, slug="a3", bot_name="Bot3", status=Status.PAUSED)
    )
    play(society, script=silent, max_turns=1)
    state = society.tables.states[3]
    assert state.away
    assert state.last_selected == n_turns
