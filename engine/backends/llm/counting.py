"""Counts what a model would be shown and would write, while the offline LLM decides: for forecasts."""

from __future__ import annotations

from dataclasses import astuple, dataclass, field
from typing import TYPE_CHECKING

from engine.core.tokens import likely_tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from engine.ports.llm import Llm, LlmAnswer, LlmRequest

#: What the instructions of a phase and the form of an answer add to what is shown, in tokens.
INSTRUCTION_TOKENS = 600
#: What the form of an answer adds to its text.
FORM_TOKENS = 40


@dataclass(slots=True)
class Counted:
    """Calls and tokens of one kind."""

    n_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


def texts_of(value: object) -> Iterator[str]:
    """Yield every text in a context or a decision, however deep."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from texts_of(part)


def shown(request: LlmRequest) -> Iterable[str]:
    """Return the texts that a model is shown for a request, but for the instructions."""
    return texts_of(astuple(request.context))


@dataclass(slots=True, kw_only=True)
class CountingLlm:
    """An LLM that lets another one answer; `counted` is by phase and tier."""

    inner: Llm
    blocks_of: Callable[[LlmRequest], Iterable[str]] = shown
    counted: dict[tuple[str, str], Counted] = field(default_factory=dict)
    free: bool = True

    def upper_estimate(self, request: LlmRequest) -> int | None:
        return 0

    async def complete(self, request: LlmRequest) -> LlmAnswer:
        answer = await self.inner.complete(request)
        counted = self.counted.setdefault((request.phase, request.tier), Counted())
        counted.n_calls += 1
        counted.input_tokens += INSTRUCTION_TOKENS + likely_tokens(self.blocks_of(request))
        written = likely_tokens(texts_of(astuple(answer.decision)))
        counted.output_tokens += FORM_TOKENS + written
        return answer
