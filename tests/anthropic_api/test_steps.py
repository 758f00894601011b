"""Faults on demand, the script, the weather, and what a client sees of them."""

from __future__ import annotations

import json
import socket
import threading
from collections import Counter
from http.client import HTTPException, IncompleteRead, RemoteDisconnected

import pytest

from tests.anthropic_api import minds
from tests.anthropic_api.asking import HEADERS, ask, hello, noting, user
from tests.anthropic_api.script import COUNT, Weather
from tests.anthropic_api.server import AnthropicApi
from tests.anthropic_api.steps import (
    FAULTS,
    HTML,
    Step,
    Waits,
    answers,
    bad_gateway,
    cut_body,
    cut_json,
    dropped,
    fails,
    html_with_200,
    other_json,
    overloaded,
    rate_limited,
    sparse_usage,
    truncated,
    unsent,
    without,
)

TOOL = {"name": "look_up", "input_schema": {"type": "object"}}


@pytest.mark.parametrize(
    "retry_after", ["1", "3600", "-5", "Wed, 21 Oct 2026 07:28:00 GMT", "soon", None]
)
def test_rate_limit_with_any_retry_after(api: AnthropicApi, retry_after: str | None) -> None:
    api.script.add(rate_limited(retry_after))
    reply = ask(api, hello())
    assert (reply.status, reply.kind) == (429, "rate_limit_error")
    assert reply.headers["retry-after"] == retry_after
    assert ask(api, hello()).status == 200


@pytest.mark.parametrize(
    ("step", "status", "kind"),
    [
        (overloaded(), 529, "overloaded_error"),
        (fails(500), 500, "api_error"),
        (fails(503), 503, "api_error"),
        (fails(504), 504, "timeout_error"),
        (fails(402), 402, "billing_error"),
    ],
)
def test_failure_with_its_kind(api: AnthropicApi, step: Step, status: int, kind: str) -> None:
    api.script.add(step)
    reply = ask(api, hello())
    assert (reply.status, reply.kind) == (status, kind)
    assert reply.json["request_id"] == reply.headers["request-id"]
    assert api.ledger.exchanges[0].error == kind


@pytest.mark.parametrize(("step", "status"), [(bad_gateway(), 502), (html_with_200(), 200)])
def test_page_instead_of_json(api: AnthropicApi, step: Step, status: int) -> None:
    api.script.add(step)
    reply = ask(api, hello())
    assert (reply.status, reply.raw) == (status, HTML)
    assert reply.headers["content-type"] == "text/html"


def test_other_json(api: AnthropicApi) -> None:
    api.script.add(other_json(), without("content"), without("usage"), sparse_usage())
    replies = [ask(api, hello()).json for _ in range(4)]
    assert replies[0] == {"foo": 1}
    assert "content" not in replies[1]
    assert "usage" not in replies[2]
    assert replies[3]["usage"]["cache_read_input_tokens"] is None
    assert replies[3]["usage"]["input_tokens"] == 10


@pytest.mark.parametrize("step", [dropped(), unsent()])
def test_connection_that_ends_before_an_answer(api: AnthropicApi, step: Step) -> None:
    api.script.add(step)
    with pytest.raises(RemoteDisconnected):
        ask(api, hello())
    assert api.ledger.statuses == {0: 1}


def test_connection_that_ends_in_the_body(api: AnthropicApi) -> None:
    api.script.add(cut_body())
    with pytest.raises(IncompleteRead):
        ask(api, hello())
    assert api.ledger.exchanges[0].delivered is False


def test_json_that_is_cut(api: AnthropicApi) -> None:
    api.script.add(cut_json())
    reply = ask(api, hello())
    assert reply.status == 200
    assert reply.raw.startswith(b'{"id":"msg_')
    with pytest.raises(json.JSONDecodeError):
        _ = reply.json


@pytest.mark.parametrize(
    ("mind", "texts", "stop_reason"),
    [
        (minds.say(), [], "end_turn"),
        (minds.say(" \n"), [" \n"], "end_turn"),
        (minds.say("a", "b"), ["a", "b"], "end_turn"),
        (minds.say_json({"post": "ä"}), ['{"post": "ä"}'], "end_turn"),
        (minds.refuse("bio"), [], "refusal"),
    ],
)
def test_texts_on_demand(
    api: AnthropicApi, mind: minds.Mind, texts: list[str], stop_reason: str
) -> None:
    api.script.add(answers(mind))
    reply = ask(api, hello()).json
    said = [block["text"] for block in reply["content"] if block["type"] == "text"]
    assert (said, reply["stop_reason"]) == (texts, stop_reason)
    category = {"type": "refusal", "category": "bio", "explanation": None}
    assert reply["stop_details"] == (category if stop_reason == "refusal" else None)


