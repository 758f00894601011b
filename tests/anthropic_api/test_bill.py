"""The bill, in literal nano-USD: a dollar per million tokens is 1,000 for each."""

from __future__ import annotations

from dataclasses import replace
from http.client import IncompleteRead, RemoteDisconnected

import pytest

from tests.anthropic_api import minds
from tests.anthropic_api.asking import HEADERS, ask, block_of, hello, user
from tests.anthropic_api.billing import Line, Usage
from tests.anthropic_api.cache import Split
from tests.anthropic_api.models import HAIKU, OLDER, OPUS, SONNET, Model
from tests.anthropic_api.server import KEY, AnthropicApi
from tests.anthropic_api.steps import (
    answers,
    cut_body,
    cut_json,
    dropped,
    fails,
    html_with_200,
    other_json,
    rate_limited,
    sparse_usage,
    unsent,
    without,
)

#: "abcdef" has two tokens; Haiku thinks sixteen first.
SHORT = minds.say("abcdef")


def usage_of(plain: int, write_5m: int, write_1h: int, read: int, output: int) -> Usage:
    prompt = Split(plain=plain, write_5m=write_5m, write_1h=write_1h, read=read)
    return Usage(prompt=prompt, output_tokens=output)


@pytest.mark.parametrize(
    ("model", "nano_usd"),
    [
        (HAIKU, 100 + 20 * 125 + 300 * 200 + 4000 * 10 + 50_000 * 500),
        (SONNET, 2_000 + 20 * 2_500 + 300 * 4_000 + 4000 * 100 + 50_000 * 10_000),
        (OPUS, 4_000 + 20 * 5_000 + 300 * 8_000 + 4000 * 200 + 50_000 * 20_000),
        (OLDER, 1_000 + 20 * 1_250 + 300 * 2_000 + 4000 * 100 + 50_000 * 5_000),
    ],
)
def test_price_of_every_kind_of_token(model: Model, nano_usd: int) -> None:
    assert usage_of(1, 20, 300, 4000, 50_000).nano_usd(model) == nano_usd


def test_long_prompt_pays_more_for_all_of_it() -> None:
    assert usage_of(40_000, 20_000, 0, 40_000, 10).nano_usd(HAIKU) == 6_905_000
    assert usage_of(40_001, 20_000, 0, 40_000, 10).nano_usd(HAIKU) == 34_525_500


def test_million_tokens_are_the_dollars_of_the_list() -> None:
    assert usage_of(1_000_000, 0, 0, 0, 0).nano_usd(SONNET) == 2_000_000_000
    assert usage_of(0, 0, 0, 0, 1_000_000).nano_usd(OPUS) == 20_000_000_000


def test_bill_of_one_answer(api: AnthropicApi) -> None:
    api.script.add(answers(SHORT))
    reply = ask(api, hello())
    assert reply.json["usage"] == {
        "input_tokens": 10,
        "output_tokens": 18,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
        "output_tokens_details": {"thinking_tokens": 16},
        "server_tool_use": None,
        "service_tier": "standard",
    }
    assert api.ledger.total_nano_usd() == 10 * 100 + 18 * 500
    assert api.ledger.exchanges[0].nano_usd == 10_000


def test_lines_are_of_keys_and_models() -> None:
    with AnthropicApi(keys={KEY: None, "other": None}, mind=SHORT) as api:
        cached = hello(system=[block_of(1024, ttl="5m")])
        ask(api, cached)
        ask(api, cached)
        ask(api, cached, headers=HEADERS | {"x-api-key": "other"})
        ask(api, hello(model=OLDER.id))
        assert api.ledger.bill() == {
            (KEY, HAIKU.id): Line(
                requests=2,
                input_tokens=20,
                write_5m_tokens=1024,
                read_tokens=1024,
                output_tokens=36,
                nano_usd=2_000 + 128_000 + 10_240 + 18_000,
            ),
            ("other", HAIKU.id): Line(
                requests=1,
                input_tokens=10,
                write_5m_tokens=1024,
                output_tokens=18,
                nano_usd=1_000 + 128_000 + 9_000,
            ),
            (KEY, OLDER.id): Line(
                requests=1, input_tokens=10, output_tokens=2, nano_usd=10_000 + 10_000
            ),
        }
        assert api.ledger.total_nano_usd() == 158_240 + 138_000 + 20_000


def test_failures_are_not_billed(api: AnthropicApi) -> None:
    api.script.add(rate_limited(), fails(500), fails(529), html_with_200(), other_json(), dropped())
    statuses = [ask(api, hello()).status for _ in range(5)]
    assert statuses == [429, 500, 529, 200, 200]
    with pytest.raises(ConnectionError):
        ask(api, hello())
    assert ask(api, hello(max_tokens=None)).status == 400
    assert api.ledger.bill() == {}
    ask(api, hello())
    assert len(api.ledger.billed) == 1


def test_answers_that_are_no_use_are_billed(api: AnthropicApi) -> None:
    api.script.add(without("usage"), without("content"), sparse_usage(), answers(minds.refuse()))
    for _ in range(4):
        ask(api, hello())
    assert api.ledger.bill()[KEY, HAIKU.id].requests == 4
    assert api.ledger.undelivered_nano_usd() == 0


def test_answers_that_never_arrive_are_billed_apart() -> None:
    with AnthropicApi(mind=SHORT) as api:
        api.script.add(unsent(), cut_body(), cut_json())
        for _ in range(2):
            with pytest.raises((RemoteDisconnected, IncompleteRead)):
                ask(api, hello())
        ask(api, hello())
        ask(api, hello())
        assert api.ledger.total_nano_usd() == 40_000
        assert api.ledger.undelivered_nano_usd() == 30_000
        assert [exchange.delivered for exchange in api.ledger.exchanges] == [
            *([False] * 3),
            True,
        ]


def test_output_stops_at_max_tokens() -> None:
    with AnthropicApi(mind=minds.say("abcdefghi")) as api:
        reply = ask(api, hello(max_tokens=18))
        assert reply.json["content"][1] == {"type": "text", "text": "abcdef"}
        assert reply.json["stop_reason"] == "max_tokens"
        assert reply.json["usage"]["output_tokens"] == 18
        whole = ask(api, hello(max_tokens=19))
        assert whole.json["stop_reason"] == "end_turn"
        assert whole.json["usage"]["output_tokens"] == 19
        thought = ask(api, hello(max_tokens=10))
        assert [part["type"] for part in thought.json["content"]] == ["thinking"]
        assert thought.json["usage"]["output_tokens"] == 10


def test_no_answer_has_no_tokens_but_one_of_none() -> None:
    with AnthropicApi(mind=minds.say()) as api:
        body = hello(model=OLDER.id)
        assert ask(api, body).json["usage"]["output_tokens"] == 1
        warmed = ask(api, body | {"max_tokens": 0}).json
        assert (warmed["content"], warmed["stop_reason"]) == ([], "max_tokens")
        assert warmed["usage"]["output_tokens"] == 0


def test_model_that_a_test_prices_itself() -> None:
    dear = replace(OLDER, id="claude-dear", prices=replace(OLDER.prices, input=1, output=0))
    with AnthropicApi(models=[dear]) as api:
        ask(api, hello(model="claude-dear", messages=[user("Hello")]))
        assert api.ledger.total_nano_usd() == 10
