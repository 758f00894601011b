"""Steps at the commit door for its tests: one effect entered into a fresh draft."""

from __future__ import annotations

from typing import Any

from engine.core.door.messages import post, reply
from engine.core.draft import Draft
from engine.core.effects import (
    Post,
    Rejected,
    Reply,
    Result,
)
from engine.core.participation import Rules
from engine.core.records import (
    Status,
)
from engine.core.world import World
from tests.core.facts import (
    PUBLIC,
    agent,
    draft,
    turn,
)


def opened(facts: World, judged_by: Rules | None = None, *, of: int = 1) -> Draft:
    made = draft(facts, judged_by)
    made.turn = turn(of)
    return made


def posting(facts: World, judged_by: Rules | None = None, **fields: Any) -> tuple[Result, Draft]:
    made = opened(facts, judged_by)
    values: dict[str, Any] = {"agent": 1, "channel": PUBLIC, "text": "Hello all"} | fields
    return post(made, Post(**values)), made


def replying(facts: World, judged_by: Rules | None = None, **fields: Any) -> tuple[Result, Draft]:
    values: dict[str, Any] = {
        "agent": 1,
        "root": 1,
        "text": "An answer",
        "answers_ordinal": 2,
    } | fields
    made = opened(facts, judged_by, of=values["agent"])
    return reply(made, Reply(**values)), made


def reason_of(result: Result) -> str:
    return result.reason if isinstance(result, Rejected) else ""


def paused(facts: World) -> None:
    facts.agents[1] = agent(1, status=Status.PAUSED)


def nothing(_facts: World) -> None:
    return
