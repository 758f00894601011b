"""Cron text: five fields (minute, hour, day, month, weekday) as days with times on them.

Each field is `*`, a number, a range `a-b`, any of these with a step `/n`, or a list of them; months
and weekdays have their English names too. Where both days are told, either is enough, as in cron.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, time
from itertools import product

from engine.core.settings import RefusedSetting

_MONTHS = dict(
    zip("jan feb mar apr may jun jul aug sep oct nov dec".split(), range(1, 13), strict=True)
)
_WEEKDAYS = dict(zip("sun mon tue wed thu fri sat".split(), range(7), strict=True))
#: Name, lowest and highest number, and names of the numbers, of each field.
_FIELDS: tuple[tuple[str, int, int, dict[str, int]], ...] = (
    ("minute", 0, 59, {}),
    ("hour", 0, 23, {}),
    ("day", 1, 31, {}),
    ("month", 1, 12, _MONTHS),
    ("weekday", 0, 7, _WEEKDAYS),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cron:
    """A cron text, read; weekdays are those of Python, Monday being 0.

    `either` says that a day may be told by its number or by its weekday.
    """

    text: str
    times: tuple[time, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either: bool

    def falls_on(self, day: date) -> bool:
        if day.month not in self.months:
            return False
        fits = day.day in self.days, day.weekday() in self.weekdays
        return any(fits) if self.either else all(fits)


def read_cron(text: str) -> Cron:
    """Read a cron text, or raise RefusedSetting with what is wrong in it."""
    fields = text.lower().split()
    if len(fields) != len(_FIELDS):
        names = ", ".join(name for name, *_ in _FIELDS)
        raise RefusedSetting(f"The cron text has {len(fields)} fields, and it needs five: {names}.")
    told = (_numbers(field, *about) for field, about in zip(fields, _FIELDS, strict=True))
    minutes, hours, days, months, weekdays = told
    return Cron(
        text=" ".join(fields),
        times=tuple(time(hour, minute) for hour, minute in product(sorted(hours), sorted(minutes))),
        days=days,
        months=months,
        weekdays=frozenset((number - 1) % 7 for number in weekdays),
        either=not (fields[2].startswith("*") or fields[4].startswith("*")),
    )


def _numbers(
    field: str, name: str, lowest: int, highest: int, names: dict[str, int]
) -> frozenset[int]:
    """Return the numbers that a field tells."""
    numbers: set[int] = set()
    for part in field.split(","):
        span, _, step = part.partition("/")
        begin, _, end = span.partition("-")
        if span == "*":
            first, last = lowest, highest
        else:
            first = names.get(begin, _number(begin))
            last = names.get(end, _number(end)) if end else highest if step else first
        every = _number(step) if step else 1
        is_whole = "-" not in span or end != ""
        if not (is_whole and lowest <= first <= last <= highest and every > 0):
            raise RefusedSetting(
                f"The {name} of the cron text is “{part}”: write *, numbers from {lowest} to "
                f"{highest}, ranges like {lowest}-{highest}, or steps like */5."
            )
        numbers.update(range(first, last + 1, every))
    return frozenset(numbers)


def _number(text: str) -> int:
    """Return a number, or -1, which no field takes."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 4 else -1
