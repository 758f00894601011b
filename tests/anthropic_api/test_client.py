"""The server driven by the real client: what it understands of answers, tools and faults."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import anthropic
import pytest
from anthropic import AsyncAnthropic
from anthropic.types import Message, MessageParam, ToolParam, ToolUseBlock

from tests.anthropic_api import minds
from tests.anthropic_api.models import HAIKU, SONNET
from tests.anthropic_api.server import KEY, AnthropicApi
from tests.anthropic_api.steps import (
    Waits,
    answers,
    cut_body,
    cut_json,
    dropped,
    html_with_200,
    overloaded,
    rate_limited,
)

SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {"move": {"enum": ["continue", "accept"]}},
    "required": ["move"],
    "additionalProperties": False,
}
TOOL: ToolParam = {
    "name": "read_profile",
    "input_schema": {
        "type": "object",
        "properties": {"agent": {"type": "string"}},
        "required": ["agent"],
        "additionalProperties": False,
    },
    "strict": True,
}
HELLO: list[MessageParam] = [{"role": "user", "content": "Grüße 🌲"}]

Conversation = Callable[[AsyncAnthropic], Coroutine[Any, Any, Any]]


@pytest.fixture(autouse=True)
def nobody_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The client looks for profiles in the home folder, and for keys in the environment."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in [name for name in os.environ if name.startswith("ANTHROPIC_")]:
        monkeypatch.delenv(name)


def converse(
    api: AnthropicApi, conversation: Conversation, *, key: str = KEY, timeout: float = 30
) -> Any:
    """Hold a conversation with a client of its own."""

    async def held() -> Any:
        async with AsyncAnthropic(
            api_key=key, base_url=api.url, max_retries=0, timeout=timeout
        ) as client:
            return await conversation(client)

    return asyncio.run(held())


async def greet(client: AsyncAnthropic) -> Message:
    return await client.messages.create(model=HAIKU.id, max_tokens=500, messages=HELLO)


def test_client_gets_a_message_and_its_cost(api: AnthropicApi) -> None:
    api.script.add(answers(minds.say("Grüße")))
    message = converse(api, greet)
    assert [block.type for block in message.content] == ["thinking", "text"]
    assert message.content[1].text == "Grüße"
    assert (message.stop_reason, message._request_id) == ("end_turn", "req_000001")
    assert (message.usage.input_tokens, message.usage.output_tokens) == (13, 19)
    assert message.usage.output_tokens_details.thinking_tokens == 16
    (exchange,) = api.ledger.exchanges
    assert exchange.nano_usd == 13 * 100 + 19 * 500
    assert exchange.headers["authorization"] == f"Bearer {KEY}"
    assert exchange.headers["anthropic-version"] == "2026-10-21"
    assert "🌲".encode() in exchange.raw


def test_client_gets_structured_output_from_the_cache(api: AnthropicApi) -> None:
    async def twice(client: AsyncAnthropic) -> list[Message]:
        return [
            await client.messages.create(
                model=SONNET.id,
                max_tokens=500,
                system=[
                    {"type": "text", "text": "x" * 3500, "cache_control": {"type": "ephemeral"}}
                ],
                messages=HELLO,
                output_config={"format": {"type": "json_schema", "schema": SCHEMA}},
            )
            for _ in range(2)
        ]

    first, second = converse(api, twice)
    assert json.loads(first.content[-1].text)["move"] in {"continue", "accept"}
    assert first.usage.cache_creation_input_tokens == second.usage.cache_read_input_tokens > 1024
    assert second.usage.cache_creation_input_tokens == 0


def test_client_holds_a_round_with_a_tool(api: AnthropicApi) -> None:
    calls = [minds.Call(name="read_profile", input={"agent": name}) for name in ("ash", "elm")]
    api.script.add(answers(minds.use(*calls)), answers(minds.say("Thank you.")))

    async def round_trip(client: AsyncAnthropic) -> Message:
        first = await client.messages.create(
            model=HAIKU.id, max_tokens=500, messages=HELLO, tools=[TOOL]
        )
        uses = [block for block in first.content if isinstance(block, ToolUseBlock)]
        assert [use.input for use in uses] == [{"agent": "ash"}, {"agent": "elm"}]
        messages: list[MessageParam] = [
            *HELLO,
            first.to_param(),
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": use.id, "content": "a lab"}
                    for use in uses
                ],
            },
        ]
        with pytest.raises(anthropic.BadRequestError):
            await client.messages.create(
                model=HAIKU.id, max_tokens=500, messages=messages[:2], tools=[TOOL]
            )
        return await client.messages.create(
            model=HAIKU.id, max_tokens=500, messages=messages, tools=[TOOL]
        )

    assert converse(api, round_trip).content[-1].text == "Thank you."
    assert api.ledger.statuses == {200: 2, 400: 1}


def test_client_counts_what_it_is_billed(api: AnthropicApi) -> None:
    async def count(client: AsyncAnthropic) -> int:
        counted = await client.messages.count_tokens(model=HAIKU.id, messages=HELLO)
        return counted.input_tokens

    assert converse(api, count) == 13
    assert converse(api, greet).usage.input_tokens == 13


def test_client_reports_each_failure_as_its_own(api: AnthropicApi) -> None:
    api.script.add(rate_limited("3600"), overloaded(), dropped(), cut_body(), cut_json())
    for error in (
        anthropic.RateLimitError,
        anthropic.InternalServerError,
        anthropic.APIConnectionError,
        anthropic.APIConnectionError,
        json.JSONDecodeError,
    ):
        with pytest.raises(error):
            converse(api, greet)
    assert api.ledger.statuses == {0: 1, 200: 2, 429: 1, 529: 1}
    assert len(api.ledger.billed) == 2
    assert api.ledger.undelivered_nano_usd() == api.ledger.total_nano_usd() > 0


def test_client_takes_a_page_for_an_answer(api: AnthropicApi) -> None:
    api.script.add(html_with_200())
    assert isinstance(converse(api, greet), str)


def test_client_is_told_who_may_not(api: AnthropicApi) -> None:
    with pytest.raises(anthropic.AuthenticationError):
        converse(api, greet, key="wrong")

    async def ask_nobody(client: AsyncAnthropic) -> Message:
        return await client.messages.create(model="claude-nobody", max_tokens=5, messages=HELLO)

    with pytest.raises(anthropic.NotFoundError) as caught:
        converse(api, ask_nobody)
    assert caught.value.type == "not_found_error"
    assert caught.value.request_id == "req_000002"


def test_client_loses_patience(api: AnthropicApi) -> None:
    api.script.add(Waits(seconds=3600, then=answers()))
    with pytest.raises(anthropic.APITimeoutError):
        converse(api, greet, timeout=0.5)


def test_clients_calls_share_connections(api: AnthropicApi) -> None:
    async def many(client: AsyncAnthropic) -> list[Message]:
        return await asyncio.gather(*(greet(client) for _ in range(20)))

    messages = converse(api, many)
    assert len({message.id for message in messages}) == 20
    assert sum(message.usage.input_tokens for message in messages) == 20 * 13
    assert api.ledger.n_open == 0
