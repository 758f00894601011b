"""A forecast as a terminal shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.core.prices import in_usd

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from engine.runs.forecasts import Forecast, Spread


def in_words(simulation: str, told: Forecast) -> Iterator[str]:
    """Yield the lines of a forecast."""
    seen = "what its calls have taken before and " if told.from_history else ""
    yield f"The next run of {simulation}, by {seen}rehearsals in memory; nothing is stored or spent."
    yield f"{'':15}{'low':>14}{'likely':>14}{'high':>14}"
    yield _line("calls", told.calls)
    yield _line("tokens read", told.input_tokens)
    yield _line("tokens written", told.output_tokens)
    if told.cost is not None:
        yield _line("cost", told.cost, shown=in_usd)
        yield "What the service keeps in its cache is counted at the price of that."
    elif told.unpriced is not None:
        yield f"{told.unpriced} has no price: nobody knows what it would cost."
    else:
        yield "It costs nothing: no model is asked."
    if told.until_idle:
        yield "This is until it is first idle; without --until-idle or a limit it goes on."


def _line(name: str, spread: Spread, *, shown: Callable[[int], str] = "{:,}".format) -> str:
    amounts = (spread.low, spread.likely, spread.high)
    return f"{name:15}" + "".join(f"{shown(amount):>14}" for amount in amounts)
