"""Money as people set it: prices of models, the money of a day, raised caps."""

from __future__ import annotations

from engine.money.caps import NotRaised, day_cap, raise_caps, set_day_cap
from engine.money.table import price_table, shipped_prices

__all__ = [
    "NotRaised",
    "day_cap",
    "price_table",
    "raise_caps",
    "set_day_cap",
    "shipped_prices",
]
