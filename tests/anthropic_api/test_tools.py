"""Refusals of tools, choices and schemas, each beside its nearest neighbour that is taken."""

from __future__ import annotations

import pytest

from tests.anthropic_api.asking import ask, assistant, hello, user
from tests.anthropic_api.models import OLDER, OPUS, SONNET
from tests.anthropic_api.refusal import Json
from tests.anthropic_api.server import AnthropicApi

LEAF = {"type": "string"}


def tool(name: object = "look_up", **more: object) -> Json:
    """A tool that is in order, with changes."""
    return {"name": name, "input_schema": {"type": "object"}} | more


def forms(schema: object, **more: object) -> Json:
    """A request for structured output."""
    form = {"type": "json_schema", "schema": schema} | more
    return hello(output_config={"format": form})


def closed(**properties: object) -> Json:
    """A strict schema of an object with these properties, all required."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def optional(number: int) -> Json:
    """A strict schema with so many optional properties."""
    return closed(**{f"p{at}": LEAF for at in range(number)}) | {"required": []}


def unions(number: int) -> Json:
    """A strict schema with so many properties of two types."""
    return closed(**{f"p{at}": {"type": ["string", "null"]} for at in range(number)})


def referring(target: str) -> Json:
    """A schema that refers to one of its definitions, or elsewhere."""
    move = closed(next={"$ref": target})
    return closed(move={"$ref": "#/$defs/Move"}) | {"$defs": {"Move": move, "Leaf": LEAF}}


PAIRS: dict[str, tuple[Json, Json]] = {
    "tools-no-list": (hello(tools={}), hello(tools=[])),
    "tool-name-missing": (
        hello(tools=[{"input_schema": {"type": "object"}}]),
        hello(tools=[tool()]),
    ),
    "tool-name-characters": (hello(tools=[tool("look up")]), hello(tools=[tool("look-up_2")])),
    "tool-name-empty": (hello(tools=[tool("")]), hello(tools=[tool("a")])),
    "tool-name-length": (hello(tools=[tool("a" * 129)]), hello(tools=[tool("a" * 128)])),
    "tool-name-newline": (hello(tools=[tool("a\n")]), hello(tools=[tool("a")])),
    "tool-name-twice": (hello(tools=[tool("a"), tool("a")]), hello(tools=[tool("a"), tool("b")])),
    "tool-schema-missing": (hello(tools=[{"name": "a"}]), hello(tools=[tool("a")])),
    "tool-schema-type": (
        hello(tools=[tool(input_schema={"type": "string"})]),
        hello(tools=[tool(input_schema={"type": "object", "anything": "goes"})]),
    ),
    "tool-extra": (hello(tools=[tool(parameters={})]), hello(tools=[tool(description="a")])),
    "tool-of-the-server": (
        hello(tools=[tool(type="web_search_20250305")]),
        hello(tools=[tool(type="custom")]),
    ),
    "tool-strict-open": (
        hello(tools=[tool(strict=True)]),
        hello(tools=[tool(strict=True, input_schema=closed(a=LEAF))]),
    ),
    "tools-strict-many": (
        hello(tools=[tool(f"a{n}", strict=True, input_schema=closed()) for n in range(21)]),
        hello(tools=[tool(f"a{n}", strict=True, input_schema=closed()) for n in range(20)]),
    ),
    "choice-without-tools": (
        hello(tool_choice={"type": "auto"}),
        hello(tools=[tool()], tool_choice={"type": "auto"}),
    ),
    "choice-of-nobody": (
        hello(tools=[tool()], tool_choice={"type": "tool", "name": "b"}),
        hello(tools=[tool()], tool_choice={"type": "tool", "name": "look_up"}),
    ),
    "choice-without-a-name": (
        hello(tools=[tool()], tool_choice={"type": "tool"}),
        hello(tools=[tool()], tool_choice={"type": "any"}),
    ),
    "choice-unknown": (
        hello(tools=[tool()], tool_choice={"type": "some"}),
        hello(tools=[tool()], tool_choice={"type": "none"}),
    ),
    "choice-no-object": (
        hello(tools=[tool()], tool_choice="auto"),
        hello(tools=[tool()], tool_choice={"type": "auto", "disable_parallel_tool_use": True}),
    ),
    "choice-forced": (
        hello(model=OPUS.id, tools=[tool()], tool_choice={"type": "any"}),
        hello(model=SONNET.id, tools=[tool()], tool_choice={"type": "any"}),
    ),
    "format-type": (forms(closed(), type="json_object"), forms(closed())),
    "format-extra": (forms(closed(), name="a"), forms(closed())),
    "format-root": (forms({"type": "array", "items": LEAF}), forms(closed(a=LEAF))),
    "format-begun": (
        forms(closed()) | {"model": OLDER.id, "messages": [user("a"), assistant("{")]},
        forms(closed()) | {"model": OLDER.id, "messages": [user("a"), assistant("{"), user("b")]},
    ),
    "schema-open": (forms({"type": "object", "properties": {}}), forms(closed())),
    "schema-open-said": (forms(closed() | {"additionalProperties": True}), forms(closed())),
    "schema-open-inside": (
        forms(closed(a={"type": "array", "items": {"type": "object", "properties": {}}})),
        forms(closed(a={"type": "array", "items": closed()})),
    ),
    "schema-properties": (forms(closed() | {"properties": []}), forms(closed())),
    "schema-required": (
        forms(closed(a=LEAF) | {"required": ["a", "b"]}),
        forms(closed(a=LEAF) | {"required": []}),
    ),
    "schema-typeless": (forms(closed(a={})), forms(closed(a={"enum": ["b"]}))),
    "schema-type": (forms(closed(a={"type": "text"})), forms(closed(a=LEAF))),
    "schema-minimum": (
        forms(closed(a={"type": "integer", "minimum": 1})),
        forms(closed(a={"type": "integer"})),
    ),
    "schema-length": (
        forms(closed(a={"type": "string", "maxLength": 5})),
        forms(closed(a={"type": "string", "description": "five at most"})),
    ),
    "schema-items": (
        forms(closed(a={"type": "array"})),
        forms(closed(a={"type": "array", "items": LEAF})),
    ),
    "schema-min-items": (
        forms(closed(a={"type": "array", "items": LEAF, "minItems": 2})),
        forms(closed(a={"type": "array", "items": LEAF, "minItems": 1})),
    ),
    "schema-enum-complex": (
        forms(closed(a={"enum": [{"b": 1}]})),
        forms(closed(a={"enum": ["b", 1, True, None]})),
    ),
    "schema-enum-empty": (forms(closed(a={"enum": []})), forms(closed(a={"enum": ["b"]}))),
    "schema-format": (
        forms(closed(a={"type": "string", "format": "phone"})),
        forms(closed(a={"type": "string", "format": "email"})),
    ),
    "schema-any-of": (
        forms(closed(a={"anyOf": [LEAF, {"type": "object"}]})),
        forms(closed(a={"anyOf": [LEAF, closed()]})),
    ),
    "schema-all-of-reference": (
        forms(closed(a={"allOf": [{"$ref": "#/$defs/Leaf"}]}) | {"$defs": {"Leaf": LEAF}}),
        forms(closed(a={"allOf": [LEAF]}) | {"$defs": {"Leaf": LEAF}}),
    ),
    "schema-recursive": (forms(referring("#/$defs/Move")), forms(referring("#/$defs/Leaf"))),
    "schema-reference-nowhere": (
        forms(referring("#/$defs/Nobody")),
        forms(referring("#/$defs/Leaf")),
    ),
    "schema-reference-outside": (
        forms(referring("https://example.org/leaf.json")),
        forms(referring("#/$defs/Leaf")),
    ),
    "schema-optional-many": (forms(optional(25)), forms(optional(24))),
    "schema-unions-many": (forms(unions(17)), forms(unions(16))),
}


@pytest.mark.parametrize("name", PAIRS)
def test_tools_and_schemas(api: AnthropicApi, name: str) -> None:
    bad, good = PAIRS[name]
    refused = ask(api, bad)
    assert (refused.status, refused.kind) == (400, "invalid_request_error")
    taken = ask(api, good)
    assert taken.status == 200, taken.json
