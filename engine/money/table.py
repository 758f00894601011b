"""The table of prices: those that came with this release, and those that somebody entered.

`prices.csv` has US dollars for a million tokens, the page where each was seen, and when. A row
without prices says that none was found: its model is unpriced until somebody enters one.
"""

from __future__ import annotations

import csv
from datetime import date
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from engine.core.prices import Price, PriceTable, nano_usd
from engine.models import ModelPrice

if TYPE_CHECKING:
    from collections.abc import Mapping

SHIPPED = Path(__file__).with_name("prices.csv")
_KINDS = ("input", "output", "cache_write", "cache_read")


def price_table() -> PriceTable:
    """Return the prices as they are now; an entered one goes before a shipped one of its day."""
    entered = (
        Price(
            model=row.model,
            since=row.since,
            prompt_above=row.prompt_above,
            input=nano_usd(row.input),
            output=nano_usd(row.output),
            cache_write=nano_usd(row.cache_write),
            cache_read=nano_usd(row.cache_read),
        )
        for row in ModelPrice.objects.order_by("pk")
    )
    return PriceTable((*shipped_prices(), *entered))


@cache
def shipped_prices() -> tuple[Price, ...]:
    """Return the prices that came with this release."""
    with SHIPPED.open(encoding="utf-8", newline="") as lines:
        return tuple(_price(row) for row in csv.DictReader(lines) if row["input"])


def _price(row: Mapping[str, str]) -> Price:
    usd = {kind: nano_usd(Decimal(row[kind])) for kind in _KINDS}
    return Price(
        model=row["model"],
        since=date.fromisoformat(row["since"]),
        prompt_above=int(row["prompt_above"]),
        **usd,
    )