def test_truncated_answer(api: AnthropicApi) -> None:
    api.script.add(truncated(minds.say('{"move": "accept"}')))
    reply = ask(api, hello()).json
    assert reply["content"][-1]["text"] == '{"move": '
    assert reply["stop_reason"] == "max_tokens"


def test_tool_use_with_a_bad_input(api: AnthropicApi) -> None:
    call = minds.Call(name="look_up", input={"unheard": [None]})
    api.script.add(answers(minds.use(call, text="Let me look.")))
    reply = ask(api, hello(tools=[TOOL])).json
    assert reply["content"][1:] == [
        {"type": "text", "text": "Let me look."},
        {
            "type": "tool_use",
            "id": "toolu_000001_0",
            "name": "look_up",
            "input": {"unheard": [None]},
        },
    ]
    assert reply["stop_reason"] == "tool_use"


def test_tool_use_that_does_not_fit(api: AnthropicApi) -> None:
    call = minds.Call(name="look_up", input={"query": "a" * 300})
    api.script.add(answers(minds.use(call, call)))
    reply = ask(api, hello(tools=[TOOL])).json
    assert [block.get("input") for block in reply["content"]] == [None, {}]
    assert reply["stop_reason"] == "max_tokens"


def test_script_is_taken_in_order_by_who_it_is_for(api: AnthropicApi) -> None:
    api.script.add(
        fails(500), when=lambda asked: asked.last == [{"type": "text", "text": "second"}]
    )
    api.script.add(fails(503), overloaded())
    api.script.add(fails(504), path=COUNT)
    said = ["first", "second", "third", "fourth"]
    assert [ask(api, hello(messages=[user(text)])).status for text in said] == [503, 500, 529, 200]
    assert [ask(api, hello(max_tokens=None), path=COUNT).status for _ in range(2)] == [504, 200]
    assert api.script.n_left == 0


def test_bad_request_takes_no_step(api: AnthropicApi) -> None:
    api.script.add(overloaded())
    assert ask(api, hello(temperature=1)).status == 400
    assert api.script.n_left == 1
    assert ask(api, hello()).status == 529


def test_slow_answer_wakes_when_the_server_stops() -> None:
    begun = threading.Event()

    with AnthropicApi() as api:
        never = Waits(seconds=3600, then=answers())
        api.script.add(never, when=noting(begun))
        slow = threading.Thread(target=_ask_in_vain, args=(api,))
        slow.start()
        assert begun.wait(30)
    slow.join(30)
    assert not slow.is_alive()
    assert api.ledger.n_open == 0


def _ask_in_vain(api: AnthropicApi) -> None:
    """The answer may still come, or the connection ends first."""
    try:
        ask(api, hello())
    except (ConnectionError, HTTPException):
        return


def test_slow_answer_comes(api: AnthropicApi) -> None:
    api.script.add(Waits(seconds=0.01, then=Waits(seconds=0, then=overloaded())))
    assert ask(api, hello()).status == 529


def test_requests_at_once_are_counted(api: AnthropicApi) -> None:
    gate = threading.Event()
    api.script.add(*(Waits(seconds=30, then=answers(), until=gate) for _ in range(5)))
    threads = [threading.Thread(target=ask, args=(api, hello())) for _ in range(5)]
    for thread in threads:
        thread.start()
    api.ledger.wait_for(lambda ledger: ledger.n_open == 5)
    gate.set()
    for thread in threads:
        thread.join()
    ask(api, hello())
    assert (api.ledger.most_at_once, api.ledger.n_open) == (5, 0)
    assert api.ledger.statuses == {200: 6}


