"""Checks of the system prompt and the messages: roles, blocks, and the ids of tools.

Messages: https://platform.claude.com/docs/en/api/messages/create
Roles: the first is the user's; turns of one role in a row are allowed, and are read as one turn.
Tools: https://platform.claude.com/docs/en/agents-and-tools/tool-use/handle-tool-calls, where the
results come first in the very next message, one for each use. Stricter here: the next message as it
was sent, not the turn that it is joined to, holds them all; tools must still be offered then; and
the system prompt is not blank either.
"""

from __future__ import annotations

import hashlib
import re

from tests.anthropic_api import shapes
from tests.anthropic_api.models import Model
from tests.anthropic_api.refusal import Json, Refusal, invalid

MAX_MESSAGES = 100_000
TOOL_ID = re.compile(r"[a-zA-Z0-9_-]+\Z")
#: Fields of a block, needed and allowed, and whose it may be.
BLOCKS: dict[str, tuple[set[str], set[str], set[str]]] = {
    "text": ({"text"}, {"cache_control", "citations"}, {"user", "assistant"}),
    "tool_use": ({"id", "name", "input"}, {"cache_control"}, {"assistant"}),
    "tool_result": ({"tool_use_id"}, {"content", "is_error", "cache_control"}, {"user"}),
    "thinking": ({"thinking", "signature"}, set(), {"assistant"}),
}


def signature(thinking: str) -> str:
    """Return what goes with a block of thinking, and must come back with it unchanged.

    https://platform.claude.com/docs/en/build-with-claude/thinking
    """
    return hashlib.blake2b(thinking.encode(), digest_size=24, key=b"rehearsal").hexdigest()


def blocks_of(content: object, where: str) -> list[Json]:
    """Return content as its blocks: a string stands for one block of text."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    blocks = shapes.items(content, where)
    if not blocks:
        raise invalid(where, "content must not be empty")
    return blocks


def check_system(body: Json) -> None:
    """Check the system prompt: a text or blocks of text."""
    if "system" not in body:
        return
    for number, block in enumerate(blocks_of(body["system"], "system")):
        _check_text(block, f"system.{number}")


def check_messages(body: Json, model: Model) -> None:
    """Check all messages, then how they follow each other."""
    messages = shapes.items(body["messages"], "messages")
    if not messages:
        raise invalid("messages", "at least one is needed")
    if len(messages) > MAX_MESSAGES:
        raise invalid("messages", f"{len(messages)} messages; {MAX_MESSAGES} are allowed")
    for number, value in enumerate(messages):
        where = f"messages.{number}"
        message = shapes.fields(value, where, required=("role", "content"))
        shapes.one_of(message["role"], f"{where}.role", {"user", "assistant"})
        for at, block in enumerate(blocks_of(message["content"], f"{where}.content")):
            _check_block(block, f"{where}.content.{at}", message["role"])
    if messages[0]["role"] != "user":
        raise invalid("messages.0.role", "the first message must be the user's")
    _check_tool_ids(messages, has_tools=bool(body.get("tools")))
    if messages[-1]["role"] == "assistant":
        _check_continued(messages[-1], body, model)


def _check_block(value: object, where: str, role: str) -> None:
    kind = value.get("type") if isinstance(value, dict) else None
    kind = shapes.one_of(kind, f"{where}.type", BLOCKS)
    required, optional, roles = BLOCKS[kind]
    if role not in roles:
        raise invalid(where, f"a block of {kind} cannot be the {role}'s")
    block = shapes.fields(value, where, required=("type", *required), optional=optional)
    match kind:
        case "text":
            _check_text(block, where, citations=role == "assistant")
        case "tool_use":
            _check_use(block, where)
        case "tool_result":
            _check_result(block, where)
        case _:
            if block["signature"] != signature(shapes.text(block["thinking"], where)):
                raise invalid(f"{where}.signature", "the thinking is not as it was sent")


def _check_text(value: object, where: str, *, citations: bool = False) -> None:
    """Citations in a user's text are refused since version 2026-10-21:
    https://codersera.com/blog/anthropic-api-2026-10-21-sdk-migration-guide-2026/"""
    optional = ("cache_control", "citations")
    block = shapes.fields(value, where, required=("type", "text"), optional=optional)
    shapes.one_of(block["type"], f"{where}.type", {"text"})
    shapes.text_with_content(block["text"], f"{where}.text")
    if block.get("citations") and not citations:
        raise invalid(f"{where}.citations", "not allowed here")


def _check_use(block: Json, where: str) -> None:
    if not TOOL_ID.match(shapes.text(block["id"], f"{where}.id")):
        raise invalid(f"{where}.id", "letters, digits, _ and - only")
    shapes.text_with_content(block["name"], f"{where}.name")
    if not isinstance(block["input"], dict):
        raise invalid(f"{where}.input", "an object is needed")


def _check_result(block: Json, where: str) -> None:
    shapes.text(block["tool_use_id"], f"{where}.tool_use_id")
    is_error = shapes.flag(block.get("is_error", False), f"{where}.is_error")
    content = block.get("content", "")
    if is_error and not content:
        raise invalid(f"{where}.content", "must not be empty when is_error is true")
    if not isinstance(content, str):
        for number, part in enumerate(shapes.items(content, f"{where}.content")):
            _check_text(part, f"{where}.content.{number}")


def _check_tool_ids(messages: list[Json], *, has_tools: bool) -> None:
    """https://github.com/anthropics/claude-code/issues/5989, and the other way round
    https://github.com/decocms/studio/issues/1803"""
    owed: list[str] = []
    seen: set[str] = set()
    for number, message in enumerate(messages):
        where = f"messages.{number}"
        blocks = blocks_of(message["content"], where)
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        _check_answered(owed, results, where)
        if any(block["type"] != "tool_result" for block in blocks[: len(results)]):
            raise invalid(where, "results of tools come first")
        owed = [block["id"] for block in blocks if block["type"] == "tool_use"]
        if seen & set(owed) or len(set(owed)) < len(owed):
            raise invalid(where, "ids of tool_use must be unique")
        seen |= set(owed)
        if (owed or results) and not has_tools:
            raise invalid("tools", "are needed where messages use them")
    if owed:
        raise invalid(f"messages.{len(messages) - 1}", f"no tool_result for {', '.join(owed)}")


def _check_answered(owed: list[str], results: list[str], where: str) -> None:
    if missing := [use for use in owed if use not in results]:
        raise invalid(where, f"no tool_result for {', '.join(missing)} of the message before")
    if extra := [result for result in results if result not in owed]:
        raise invalid(where, f"no tool_use {', '.join(extra)} in the message before")
    if len(results) > len(owed):
        raise invalid(where, "one tool_result for each tool_use")


def _check_continued(message: Json, body: Json, model: Model) -> None:
    """A begun answer: https://platform.claude.com/docs/en/api/errors#prefill-not-supported, and
    never together with structured output."""
    if not model.continues:
        raise Refusal(400, f"{model.id} cannot continue an answer: end with a user's message")
    if (body.get("output_config") or {}).get("format"):
        raise Refusal(400, "an answer cannot be begun where output_config.format is given")
    last = blocks_of(message["content"], "messages")[-1]
    if last["type"] == "text" and last["text"] != last["text"].rstrip():
        raise Refusal(400, "the last message must not end with white space")
