"""What the model would say: a decision for a request, by a function that tests may replace.

The default mind is valid, small and deterministic: it follows the schema that it is given, and the
bytes of the request choose where there is a choice.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.anthropic_api.check_messages import blocks_of
from tests.anthropic_api.models import Model
from tests.anthropic_api.refusal import Json
from tests.anthropic_api.schemas import target

WORDS = "amber birch cedar delta ember fjord grove heron inlet juniper kelp lagoon".split()
OF_FORMAT = {
    "date-time": "2026-01-02T03:04:05Z",
    "time": "03:04:05Z",
    "date": "2026-01-02",
    "duration": "P1D",
    "email": "nobody@example.org",
    "hostname": "example.org",
    "uri": "https://example.org/",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uuid": "00000000-0000-4000-8000-000000000000",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request that passed all checks. `number` counts the server's requests from 1; `raw` are the
    bytes as they came."""

    number: int
    path: str
    key: str
    model: Model
    body: Json
    raw: bytes

    @property
    def schema(self) -> Json | None:
        """The schema of structured output, if any is asked for."""
        form = (self.body.get("output_config") or {}).get("format")
        return form["schema"] if form else None

    @property
    def tools(self) -> dict[str, Json]:
        """The tools offered, by name."""
        return {tool["name"]: tool for tool in self.body.get("tools", [])}

    @property
    def choice(self) -> Json:
        """The choice among tools, `auto` where nothing was said."""
        return self.body.get("tool_choice") or {"type": "auto"}

    @property
    def system(self) -> str:
        """The system prompt as one text."""
        blocks = blocks_of(self.body.get("system", ""), "system")
        return "\n".join(block["text"] for block in blocks)

    @property
    def last(self) -> list[Json]:
        """The blocks of the last message."""
        return blocks_of(self.body["messages"][-1]["content"], "messages")

    @property
    def chance(self) -> Random:
        """Chance that is the same for the same bytes, in every process."""
        return Random(hashlib.blake2b(self.raw, digest_size=8).digest())


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A use of a tool."""

    name: str
    input: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What to answer: texts, then uses of tools.

    `thinking_tokens` None: as the model does by itself. `stop_reason` None: what fits the blocks.
    `category` belongs to a refusal.
    """

    texts: tuple[str, ...] = ()
    calls: tuple[Call, ...] = ()
    thinking_tokens: int | None = None
    stop_reason: str | None = None
    category: str | None = None


Mind = Callable[[Asked], Decision]


def say(*texts: str) -> Mind:
    """Answer with these texts, whatever was asked."""
    return lambda _asked: Decision(texts=texts)


def say_json(value: object) -> Mind:
    """Answer with one text: the value as JSON."""
    return say(json.dumps(value, ensure_ascii=False))


def use(*calls: Call, text: str = "") -> Mind:
    """Use tools, after a word if `text` is given."""
    return lambda _asked: Decision(texts=(text,) if text else (), calls=calls)


def refuse(category: str | None = None) -> Mind:
    """Refuse, with nothing said; it is billed all the same.

    https://platform.claude.com/docs/en/build-with-claude/structured-outputs (invalid outputs)
    """
    return lambda _asked: Decision(stop_reason="refusal", category=category)


def cut_short(mind: Mind) -> Mind:
    """Say the first half of what `mind` would say, as if `max_tokens` had been reached."""

    def half(asked: Asked) -> Decision:
        text = "".join(mind(asked).texts)
        return Decision(texts=(text[: len(text) // 2],), stop_reason="max_tokens")

    return half


def default_mind(asked: Asked) -> Decision:
    """Use a tool where one must be used, else follow the schema, else say a few words."""
    chance = asked.chance
    if asked.choice["type"] in {"any", "tool"}:
        name = asked.choice.get("name") or chance.choice(sorted(asked.tools))
        schema = asked.tools[name]["input_schema"]
        return Decision(calls=(Call(name=name, input=value_of(schema, chance)),))
    if asked.schema is not None:
        value = value_of(asked.schema, chance)
        return Decision(texts=(json.dumps(value, ensure_ascii=False),))
    return Decision(texts=(_words(chance),))


def value_of(schema: Json, chance: Random) -> Any:
    """Return a small value of a checked schema: required properties only, least arrays."""
    return _value(schema, schema, chance)


def _value(schema: Json, root: Json, chance: Random) -> Any:
    if "$ref" in schema:
        return _value(target(root, schema["$ref"], "schema"), root, chance)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return chance.choice(schema["enum"])
    if "anyOf" in schema:
        return _value(chance.choice(schema["anyOf"]), root, chance)
    if "allOf" in schema and "type" not in schema:
        return _value(schema["allOf"][0], root, chance)
    kind = schema.get("type", "object")
    return _typed(chance.choice(kind) if isinstance(kind, list) else kind, schema, root, chance)


def _typed(kind: str, schema: Json, root: Json, chance: Random) -> Any:
    match kind:
        case "object":
            properties = schema.get("properties", {})
            required = schema.get("required", [])
            return {
                name: _value(part, root, chance)
                for name, part in properties.items()
                if name in required
            }
        case "array":
            return [_value(schema["items"], root, chance)] * schema.get("minItems", 0)
        case "string":
            return OF_FORMAT.get(schema.get("format", "")) or _words(chance)
        case "boolean":
            return chance.random() < 0.5
        case "null":
            return None
        case _:
            return chance.randint(1, 9)


def _words(chance: Random) -> str:
    """Return a short text that is hardly ever the same twice."""
    return " ".join([*chance.sample(WORDS, 4), str(chance.randint(1000, 9999))])
