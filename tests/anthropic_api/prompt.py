"""A prompt as the parts it is made of: what is counted, hashed and marked.

The order is the API's: tools, system, messages, each resting on all before it; the output format
comes first, because it is put into the prompt too and a changed one loses the cache:
https://platform.claude.com/docs/en/build-with-claude/prompt-caching
https://platform.claude.com/docs/en/build-with-claude/structured-outputs

The stated count: a part has one token for every three bytes of its JSON, rounded up; the JSON is
compact, in UTF-8, in the order of keys as sent, and without the cache mark.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tests.anthropic_api import shapes
from tests.anthropic_api.check_messages import blocks_of
from tests.anthropic_api.refusal import Json, Refusal, invalid

BYTES_PER_TOKEN = 3
MAX_MARKS = 4
SECONDS = {"5m": 300, "1h": 3600}


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One tool or block. `identity`: its bytes and where it stands; `kind`: the block's type;
    `mark_seconds`: how long the prefix that ends here is to be kept, 0 without a mark."""

    identity: bytes
    kind: str
    tokens: int
    mark_seconds: int = 0


def tokens_of(data: bytes) -> int:
    """Return the number of tokens of so many bytes."""
    return -(-len(data) // BYTES_PER_TOKEN)


def compact(value: object) -> bytes:
    """Return JSON as the count sees it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _marks(body: Json) -> Iterator[tuple[str, Json]]:
    """Everything that may carry a mark, with its path, in the order of the prompt."""
    for number, tool in enumerate(body.get("tools", [])):
        yield f"tools.{number}", tool
    if "system" in body:
        for number, block in enumerate(blocks_of(body["system"], "system")):
            yield f"system.{number}", block
    for number, message in enumerate(body["messages"]):
        for at, block in enumerate(blocks_of(message["content"], "messages")):
            yield f"messages.{number}.content.{at}", block


def _seconds(value: object, where: str) -> int:
    """Return how long a mark asks for; null is no mark."""
    if value is None:
        return 0
    mark = shapes.fields(value, where, required=("type",), optional=("ttl",))
    shapes.one_of(mark["type"], f"{where}.type", {"ephemeral"})
    return SECONDS[shapes.one_of(mark.get("ttl", "5m"), f"{where}.ttl", SECONDS)]


def check_marks(body: Json) -> None:
    """Refuse marks of a wrong form, more than four, and a longer one behind a shorter one."""
    lives = []
    for where, block in _marks(body):
        if life := _seconds(block.get("cache_control"), f"{where}.cache_control"):
            lives.append(life)
        content = block.get("content")
        for number, inner in enumerate(content if isinstance(content, list) else ()):
            if inner.get("cache_control") is not None:
                raise invalid(f"{where}.content.{number}", "marks inside results: not rehearsed")
    if automatic := _seconds(body.get("cache_control"), "cache_control"):
        last = list(_marks(body))[-1][1].get("cache_control")
        if last is None:
            lives.append(automatic)
        elif _seconds(last, "cache_control") != automatic:
            raise invalid("cache_control", "the last block has a mark of another life")
    if len(lives) > MAX_MARKS:
        # https://github.com/anthropics/claude-code/issues/8901
        raise Refusal(400, f"{len(lives)} blocks with cache_control; {MAX_MARKS} are allowed")
    if sorted(lives, reverse=True) != lives:
        raise Refusal(400, "marks of an hour must come before those of five minutes")


def _part(block: Json, place: str) -> Part:
    data = compact({name: value for name, value in block.items() if name != "cache_control"})
    return Part(
        identity=place.encode() + b":" + data,
        kind=block.get("type", ""),
        tokens=tokens_of(data),
        mark_seconds=_seconds(block.get("cache_control"), place),
    )


def parts_of(body: Json) -> tuple[Part, ...]:
    """Return the parts of a checked request, marks at their places.

    The choice among tools and the way of thinking are no parts but belong to the place of a
    message: changing them loses the messages from the cache, not tools and system.
    """
    parts = []
    if form := (body.get("output_config") or {}).get("format"):
        parts.append(_part(form, "format"))
    parts += [_part(tool, "tool") for tool in body.get("tools", [])]
    if "system" in body:
        parts += [_part(block, "system") for block in blocks_of(body["system"], "system")]
    how = compact([body.get("tool_choice"), body.get("thinking")]).decode()
    for message in body["messages"]:
        blocks = blocks_of(message["content"], "messages")
        parts += [_part(block, f"{message['role']} {how}") for block in blocks]
    if automatic := _seconds(body.get("cache_control"), "cache_control"):
        parts[-1] = replace(parts[-1], mark_seconds=automatic)
    return tuple(parts)
