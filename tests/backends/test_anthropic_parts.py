"""The parts of the Anthropic backend that need no client: waits, sorting, requests."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from engine.backends.llm.anthropic.asking import body_of, most_tokens
from engine.backends.llm.anthropic.failures import asked_wait, status_failure, wait_before
from engine.core.errors import (
    LlmError,
    PermanentLlmError,
    PromptRefused,
    TransientLlmError,
)
from engine.core.usage import Usage
from engine.ports.llm import Hits, LookUps, ReadProfile, Round, SearchMessages
from engine.prompts import show_found
from tests.backends.asking import request
from tests.core.golden_prompts import CASES, DAIRY, FERRY, POSTS
from tests.core.offline_society import profile_of

if TYPE_CHECKING:
    from typing import Any

NOW = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
REPLY = request(CASES["reply"], may_look_up=True)
SAID = (
    '[{"type": "thinking", "thinking": "", "signature": "s"},'
    ' {"type": "tool_use", "id": "t1", "name": "read_profile", "input": {"name": "RindBot"}},'
    ' {"type": "tool_use", "id": "t2", "name": "search_messages", "input": {"words": "fog"}},'
    ' {"type": "tool_use", "id": "t3", "name": "other", "input": {}}]'
)
ROUND = Round(
    asked=LookUps(
        wanted=(ReadProfile(name="RindBot"), SearchMessages(words="fog"), None), said=SAID
    ),
    found=(profile_of(DAIRY), Hits(entries=POSTS, is_cut=True), None),
)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1", 1.0),
        ("0.5", 0.5),
        ("3600", 3600.0),
        ("Mon, 02 Mar 2026 08:00:07 GMT", 7.0),
        ("Mon, 02 Mar 2026 07:59:59 GMT", None),
        ("-5", None),
        ("0", None),
        ("inf", None),
        ("nan", None),
        ("soon", None),
        ("", None),
    ],
)
def test_wait_that_is_asked_for_is_seconds_or_a_date(text: str, seconds: float | None) -> None:
    assert asked_wait({"retry-after": text}, NOW) == seconds
    assert asked_wait({}, NOW) is None


@pytest.mark.parametrize(
    ("attempt", "asked", "luck", "seconds"),
    [
        (1, None, 0.0, 1.0),
        (2, None, 0.0, 2.0),
        (3, None, 1.0, 5.0),
        (1, 7.0, 0.0, 7.0),
        (1, 3600.0, 0.0, 60.0),
        (1, 3600.0, 1.0, 75.0),
        (30, None, 0.0, 60.0),
    ],
)
def test_wait_doubles_is_capped_and_scattered(
    attempt: int, asked: float | None, luck: float, seconds: float
) -> None:
    assert wait_before(attempt, asked, luck) == seconds


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        *((status, TransientLlmError) for status in (408, 409, 425, 429, 500, 502, 503, 504, 529)),
        *((status, PromptRefused) for status in (400, 413, 422)),
        *((status, PermanentLlmError) for status in (401, 402, 403, 404, 405, 410)),
    ],
)
def test_status_is_sorted_and_costs_nothing(status: int, kind: type[LlmError]) -> None:
    found = status_failure(status, "a_kind", "req_1", model="m", wait_seconds=3.0)

    assert type(found) is kind
    assert found.receipt is not None
    assert (found.receipt.usage, found.receipt.model) == (Usage(), "m")
    assert f"({status} a_kind req_1)" in str(found)
    if isinstance(found, TransientLlmError):
        assert found.retry_after_seconds == 3.0


def test_permanent_failures_say_what_to_do() -> None:
    told = [
        str(status_failure(status, "", "", model="claude-x", wait_seconds=0))
        for status in (401, 403, 404)
    ]

    assert told == [
        "The service does not know the key. Check SIM_ANTHROPIC_API_KEY. (401)",
        "The key may not use claude-x. Check SIM_ANTHROPIC_API_KEY. Or name another model. (403)",
        (
            "The service has no model claude-x. Check the names of the models and "
            "SIM_ANTHROPIC_BASE_URL. (404)"
        ),
    ]


def test_request_has_its_marks_after_what_stays_the_same() -> None:
    body = body_of(REPLY)
    asked = body["messages"][0]["content"]

    assert ["cache_control" in block for block in body["system"]] == [True, True]
    assert ["cache_control" in block for block in asked] == [False] * (len(asked) - 2) + [
        True,
        False,
    ]
    assert body["model"] == "claude-sonnet-5-5"
    assert set(body) == {"model", "max_tokens", "system", "messages", "output_config", "tools"}


def test_request_without_a_talk_marks_the_system_alone() -> None:
    body = body_of(request(CASES["scan"]))

    assert [list(block) for block in body["messages"][0]["content"]] == [["type", "text"]]
    assert set(body) == {"model", "max_tokens", "system", "messages", "output_config"}


def test_rounds_are_sent_back_with_what_was_found() -> None:
    body = body_of(replace(REPLY, rounds=(ROUND,)))
    first, said, found = body["messages"]

    assert (first["role"], said["role"], found["role"]) == ("user", "assistant", "user")
    assert [block["type"] for block in said["content"]] == ["thinking"] + ["tool_use"] * 3
    assert [block["tool_use_id"] for block in found["content"]] == ["t1", "t2", "t3"]
    profile, hits, nothing = (block["content"] for block in found["content"])
    assert profile.startswith('<profile of="RindBot"')
    assert hits.startswith("There are more; only the newest are shown.\n")
    assert '<message by="RindBot" kind="agent" channel="#general">' in hits
    assert nothing == "Unavailable. That does not mean that there is nothing.\n"
    assert "tool_choice" not in body


def test_last_round_must_decide() -> None:
    body = body_of(replace(REPLY, rounds=(ROUND, ROUND), may_look_up=False))

    assert body["tool_choice"] == {"type": "none"}
    assert len(body["tools"]) == 2


def test_search_without_hits_is_no_proof() -> None:
    assert show_found(Hits(entries=(), is_cut=False), FERRY) == (
        "None of the newest messages that you may read holds all of these words.\n"
    )


def test_short_request_holds_half_of_the_texts() -> None:
    long = replace(CASES["scan"], persona=replace(FERRY, private_instructions="x" * 20_000))

    whole, short = (request(long, is_short=is_short) for is_short in (False, True))

    assert most_tokens(whole)[0] - most_tokens(short)[0] > 7_000


def test_bound_on_tokens_counts_every_byte_that_is_sent() -> None:
    for rounds in ((), (ROUND,)):
        asked = replace(REPLY, rounds=rounds)
        assert most_tokens(asked)[0] > len(str(texts_of(body_of(asked))).encode())
        assert most_tokens(asked)[1] == 4_000


def texts_of(value: Any) -> list[str]:
    """Return every text in a request."""
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for one in inner for text in texts_of(one)]
