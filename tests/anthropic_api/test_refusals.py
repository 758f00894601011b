"""Every refusal, each beside a request that is the same but for the fault and is answered."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.anthropic_api.asking import HEADERS, ask, assistant, block, hello, user
from tests.anthropic_api.check_messages import check_messages, signature
from tests.anthropic_api.check_request import OLD_VERSION
from tests.anthropic_api.models import HAIKU, OLDER, OPUS, SONNET
from tests.anthropic_api.refusal import Json, Refusal
from tests.anthropic_api.script import COUNT, MESSAGES
from tests.anthropic_api.server import KEY, AnthropicApi

TOOL = {"name": "look_up", "input_schema": {"type": "object"}}
USE = {"type": "tool_use", "id": "toolu_1", "name": "look_up", "input": {}}
USE_2 = USE | {"id": "toolu_2"}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "found"}
RESULT_2 = RESULT | {"tool_use_id": "toolu_2"}
MARK = {"cache_control": {"type": "ephemeral"}}
HOUR = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}


def talk(*messages: Json) -> Json:
    """A request with a tool and these messages."""
    return hello(tools=[TOOL], messages=list(messages))


def marked(*blocks: Json) -> Json:
    """A request whose only message has these blocks."""
    return hello(messages=[user(list(blocks))])


def thinking(text: str, mark: str) -> Json:
    """A conversation that brings a block of thinking back."""
    given = {"type": "thinking", "thinking": text, "signature": mark}
    return hello(messages=[user("a"), assistant([given, block("b")]), user("c")])


#: By name: what is refused, and the nearest that is not.
PAIRS: dict[str, tuple[Json, Json]] = {
    "max-tokens-missing": (hello(max_tokens=None), hello()),
    "max-tokens-negative": (hello(max_tokens=-1), hello(max_tokens=0)),
    "max-tokens-true": (hello(max_tokens=True), hello(max_tokens=1)),
    "max-tokens-text": (hello(max_tokens="5"), hello(max_tokens=5)),
    "max-tokens-above": (hello(max_tokens=128_001), hello(max_tokens=128_000)),
    "model-missing": (hello(model=None), hello()),
    "model-no-text": (hello(model=5), hello()),
    "messages-missing": (hello(messages=None), hello()),
    "messages-empty": (hello(messages=[]), hello()),
    "messages-no-list": (hello(messages={}), hello()),
    "message-no-object": (hello(messages=["Hello"]), hello()),
    "message-extra": (hello(messages=[user("a") | {"name": "Ash"}]), hello()),
    "role-first": (
        hello(messages=[assistant("a"), user("b")]),
        hello(messages=[user("a"), assistant("b"), user("c")]),
    ),
    "role-unknown": (
        hello(messages=[user("a"), {"role": "system", "content": "b"}, user("c")]),
        hello(messages=[user("a"), user("b"), user("c")]),
    ),
    "content-empty-list": (hello(messages=[user([])]), hello(messages=[user([block("a")])])),
    "content-number": (hello(messages=[user(5)]), hello()),
    "text-empty": (hello(messages=[user("")]), hello()),
    "text-blank": (hello(messages=[user(" \n\t")]), hello(messages=[user(" \na\t")])),
    "text-block-empty": (marked(block("a"), block("")), marked(block("a"), block("b"))),
    "text-assistant-empty": (
        hello(messages=[user("a"), assistant(""), user("c")]),
        hello(messages=[user("a"), assistant("b"), user("c")]),
    ),
    "block-unknown": (marked({"type": "picture"}), marked(block("a"))),
    "block-extra": (marked(block("a", name="b")), marked(block("a"))),
    "citations-of-a-user": (marked(block("a", citations=[{}])), marked(block("a", citations=None))),
    "document-of-the-assistant": (
        hello(messages=[user("a"), assistant([{"type": "document"}]), user("c")]),
        hello(messages=[user("a"), assistant([block("b", citations=[{}])]), user("c")]),
    ),
    "system-empty": (hello(system=""), hello(system="a")),
    "system-blank-block": (hello(system=[block(" ")]), hello(system=[block("a")])),
    "system-no-text": (hello(system=[{"type": "tool_use"}]), hello(system=[block("a")])),
    "sampling-temperature": (hello(temperature=1.0), hello()),
    "sampling-top-p": (hello(top_p=0.9), hello()),
    "sampling-top-k": (hello(top_k=5), hello()),
    "field-unknown": (hello(tempo=1), hello()),
    "field-not-rehearsed": (hello(container="a"), hello()),
    "stream": (hello(stream=True), hello(stream=False)),
    "stream-no-flag": (hello(stream="no"), hello(stream=False)),
    "metadata-extra": (hello(metadata={"name": "a"}), hello(metadata={"user_id": "a"})),
    "metadata-number": (hello(metadata={"user_id": 5}), hello(metadata={"user_id": None})),
    "tier": (hello(service_tier="fast"), hello(service_tier="auto")),
    "stop-sequence-blank": (hello(stop_sequences=[" "]), hello(stop_sequences=["END"])),
    "thinking-unknown": (hello(thinking={"type": "deep"}), hello(thinking={"type": "adaptive"})),
    "thinking-budget": (
        hello(max_tokens=2000, thinking={"type": "enabled", "budget_tokens": 1024}),
        hello(model=OLDER.id, max_tokens=2000, thinking={"type": "enabled", "budget_tokens": 1024}),
    ),
    "thinking-budget-above": (
        hello(model=OLDER.id, max_tokens=1024, thinking={"type": "enabled", "budget_tokens": 1024}),
        hello(model=OLDER.id, max_tokens=1025, thinking={"type": "enabled", "budget_tokens": 1024}),
    ),
    "thinking-adaptive-older": (
        hello(model=OLDER.id, thinking={"type": "adaptive"}),
        hello(model=OLDER.id, thinking={"type": "disabled"}),
    ),
    "thinking-always": (
        hello(model=OPUS.id, thinking={"type": "disabled"}),
        hello(model=SONNET.id, thinking={"type": "disabled"}),
    ),
    "thinking-changed": (thinking("a", signature("b")), thinking("a", signature("a"))),
    "effort-unknown": (
        hello(output_config={"effort": "huge"}),
        hello(output_config={"effort": "low"}),
    ),
    "effort-older": (
        hello(model=OLDER.id, output_config={"effort": "low"}),
        hello(model=OLDER.id, output_config={}),
    ),
    "continued": (
        hello(messages=[user("a"), assistant("b")]),
        hello(model=OLDER.id, messages=[user("a"), assistant("b")]),
    ),
    "continued-white-space": (
        hello(model=OLDER.id, messages=[user("a"), assistant("b ")]),
        hello(model=OLDER.id, messages=[user("a"), assistant("b")]),
    ),
    "result-missing": (
        talk(user("a"), assistant([USE]), user("b")),
        talk(user("a"), assistant([USE]), user([RESULT, block("b")])),
    ),
    "result-missing-at-the-end": (
        talk(user("a"), assistant([USE])),
        talk(user("a"), assistant([USE]), user([RESULT])),
    ),
    "result-of-one-missing": (
        talk(user("a"), assistant([USE, USE_2]), user([RESULT])),
        talk(user("a"), assistant([USE, USE_2]), user([RESULT_2, RESULT])),
    ),
    "result-extra": (
        talk(user("a"), assistant([USE]), user([RESULT, RESULT_2])),
        talk(user("a"), assistant([USE]), user([RESULT])),
    ),
    "result-twice": (
        talk(user("a"), assistant([USE]), user([RESULT, RESULT])),
        talk(user("a"), assistant([USE]), user([RESULT])),
    ),
    "result-unasked": (talk(user([RESULT])), talk(user("a"))),
    "result-late": (
        talk(user("a"), assistant([USE]), user("b"), user([RESULT])),
        talk(user("a"), assistant([USE]), user([RESULT]), user("b")),
    ),
    "result-behind-text": (
        talk(user("a"), assistant([USE]), user([block("b"), RESULT])),
        talk(user("a"), assistant([USE]), user([RESULT, block("b")])),
    ),
    "result-of-the-assistant": (
        talk(user("a"), assistant([RESULT]), user("b")),
        talk(user("a"), assistant("c"), user("b")),
    ),
    "result-error-empty": (
        talk(user("a"), assistant([USE]), user([RESULT | {"content": "", "is_error": True}])),
        talk(user("a"), assistant([USE]), user([RESULT | {"content": "", "is_error": False}])),
    ),
    "result-blank-block": (
        talk(user("a"), assistant([USE]), user([RESULT | {"content": [block(" ")]}])),
        talk(user("a"), assistant([USE]), user([RESULT | {"content": [block("b")]}])),
    ),
    "use-of-a-user": (talk(user([USE])), talk(user("a"))),
    "use-twice": (
        talk(user("a"), assistant([USE, USE]), user([RESULT])),
        talk(user("a"), assistant([USE]), user([RESULT])),
    ),
    "use-twice-in-a-talk": (
        talk(user("a"), assistant([USE]), user([RESULT]), assistant([USE]), user([RESULT])),
        talk(user("a"), assistant([USE]), user([RESULT]), assistant([USE_2]), user([RESULT_2])),
    ),
    "use-bad-id": (
        talk(user("a"), assistant([USE | {"id": "a b"}]), user([RESULT | {"tool_use_id": "a b"}])),
        talk(user("a"), assistant([USE]), user([RESULT])),
    ),
    "use-no-object": (
        talk(user("a"), assistant([USE | {"input": "b"}]), user([RESULT])),
        talk(user("a"), assistant([USE]), user([RESULT])),
    ),
    "use-without-tools": (
        hello(messages=[user("a"), assistant([USE]), user([RESULT])]),
        talk(user("a"), assistant([USE]), user([RESULT])),
    ),
    "marks-five": (
        marked(*(block("a", **MARK) for _ in range(5))),
        marked(*(block("a", **MARK) for _ in range(4))),
    ),
    "marks-five-with-the-automatic": (
        marked(*(block("a", **MARK) for _ in range(4)), block("b")) | MARK,
        marked(*(block("a", **MARK) for _ in range(3)), block("b")) | MARK,
    ),
    "mark-unlike-the-automatic": (
        marked(block("a", **MARK)) | HOUR,
        marked(block("a", **MARK)) | MARK,
    ),
    "mark-unknown": (
        marked(block("a", cache_control={"type": "forever"})),
        marked(block("a", cache_control=None)),
    ),
    "mark-life": (
        marked(block("a", cache_control={"type": "ephemeral", "ttl": "2h"})),
        marked(block("a", cache_control={"type": "ephemeral", "ttl": "5m"})),
    ),
    "mark-order": (
        marked(block("a", **MARK), block("b", **HOUR)),
        marked(block("a", **HOUR), block("b", **MARK)),
    ),
    "mark-inside-a-result": (
        talk(user("a"), assistant([USE]), user([RESULT | {"content": [block("b", **MARK)]}])),
        talk(user("a"), assistant([USE]), user([RESULT | {"content": [block("b")]} | MARK])),
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_request_by_its_form(api: AnthropicApi, name: str) -> None:
    bad, good = PAIRS[name]

    refused = ask(api, bad)

    assert (refused.status, refused.kind) == (400, "invalid_request_error")
    assert refused.json["type"] == "error"
    assert refused.json["request_id"] == refused.headers["request-id"] == "req_000001"
    assert ask(api, good).status == 200
    assert [exchange.usage is None for exchange in api.ledger.exchanges] == [True, False]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"authorization": f"Bearer {KEY}"}, 200),
        ({"authorization": f"bearer {KEY}"}, 200),
        ({"x-api-key": KEY}, 200),
        ({"x-api-key": KEY, "authorization": "Bearer wrong"}, 200),
        ({"x-api-key": "wrong", "authorization": f"Bearer {KEY}"}, 401),
        ({"authorization": "Bearer wrong"}, 401),
        ({"authorization": f"Basic {KEY}"}, 401),
        ({"authorization": KEY}, 401),
        ({"x-api-key": ""}, 401),
        ({}, 401),
    ],
)
def test_request_with_a_key(api: AnthropicApi, headers: dict[str, str], status: int) -> None:
    version = {"anthropic-version": HEADERS["anthropic-version"]}
    reply = ask(api, hello(), headers=headers | version)
    assert reply.status == status
    if status == 401:
        assert reply.kind == "authentication_error"


@pytest.mark.parametrize("version", [None, "2026-10-22", ""])
def test_request_without_a_version(api: AnthropicApi, version: str | None) -> None:
    headers = {"x-api-key": KEY} | ({} if version is None else {"anthropic-version": version})
    assert ask(api, hello(), headers=headers).status == 400
    assert ask(api, hello()).status == 200


def test_sampling_at_the_older_version(api: AnthropicApi) -> None:
    older = HEADERS | {"anthropic-version": OLD_VERSION}
    body = hello(model=OLDER.id, temperature=0.5)
    assert ask(api, body, headers=older).status == 200
    assert ask(api, body).status == 400
    assert ask(api, hello(temperature=0.5), headers=older).status == 400


def test_path_that_does_not_exist(api: AnthropicApi) -> None:
    reply = ask(api, hello(), path="/v1/complete")
    assert (reply.status, reply.kind) == (404, "not_found_error")
    assert ask(api, b"", path=MESSAGES, method="GET").status == 405


def test_model_that_does_not_exist(api: AnthropicApi) -> None:
    reply = ask(api, hello(model="claude-nobody"))
    assert (reply.status, reply.kind) == (404, "not_found_error")
    assert "claude-nobody" in reply.json["error"]["message"]


def test_model_that_the_key_may_not_use() -> None:
    with AnthropicApi(keys={KEY: frozenset({HAIKU.id})}) as api:
        reply = ask(api, hello(model=SONNET.id))
        assert (reply.status, reply.kind) == (403, "permission_error")
        assert ask(api, hello(model=HAIKU.id)).status == 200


def test_body_of_too_many_bytes() -> None:
    raw = ask_size(hello())
    with AnthropicApi(max_body_bytes=raw) as api:
        reply = ask(api, hello(system="a"))
        assert (reply.status, reply.kind) == (413, "request_too_large")
        assert ask(api, hello()).status == 200


def ask_size(body: Json) -> int:
    """How many bytes `ask` makes of a body."""
    with AnthropicApi() as api:
        ask(api, body)
        return len(api.ledger.exchanges[0].raw)


def test_prompt_of_too_many_tokens() -> None:
    # {"type":"text","text":"Hello"} has 30 bytes: ten tokens; "Hello!" makes it eleven.
    with AnthropicApi(models=[replace(HAIKU, context_tokens=10)]) as api:
        reply = ask(api, hello(messages=[user("Hello!")]))
        assert reply.status == 400
        assert reply.json["error"]["message"] == "prompt is too long: 11 tokens > 10 maximum"
        assert ask(api, hello()).status == 200


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"[]",
        b'{"model": ',
        b'{"model": NaN}',
        b'{"model": "\xff"}',
        b'{"model": "\\ud83d"}',
        b"[" * 100_000,
    ],
)
def test_body_that_is_no_json(api: AnthropicApi, raw: bytes) -> None:
    reply = ask(api, raw)
    assert (reply.status, reply.kind) == (400, "invalid_request_error")
    assert "JSON" in reply.json["error"]["message"]


def test_half_a_character_is_refused_and_a_whole_one_is_not(api: AnthropicApi) -> None:
    whole = (
        b'{"model":"claude-haiku-5-5","max_tokens":9,"messages":[{"role":"user","content":"%b"}]}'
    )
    assert ask(api, whole % b"\\ud83d").status == 400
    assert ask(api, whole % b"\\ud83d\\ude00").status == 200
    assert ask(api, whole % "ä😀".encode()).status == 200
    assert api.ledger.exchanges[-1].body == hello(max_tokens=9, messages=[user("ä😀")])


def test_messages_without_end() -> None:
    body = hello(messages=[user("a")] * 100_000)
    check_messages(body, HAIKU)
    body["messages"].append(user("a"))
    with pytest.raises(Refusal, match="100001 messages"):
        check_messages(body, HAIKU)


def test_count_takes_only_its_own_fields(api: AnthropicApi) -> None:
    counted = hello(max_tokens=None)
    assert ask(api, hello(), path=COUNT).status == 400
    assert ask(api, counted | {"metadata": {}}, path=COUNT).status == 400
    reply = ask(api, counted, path=COUNT)
    assert (reply.status, reply.json) == (200, {"input_tokens": 10})
    assert api.ledger.total_nano_usd() == 0
