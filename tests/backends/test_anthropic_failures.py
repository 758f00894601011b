"""Failures of the Anthropic backend, each through the real client against the rehearsed API."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from engine.core.errors import (
    PermanentLlmError,
    PromptRefused,
    TransientLlmError,
    UnusableAnswer,
)
from engine.core.usage import Usage
from engine.ports.llm import (
    Chosen,
)
from engine.prompts import PROMPT_VERSION
from tests.anthropic_api import minds, steps
from tests.anthropic_api.models import HAIKU
from tests.anthropic_api.server import KEY, AnthropicApi
from tests.backends.asking import ask, backend, failure, request
from tests.backends.talkative import talkative
from tests.core.golden_prompts import CASES, FERRY
from tests.core.offline_society import scan_context

if TYPE_CHECKING:
    from engine.ports.llm import LlmAnswer

SCAN, REPLY = (request(CASES[name]) for name in ("scan", "reply"))

UNUSABLE: dict[str, tuple[steps.Step, str]] = {
    "refusal": (steps.answers(minds.refuse("policy")), "refused"),
    "truncated": (steps.truncated(talkative), "truncated"),
    "empty": (steps.answers(minds.say()), "empty"),
    "blank": (steps.answers(minds.say(" \n")), "blank"),
    "prose": (steps.FAULTS["prose"], "prose"),
    "two blocks": (steps.FAULTS["two_blocks"], "ambiguous"),
    "wrong id": (steps.answers(minds.say_json({"posts": [60]})), "unknown_id"),
    "another form": (steps.answers(minds.say_json({"seqs": []})), "misshapen"),
    "cut inside": (steps.answers(minds.say('{"posts": [1')), "unparsable"),
    "a tool that is not there": (steps.FAULTS["unknown_tool"], "tool"),
}
UNBILLED: dict[str, tuple[steps.Step, str]] = {
    "a page": (steps.html_with_200(), "html"),
    "other JSON": (steps.other_json(), "empty"),
    "JSON that is no object": (steps.other_json(b"[1, 2]"), "empty"),
    "cut JSON": (steps.cut_json(), "unparsable"),
    "no usage": (steps.without("usage"), "no_usage"),
    "no content": (steps.without("content"), "empty"),
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_unusable_answer_has_its_reason_and_what_it_cost(api: AnthropicApi, name: str) -> None:
    step, reason = UNUSABLE[name]
    api.script.add(step)

    found = failure(api, SCAN)

    assert isinstance(found, UnusableAnswer), found
    assert found.reason == reason
    assert found.receipt is not None
    assert found.receipt.usage is not None
    assert found.receipt.usage.cost_nano_usd == api.ledger.total_nano_usd() > 0
    assert (found.receipt.model, found.receipt.prompt_version) == (HAIKU.id, PROMPT_VERSION)


@pytest.mark.parametrize("name", UNBILLED)
def test_unusable_answer_without_a_bill_says_that_nobody_knows(
    api: AnthropicApi, name: str
) -> None:
    step, reason = UNBILLED[name]
    api.script.add(step)

    found = failure(api, SCAN)

    assert isinstance(found, UnusableAnswer), found
    assert found.reason == reason
    assert found.receipt is not None
    assert found.receipt.usage is None or found.receipt.usage.output_tokens > 0


def test_answer_that_cannot_be_used_is_kept_as_it_came(api: AnthropicApi) -> None:
    api.script.add(steps.FAULTS["prose"])

    found = failure(api, SCAN)

    assert isinstance(found, UnusableAnswer)
    assert found.receipt is not None
    assert "Let me think about this in my own words." in found.receipt.said


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("KelpBot: Ten nights, agreed.", "other_voice"),
        ("Well.\nKelpBot: Ten nights.\nFerryBot: Good.", "transcript"),
        ("half \ud83c", "unstorable"),
        ("no\x00thing", "unstorable"),
    ],
)
def test_text_that_must_not_be_posted_is_refused(api: AnthropicApi, text: str, reason: str) -> None:
    escaped = text.encode("unicode_escape").decode().replace("\\x00", "\\u0000")
    answer = f'{{"thought": "", "move": "continue", "text": "{escaped}"}}'
    api.script.add(steps.answers(minds.say(answer)))

    found = failure(api, REPLY)

    assert isinstance(found, UnusableAnswer), found
    assert found.reason == reason


@pytest.mark.parametrize(
    ("step", "seconds", "told"),
    [
        (steps.rate_limited(), (1, 1.25), "429 rate_limit_error req_000001"),
        (steps.rate_limited("7"), (7, 8.75), "429"),
        (steps.rate_limited("3600"), (60, 75), "429"),
        (steps.rate_limited("-1"), (1, 1.25), "429"),
        (steps.rate_limited("soon"), (1, 1.25), "429"),
        (steps.overloaded(), (1, 1.25), "529 overloaded_error"),
        (steps.fails(500), (1, 1.25), "500 api_error"),
        (steps.bad_gateway(), (1, 1.25), "502"),
        (steps.fails(503), (1, 1.25), "503"),
        (steps.fails(504), (1, 1.25), "504"),
    ],
)
def test_passing_failure_says_how_long_to_wait(
    api: AnthropicApi, step: steps.Step, seconds: tuple[float, float], told: str
) -> None:
    api.script.add(step)

    found = failure(api, SCAN)

    assert isinstance(found, TransientLlmError), found
    least, most = seconds
    assert found.retry_after_seconds is not None
    assert least <= found.retry_after_seconds <= most
    assert told in str(found)
    assert found.receipt is not None
    assert found.receipt.usage == Usage()
    assert len(api.ledger.exchanges) == 1


def test_client_tries_once(api: AnthropicApi) -> None:
    api.script.add(steps.rate_limited("0.01"))

    assert isinstance(failure(api, SCAN), TransientLlmError)
    assert api.ledger.statuses == {429: 1}


@pytest.mark.parametrize("step", [steps.dropped(), steps.unsent(), steps.cut_body()])
def test_lost_connection_passes_and_nobody_knows_its_cost(
    api: AnthropicApi, step: steps.Step
) -> None:
    api.script.add(step)

    found = failure(api, SCAN)

    assert isinstance(found, TransientLlmError), found
    assert found.receipt is not None
    assert found.receipt.usage is None


def test_call_that_takes_too_long_is_given_up(api: AnthropicApi) -> None:
    api.script.add(steps.Waits(seconds=3600, then=steps.answers()))

    found = failure(api, SCAN, timeout_seconds=0.3)

    assert isinstance(found, TransientLlmError), found


def test_service_that_is_not_there_passes(api: AnthropicApi) -> None:
    found = failure(api, SCAN, base_url="http://127.0.0.1:9")

    assert isinstance(found, TransientLlmError), found
    assert "The service did not answer" in str(found)


def test_wrong_key_is_permanent(api: AnthropicApi) -> None:
    found = failure(api, SCAN, key="wrong")

    assert isinstance(found, PermanentLlmError)
    assert str(found).startswith("The service does not know the key. Check SIM_ANTHROPIC_API_KEY.")


def test_unknown_model_is_permanent(api: AnthropicApi) -> None:
    found = failure(api, replace(SCAN, model="claude-nobody"))

    assert isinstance(found, PermanentLlmError)
    assert str(found).startswith("The service has no model claude-nobody.")


def test_model_that_the_key_may_not_use_is_permanent() -> None:
    with AnthropicApi(keys={KEY: frozenset({HAIKU.id})}) as api:
        found = failure(api, REPLY)

    assert isinstance(found, PermanentLlmError)
    assert str(found).startswith("The key may not use claude-sonnet-5-5.")


def test_prompt_that_is_too_long_is_taken_when_it_is_short() -> None:
    small = replace(HAIKU, context_tokens=7_000)
    long = replace(FERRY, private_instructions="x" * 16_000)
    asked = request(scan_context(long, ()))
    with AnthropicApi(mind=talkative, models=[small]) as api:
        found = failure(api, asked)
        (answer,) = ask(api, replace(asked, is_short=True))

    assert isinstance(found, PromptRefused)
    assert found.receipt is not None
    assert found.receipt.usage == Usage()
    assert isinstance(answer.decision, Chosen)


def test_prompts_that_are_never_taken_are_a_permanent_failure() -> None:
    with AnthropicApi(models=[replace(HAIKU, context_tokens=10)]) as api:

        async def many() -> list[type[BaseException]]:
            async with backend(api) as llm:
                asked = (llm.complete(SCAN) for _ in range(5))
                return [type(await _raised(one)) for one in asked]

        kinds = asyncio.run(many())

    assert kinds == [PromptRefused] * 4 + [PermanentLlmError]


async def _raised(call: Awaitable[object]) -> BaseException:
    (came,) = await asyncio.gather(call, return_exceptions=True)
    assert isinstance(came, BaseException)
    return came


def test_cancelled_call_leaves_a_client_that_works(api: AnthropicApi) -> None:
    api.script.add(steps.Waits(seconds=3600, then=steps.answers()))

    async def cancelled() -> LlmAnswer:
        async with backend(api) as llm:
            call = asyncio.ensure_future(llm.complete(SCAN))
            await asyncio.to_thread(api.ledger.wait_for, lambda ledger: ledger.n_open > 0)
            call.cancel()
            assert isinstance(await _raised(call), asyncio.CancelledError)
            return await llm.complete(SCAN)

    assert isinstance(asyncio.run(cancelled()).decision, Chosen)
