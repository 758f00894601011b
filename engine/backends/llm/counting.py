"""Counts what a model would be shown and would write, while the offline LLM decides: for forecasts."""

from __future__ import annotations

from dataclasses import astuple, dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from engine.core.tokens import likely_tokens
from engine.core.usage import Usage
from engine.prompts import render

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from engine.ports.clock import Clock
    from engine.ports.llm import Llm, LlmAnswer, LlmRequest

    #: The texts of a prompt in their order, and whether a mark stands after each.
    Blocks = Sequence[tuple[str, bool]]

#: What the form of an answer adds to its text.
FORM_TOKENS = 40
#: A cache keeps no prefix shorter than this, in tokens,
LEAST_CACHED_TOKENS = 1_024
#: and none for longer after its last use.
KEPT = timedelta(minutes=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """One call: `usage` has no cost, which is for whoever knows the prices."""

    phase: str
    model: str
    usage: Usage


@dataclass(slots=True)
class PrefixCache:
    """What a service still has of the prompts before, by the stated rules of its cache: an entry
    where a mark stands, for as long as it is used."""

    _used_at: dict[tuple[str, ...], datetime] = field(default_factory=dict)

    def read(self, model: str, blocks: Blocks, now: datetime) -> int:
        """Return how many tokens of a prompt the cache has at this moment."""
        kept = 0
        for prefix, n_tokens, _ in _prefixes(model, blocks):
            used_at = self._used_at.get(prefix)
            if used_at is not None and now - used_at < KEPT:
                self._used_at[prefix] = now
                kept = n_tokens
        return kept

    def write(self, model: str, blocks: Blocks, began_at: datetime) -> int:
        """Keep a prompt up to each of its marks; return the tokens up to the last one."""
        kept = 0
        for prefix, n_tokens, is_marked in _prefixes(model, blocks):
            if is_marked and n_tokens >= LEAST_CACHED_TOKENS:
                self._used_at[prefix] = began_at
                kept = n_tokens
        return kept


@dataclass(slots=True, kw_only=True)
class CountingLlm:
    """An LLM that lets another one answer, and counts as a service would: cached input apart."""

    inner: Llm
    clock: Clock
    cache: PrefixCache = field(default_factory=PrefixCache)
    counted: list[Counted] = field(default_factory=list)
    free: bool = True

    def upper_estimate(self, request: LlmRequest) -> int | None:
        return 0

    async def complete(self, request: LlmRequest) -> LlmAnswer:
        began_at, blocks = self.clock.now(), tuple(render(request.context).blocks())
        n_read = self.cache.read(request.model, blocks, began_at)
        answer = await self.inner.complete(request)
        n_kept = max(n_read, self.cache.write(request.model, blocks, began_at))
        written = likely_tokens(texts_of(astuple(answer.decision)))
        usage = Usage(
            input_tokens=likely_tokens(text for text, _ in blocks) - n_kept,
            output_tokens=FORM_TOKENS + written,
            cache_read_tokens=n_read,
            cache_write_tokens=n_kept - n_read,
        )
        self.counted.append(Counted(phase=request.phase, model=request.model, usage=usage))
        return answer


def texts_of(value: object) -> Iterator[str]:
    """Yield every text in a decision, however deep."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from texts_of(part)


def _prefixes(model: str, blocks: Blocks) -> Iterator[tuple[tuple[str, ...], int, bool]]:
    """Yield what a prompt begins with, up to the end of each block, how many tokens that is, and
    whether a mark is there."""
    before: tuple[str, ...] = (model,)
    n_tokens = 0
    for text, is_marked in blocks:
        before = (*before, text)
        n_tokens += likely_tokens([text])
        yield before, n_tokens, is_marked
