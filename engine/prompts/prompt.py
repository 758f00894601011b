"""A prompt as a value: what stays the same from call to call comes first."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

#: What a service adds to a request by itself: how it explains the form and the tools to the model.
_OVERHEAD_TOKENS = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """Something that the model may look up: `schema` is the JSON schema of what it asks with."""

    name: str
    description: str
    schema: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """One request, in its order; a mark for caching stands after each of the first four parts.

    `rules` are the same for all calls of a phase in a simulation, `agent` for all calls of an agent
    until its texts change, `memory` until it remembers anew; `talk` grows at its end with a thread:
    each message is a block of its own, since a cache is looked up where blocks end. Memory and talk
    may be empty. `now` is what changes
    from call to call. `schema` is that of the answer: one for each phase, byte for
    byte, since another one would cost the cache.
    """

    rules: str
    agent: str
    memory: str
    talk: tuple[str, ...]
    now: str
    schema: Mapping[str, object]
    max_tokens: int
    tools: tuple[Tool, ...] = ()


def upper_tokens(prompt: Prompt) -> int:
    """Return the most input tokens of a prompt: one for each byte, and what the service adds."""
    texts = [prompt.rules, prompt.agent, prompt.memory, *prompt.talk, prompt.now]
    texts.append(json.dumps(prompt.schema))
    for tool in prompt.tools:
        texts += [tool.name, tool.description, json.dumps(tool.schema)]
    return _OVERHEAD_TOKENS + sum(len(text.encode()) for text in texts)
