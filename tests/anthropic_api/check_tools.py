"""Checks of tools, the choice among them, and the form of the output.

Tools: https://platform.claude.com/docs/en/agents-and-tools/tool-use/define-tools
Their names: https://github.com/home-assistant/core/issues/147760
Structured output: https://platform.claude.com/docs/en/build-with-claude/structured-outputs
"""

from __future__ import annotations

import re

from tests.anthropic_api import shapes
from tests.anthropic_api.models import Model
from tests.anthropic_api.refusal import Json, Refusal, invalid
from tests.anthropic_api.schemas import MAX_STRICT_TOOLS, Complexity, check_strict

NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}\Z")
EFFORTS = {"low", "medium", "high", "xhigh", "max"}
CHOICES = {"auto": (), "any": (), "tool": ("name",), "none": ()}


def check_output(body: Json, model: Model, complexity: Complexity) -> None:
    """Check `output_config`: an effort, a schema, both or neither."""
    if "output_config" not in body:
        return
    config = shapes.fields(
        body["output_config"], "output_config", required=(), optional=("effort", "format")
    )
    if config.get("effort") is not None:
        shapes.one_of(config["effort"], "output_config.effort", EFFORTS)
        if not model.takes_effort:
            raise invalid("output_config.effort", f"{model.id} does not take it")
    if config.get("format") is not None:
        where = "output_config.format"
        form = shapes.fields(config["format"], where, required=("type", "schema"))
        shapes.one_of(form["type"], f"{where}.type", {"json_schema"})
        check_strict(form["schema"], f"{where}.schema", complexity)


def check_tools(body: Json, model: Model, complexity: Complexity) -> None:
    """Check the tools one by one, their number, and `tool_choice`."""
    names: list[str] = []
    n_strict = 0
    for number, value in enumerate(shapes.items(body.get("tools", []), "tools")):
        tool = _checked_tool(value, f"tools.{number}", complexity)
        names.append(tool["name"])
        n_strict += tool.get("strict", False)
    if len(set(names)) < len(names):
        # https://github.com/microsoft/vscode/issues/278073
        raise invalid("tools", "names must be unique")
    if n_strict > MAX_STRICT_TOOLS:
        raise invalid("tools", f"{n_strict} strict tools; {MAX_STRICT_TOOLS} are allowed")
    if "tool_choice" in body:
        _check_choice(body["tool_choice"], names, model)


def _checked_tool(value: object, where: str, complexity: Complexity) -> Json:
    if isinstance(value, dict) and value.get("type", "custom") != "custom":
        raise invalid(f"{where}.type", "tools of the server are not rehearsed")
    tool = shapes.fields(
        value,
        where,
        required=("name", "input_schema"),
        optional=("type", "description", "strict", "cache_control"),
    )
    if not NAME.match(shapes.text(tool["name"], f"{where}.name")):
        raise invalid(f"{where}.name", "letters, digits, _ and - only, at most 128")
    shapes.text(tool.get("description", ""), f"{where}.description")
    place = f"{where}.input_schema"
    schema = tool["input_schema"]
    if not isinstance(schema, dict) or schema.get("type") != "object":
        raise invalid(f"{place}.type", "must be object")
    if shapes.flag(tool.get("strict", False), f"{where}.strict"):
        check_strict(schema, place, complexity)
    return tool


def _check_choice(value: object, names: list[str], model: Model) -> None:
    """Forcing a tool is refused by the newest large models:
    https://platform.claude.com/docs/en/models/opus-5-5/whats-new-opus-5-5"""
    if not names:
        raise Refusal(400, "tool_choice needs tools")
    kind = value.get("type") if isinstance(value, dict) else None
    kind = shapes.one_of(kind, "tool_choice.type", CHOICES)
    optional = () if kind == "none" else ("disable_parallel_tool_use",)
    choice = shapes.fields(
        value, "tool_choice", required=("type", *CHOICES[kind]), optional=optional
    )
    shapes.flag(choice.get("disable_parallel_tool_use", False), "tool_choice")
    if kind == "tool" and choice["name"] not in names:
        raise invalid("tool_choice.name", f"there is no tool {choice['name']}")
    if kind in {"any", "tool"} and not model.forces_tools:
        raise invalid("tool_choice.type", f"{model.id} cannot be forced to use a tool")
