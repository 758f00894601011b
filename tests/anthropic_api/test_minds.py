"""What the default mind answers, and what a mind is told."""

from __future__ import annotations

import json
from random import Random

import pytest

from tests.anthropic_api.asking import ask, assistant, block, hello, user
from tests.anthropic_api.minds import Asked, Decision, value_of
from tests.anthropic_api.models import HAIKU, SONNET
from tests.anthropic_api.refusal import Json
from tests.anthropic_api.server import KEY, AnthropicApi
from tests.anthropic_api.steps import answers

MOVE: Json = {
    "type": "object",
    "properties": {
        "move": {"enum": ["continue", "accept", "decline"]},
        "text": {"type": "string"},
        "note": {"type": "string"},
    },
    "required": ["text", "move"],
    "additionalProperties": False,
}
SCAN: Json = {
    "type": "object",
    "properties": {"keep": {"type": "array", "items": {"type": "integer"}}},
    "required": ["keep"],
    "additionalProperties": False,
}


def forms(schema: Json, text: str = "Hello") -> Json:
    form = {"type": "json_schema", "schema": schema}
    return hello(output_config={"format": form}, messages=[user(text)])


def said(reply: Json) -> Json:
    """The JSON of the last block, behind the model's thinking."""
    value: Json = json.loads(reply["content"][-1]["text"])
    return value


def test_answer_follows_the_schema_and_varies_with_the_request(api: AnthropicApi) -> None:
    decided = [said(ask(api, forms(MOVE, f"text {n}")).json) for n in range(30)]
    assert {tuple(answer) for answer in decided} == {("move", "text")}
    assert {answer["move"] for answer in decided} == {"continue", "accept", "decline"}
    assert len({answer["text"] for answer in decided}) == 30


def test_same_request_has_the_same_answer_in_every_server() -> None:
    decided = []
    for _ in range(2):
        with AnthropicApi() as api:
            decided.append(said(ask(api, forms(MOVE)).json))
    assert decided[0] == decided[1]


def test_forced_tool_is_used(api: AnthropicApi) -> None:
    tools = [
        {"name": "move", "input_schema": MOVE, "strict": True},
        {"name": "scan", "input_schema": SCAN, "strict": True},
    ]
    named = hello(tools=tools, tool_choice={"type": "tool", "name": "scan"})
    reply = ask(api, named).json
    assert reply["stop_reason"] == "tool_use"
    assert [part["type"] for part in reply["content"]] == ["thinking", "tool_use"]
    assert (reply["content"][1]["name"], reply["content"][1]["input"]) == ("scan", {"keep": []})
    any_of_them = ask(api, hello(tools=tools, tool_choice={"type": "any"})).json
    assert any_of_them["content"][1]["name"] in {"move", "scan"}


def test_mind_may_think_more_or_not_at_all(api: AnthropicApi) -> None:
    def asked_to_think(tokens: int) -> Json:
        decision = Decision(texts=("abc",), thinking_tokens=tokens)
        api.script.add(answers(lambda _asked: decision))
        reply: Json = ask(api, hello()).json
        return reply

    deep = asked_to_think(50)
    assert deep["usage"]["output_tokens_details"] == {"thinking_tokens": 50}
    assert deep["usage"]["output_tokens"] == 51
    assert [part["type"] for part in asked_to_think(0)["content"]] == ["text"]


def test_plain_request_has_a_few_words(api: AnthropicApi) -> None:
    reply = ask(api, hello(thinking={"type": "disabled"})).json
    assert [part["type"] for part in reply["content"]] == ["text"]
    assert len(reply["content"][0]["text"].split()) == 5
    assert (reply["role"], reply["model"], reply["type"]) == ("assistant", HAIKU.id, "message")


@pytest.mark.parametrize(
    ("schema", "values"),
    [
        ({"const": 5}, {"5"}),
        ({"type": "boolean"}, {"true", "false"}),
        ({"type": "null"}, {"null"}),
        ({"type": ["null", "boolean"]}, {"null", "true", "false"}),
        ({"type": "integer"}, {str(n) for n in range(1, 10)}),
        ({"type": "string", "format": "date"}, {'"2026-01-02"'}),
        ({"anyOf": [{"const": 1}, {"const": 2}]}, {"1", "2"}),
        ({"allOf": [{"const": 1}]}, {"1"}),
        ({"type": "array", "items": {"const": 1}, "minItems": 1}, {"[1]"}),
        ({"$ref": "#/$defs/One", "$defs": {"One": {"const": 1}}}, {"1"}),
    ],
)
def test_value_of_a_schema(schema: Json, values: set[str]) -> None:
    assert {json.dumps(value_of(schema, Random(n))) for n in range(200)} == values


def test_mind_is_told_everything() -> None:
    told: list[Asked] = []

    def mind(asked: Asked) -> Decision:
        told.append(asked)
        return Decision(texts=("noted",))

    body = forms(MOVE) | {
        "model": SONNET.id,
        "system": [block("rules"), block("profile")],
        "tools": [{"name": "scan", "input_schema": SCAN}],
        "messages": [user("a"), assistant("b"), user([block("c")])],
    }
    with AnthropicApi(mind=mind) as api:
        ask(api, body)
        ask(api, hello())
    first, second = told
    assert (first.number, first.key, first.model) == (1, KEY, SONNET)
    assert (first.system, first.last) == ("rules\nprofile", [block("c")])
    assert (first.schema, list(first.tools), first.choice) == (MOVE, ["scan"], {"type": "auto"})
    assert (second.schema, second.tools, second.system) == (None, {}, "")
    assert json.loads(first.raw) == first.body == body
