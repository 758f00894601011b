"""A prompt as a value: what stays the same from call to call comes first."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


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

    def blocks(self) -> Iterator[tuple[str, bool]]:
        """Yield the texts of a request in the order in which a cache looks at them, the form of the
        answer and the tools first; and whether a mark stands after each."""
        yield json.dumps([self.schema, [asdict(tool) for tool in self.tools]]), False
        for text in (self.rules, self.agent, self.memory):
            if text:
                yield text, True
        for number, text in enumerate(self.talk, start=1):
            yield text, number == len(self.talk)
        yield self.now, False

    def texts(self) -> Iterator[str]:
        """Yield all that a model is shown."""
        return (text for text, _ in self.blocks())
