"""A model that costs money, as the real one does: it takes its time, and bills what it used.

It is priced by the table of the product, estimates from the bytes of what it is shown, and writes
a line to a bill, if it has one, when a request arrives and when it is answered: what left is there
also if our process was killed.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass, replace
from typing import TYPE_CHECKING

from engine.core.prices import PriceTable
from engine.core.tokens import n_bytes
from engine.core.usage import Usage
from engine.ports.llm import LlmAnswer
from tests.runtime.scripted_llm import Script, eager

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from engine.ports.clock import Clock
    from engine.ports.llm import LlmRequest

MODEL = "claude-sonnet-4-5"
MAX_OUTPUT_TOKENS = 1_000
BYTES_PER_TOKEN = 3
#: What it may add to a request by itself.
AROUND_TOKENS = 700


def texts_of(value: object) -> Iterator[str]:
    """Yield every text of a context, however deep."""
    match value:
        case str():
            yield value
        case tuple() | list():
            for part in value:
                yield from texts_of(part)


@dataclass(slots=True, kw_only=True)
class PaidLlm:
    """Implements the LLM port at a price; `model` may be one that has none."""

    clock: Clock
    prices: PriceTable
    model: str = MODEL
    script: Script = eager
    seconds: Callable[[LlmRequest], float] = lambda _: 1.0
    bill: Path | None = None
    billed_nano_usd: int = 0
    n_unbilled: int = 0
    free: bool = False

    def upper_estimate(self, request: LlmRequest) -> int | None:
        return self.prices.upper_cost(
            self.model,
            self.clock.now(),
            input_tokens=AROUND_TOKENS + _shown_bytes(request),
            output_tokens=MAX_OUTPUT_TOKENS,
        )

    async def complete(self, request: LlmRequest) -> LlmAnswer:
        self.n_unbilled += 1
        usage = self._usage(request)
        self._note("asked", usage.cost_nano_usd)
        await self.clock.sleep(self.seconds(request))
        decision = self.script(request)
        self.n_unbilled -= 1
        self.billed_nano_usd += usage.cost_nano_usd or 0
        self._note("answered", usage.cost_nano_usd)
        return LlmAnswer(
            decision=decision,
            usage=usage,
            model=self.model,
            prompt_version="paid-1",
            finish_reason="end_turn",
        )

    def _usage(self, request: LlmRequest) -> Usage:
        shown = _shown_bytes(request)
        usage = Usage(input_tokens=shown // BYTES_PER_TOKEN, output_tokens=100)
        cost = self.prices.cost(self.model, usage, self.clock.now())
        return replace(usage, cost_nano_usd=cost)

    def _note(self, word: str, nano_usd: int | None) -> None:
        if self.bill is not None:
            with self.bill.open("ab", buffering=0) as lines:
                lines.write(f"{word} {nano_usd}\n".encode())


def _shown_bytes(request: LlmRequest) -> int:
    return sum(n_bytes(text) for text in texts_of(astuple(request.context)))


def billed(bill: Path) -> int:
    """Return what the other side may have billed: everything that reached it."""
    lines = bill.read_text().splitlines() if bill.exists() else []
    return sum(int(line.split()[1]) for line in lines if line.startswith("asked"))