def test_weather_hits_at_its_rate_and_the_same_again() -> None:
    def statuses(seed: int) -> list[int]:
        weather = Weather(seed=seed, rates={"overloaded": 0.2, "rate_limited_hour": 0.1})
        with AnthropicApi(weather=weather) as api:
            return [ask(api, hello(messages=[user(f"{n}")])).status for n in range(100)]

    first = statuses(1)
    assert Counter(first) == {200: 71, 529: 19, 429: 10}
    assert statuses(1) == first
    assert statuses(2) != first


def test_weather_does_not_depend_on_the_order_of_requests() -> None:
    def statuses(texts: list[str]) -> dict[str, int]:
        with AnthropicApi(weather=Weather(seed=5, rates={"server_error": 0.5})) as api:
            return {text: ask(api, hello(messages=[user(text)])).status for text in texts}

    texts = [f"text {n}" for n in range(20)]
    assert statuses(texts) == statuses(texts[::-1])
    assert set(statuses(texts).values()) == {200, 500}


def test_weather_gives_a_repeated_request_a_new_chance() -> None:
    with AnthropicApi(weather=Weather(seed=5, rates={"server_error": 0.5})) as api:
        assert {ask(api, hello()).status for _ in range(20)} == {200, 500}


@pytest.mark.parametrize(
    ("rates", "words"),
    [({"rain": 0.1}, "there are no faults rain"), ({"html": 0.6, "empty": 0.6}, "more than 1")],
)
def test_weather_that_cannot_be(rates: dict[str, float], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Weather(seed=0, rates=rates)


@pytest.mark.parametrize("name", FAULTS)
def test_every_fault_of_the_weather_leaves_the_server_well(name: str) -> None:
    with AnthropicApi(weather=Weather(seed=0, rates={name: 1.0})) as api:
        try:
            ask(api, hello(tools=[TOOL]))
        except (ConnectionError, IncompleteRead):
            assert api.ledger.exchanges[0].delivered is False
        assert len(api.ledger.exchanges) == 1


def test_mistake_of_a_mind_is_raised_at_the_end() -> None:
    def mistaken(asked: minds.Asked) -> minds.Decision:
        raise LookupError(f"nothing for {asked.number}")

    with pytest.raises(LookupError, match="nothing for 1"), AnthropicApi(mind=mistaken) as api:
        assert ask(api, hello()).status == 500
    assert api.ledger.bill() == {}


def test_client_that_hangs_up_is_billed_and_gets_nothing(api: AnthropicApi) -> None:
    gate = threading.Event()
    api.script.add(Waits(seconds=30, then=answers(), until=gate))
    with pytest.raises(TimeoutError):
        ask(api, hello(), timeout=0.05)
    gate.set()
    api.ledger.wait_for(lambda ledger: len(ledger.exchanges) == 1)
    assert api.ledger.undelivered_nano_usd() == api.ledger.total_nano_usd() > 0


def test_client_that_hangs_up_in_the_middle_is_seen(api: AnthropicApi) -> None:
    # More than the buffers of both sides take: the server is still sending when the line ends.
    api.script.add(other_json(b'"' + b"a" * 30_000_000 + b'"'))
    line = socket.socket()
    line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    line.settimeout(30)
    line.connect(("127.0.0.1", int(api.url.rpartition(":")[2])))
    raw = json.dumps(hello()).encode()
    head = {**HEADERS, "content-length": str(len(raw))}
    lines = ["POST /v1/messages HTTP/1.1", *(f"{name}: {value}" for name, value in head.items())]
    line.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + raw)
    api.ledger.wait_for(lambda ledger: len(ledger.exchanges) == 1)
    assert api.ledger.exchanges[0].delivered
    line.close()
    api.ledger.wait_for(lambda ledger: not ledger.exchanges[0].delivered)


def test_ledger_does_not_wait_for_ever(api: AnthropicApi) -> None:
    with pytest.raises(TimeoutError, match="still not so"):
        api.ledger.wait_for(lambda ledger: ledger.n_open == 1, seconds=0.01)


def test_records_hold_what_was_sent(api: AnthropicApi) -> None:
    reply = ask(api, hello())
    (exchange,) = api.ledger.exchanges
    assert exchange.body == hello()
    assert json.loads(exchange.raw) == hello()
    assert exchange.headers["anthropic-version"] == "2026-10-21"
    assert (exchange.sent, exchange.answer) == (reply.raw, reply.json)
    assert (exchange.number, exchange.path, exchange.at) == (1, "/v1/messages", 0.0)
