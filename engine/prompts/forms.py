"""The forms of answers: a JSON schema for each phase, the same at every call.

Posts, channels and agents are named by the number that they are shown with. The schema allows every
number that could be on offer, because a schema of its own for each call would be compiled anew and
would lose the cache; that a number was on offer is judged when the answer is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.core.config import BANK_SIZE, SCAN_SIZE
from engine.ports.llm import LlmPhase, Move
from engine.prompts.prompt import Tool

if TYPE_CHECKING:
    from collections.abc import Mapping

Schema = dict[str, object]

#: A prompt offers at most this many of a kind: a full bank and what a scan adds to it.
MOST_OFFERED = BANK_SIZE + SCAN_SIZE

#: What an answer may cost: its longest text many times over, since models think first, in tokens of
#: the same allowance.
MAX_TOKENS: Mapping[LlmPhase, int] = {
    LlmPhase.SCAN: 2_000,
    LlmPhase.PRUNE: 2_000,
    LlmPhase.REPLY: 4_000,
    LlmPhase.POST: 4_000,
    LlmPhase.REMEMBER: 3_000,
}


def _object(**properties: Schema) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _word(*words: str) -> Schema:
    return {"type": "string", "enum": list(words)}


_TEXT: Schema = {"type": "string"}
_NUMBER: Schema = {"type": "integer", "enum": list(range(1, MOST_OFFERED + 1))}
_NUMBERS = _object(posts={"type": "array", "items": _NUMBER})
_CHOICES: list[Schema] = [
    _object(kind=_word("answer"), post=_NUMBER, text=_TEXT),
    _object(
        kind=_word("root"),
        channel=_NUMBER,
        partner={"anyOf": [_NUMBER, {"type": "null"}]},
        text=_TEXT,
    ),
    _object(kind=_word("skip"), reason=_TEXT),
]

FORMS: Mapping[LlmPhase, Schema] = {
    LlmPhase.SCAN: _NUMBERS,
    LlmPhase.PRUNE: _NUMBERS,
    LlmPhase.REPLY: _object(thought=_TEXT, move=_word(*Move), text=_TEXT),
    LlmPhase.POST: _object(thought=_TEXT, choice={"anyOf": _CHOICES}),
    LlmPhase.REMEMBER: _object(memory=_TEXT),
}

READ_PROFILE = "read_profile"
SEARCH_MESSAGES = "search_messages"

TOOLS = (
    Tool(
        name=READ_PROFILE,
        description="Returns the public profile of an agent, by its name.",
        schema=_object(name=_TEXT),
    ),
    Tool(
        name=SEARCH_MESSAGES,
        description="Returns the newest messages of this society that hold all the given words.",
        schema=_object(words=_TEXT),
    ),
)
