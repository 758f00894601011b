"""What a call costs: a dated table of prices, and sums in whole nano-USD.

A model without a price costs nobody knows what: that is None here, never zero.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, overload

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import date, datetime
    from decimal import Decimal

    from engine.core.usage import Usage

#: One US dollar.
NANO = 1_000_000_000

#: Prices are for so many tokens.
PER_TOKENS = 1_000_000


@overload
def nano_usd(usd: Decimal) -> int: ...
@overload
def nano_usd(usd: None) -> None: ...
def nano_usd(usd: Decimal | None) -> int | None:
    """Return dollars as whole nano-dollars, what is finer cut off; None stays."""
    return None if usd is None else int(usd * NANO)


def in_usd(nano_usd: int) -> str:
    """Return an amount of money in US dollars, to the hundredth of a cent."""
    return f"${nano_usd / NANO:,.4f}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """What a model costs from the day `since` on (UTC), in nano-USD per million tokens.

    It holds for requests whose prompt, cached or not, has more than `prompt_above` tokens, unless
    another price of that day begins higher up.
    """

    model: str
    since: date
    input: int
    output: int
    cache_write: int
    cache_read: int
    prompt_above: int = 0

    def of(self, usage: Usage) -> int:
        """Return the price of these tokens, a broken nano-USD rounded up."""
        total = (
            usage.input_tokens * self.input
            + usage.output_tokens * self.output
            + usage.cache_write_tokens * self.cache_write
            + usage.cache_read_tokens * self.cache_read
        )
        return -(-total // PER_TOKENS)

    def at_most(self, *, input_tokens: int, output_tokens: int) -> int:
        """Return the price if every token read is of the kind that costs most."""
        dearest = max(self.input, self.cache_write, self.cache_read)
        return -(-(input_tokens * dearest + output_tokens * self.output) // PER_TOKENS)


class PriceTable:
    """Prices by model and day; a later one replaces an earlier one of the same model and day."""

    def __init__(self, prices: Iterable[Price]) -> None:
        self._days: dict[str, dict[date, dict[int, Price]]] = defaultdict(dict)
        for price in prices:
            self._days[price.model].setdefault(price.since, {})[price.prompt_above] = price

    def knows(self, model: str, at: datetime) -> bool:
        """Tell whether the model has a price at that time."""
        return bool(self._bands(model, at))

    def cost(self, model: str, usage: Usage, at: datetime) -> int | None:
        """Return what the tokens cost in nano-USD, or None for a model without a price."""
        bands = self._bands(model, at)
        begun = [price for price in bands if usage.prompt_tokens > price.prompt_above]
        return None if not bands else (begun or bands[:1])[-1].of(usage)

    def upper_cost(
        self, model: str, at: datetime, *, input_tokens: int, output_tokens: int
    ) -> int | None:
        """Return the most that a request of at most so many tokens can cost, or None."""
        bands = self._bands(model, at)
        reachable = [price for price in bands if input_tokens > price.prompt_above] or bands[:1]
        prices = (
            price.at_most(input_tokens=input_tokens, output_tokens=output_tokens)
            for price in reachable
        )
        return max(prices, default=None)

    def _bands(self, model: str, at: datetime) -> list[Price]:
        """Return the prices in force, by the length of prompt from which they hold."""
        days = self._days.get(model, {})
        begun = [day for day in days if day <= at.date()]
        if not begun:
            return []
        return [price for _, price in sorted(days[max(begun)].items())]
