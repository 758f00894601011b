"""How a benchmark measures, and how it tells what it found.

A benchmark is `python -m benchmarks.NAME [--small]`. It gives tables, in Markdown, under a line
about the machine. Speeds of two ways are only compared within one run: each round times every way
once, and a ratio is taken round by round, so that a machine that slows down slows down both.
"""

from __future__ import annotations

import argparse
import gc
import os
import platform
import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import ceil
from statistics import median
from typing import Protocol

Way = Callable[[], object]


class Benchmark(Protocol):
    """Measures. The small form takes a second or two, and its figures mean nothing."""

    def __call__(self, *, small: bool) -> Iterable[Table]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """One way's median seconds, and the median of its ratios to the baseline of the same round."""

    seconds: float
    ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table of figures; all but the first column are set right."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    def __str__(self) -> str:
        rule = ["---", *("--:" for _ in self.columns[1:])]
        lines = [f"| {' | '.join(cells)} |" for cells in (self.columns, rule, *self.rows)]
        return "\n".join([f"### {self.title}", "", *lines, ""])


def run(tables: Benchmark, about: str | None) -> None:
    """Read the command line, then print the machine, and each table as soon as it is there."""
    parser = argparse.ArgumentParser(description=(about or "").partition("\n")[0])
    parser.add_argument("--small", action="store_true", help="a quick form, to see that it works")
    small = parser.parse_args().small
    print(f"{machine()}\n", flush=True)
    for table in tables(small=small):
        print(table, flush=True)


def machine() -> str:
    """Return one line on what the figures were taken on: cores, load, versions, date."""
    parts = (
        f"{len(os.sched_getaffinity(0))} cores ({platform.machine()})",
        f"load {os.getloadavg()[0]:.1f} at the start",
        f"{platform.python_implementation()} {platform.python_version()}",
        f"SQLite {sqlite3.sqlite_version}",
        f"{datetime.now(UTC):%Y-%m-%d}",
    )
    return ", ".join(parts)


def compare(
    ways: Mapping[str, Way],
    *,
    n_rounds: int,
    round_seconds: float = 0.0,
    before: Way | None = None,
) -> dict[str, Timing]:
    """Time one call of each way against the first, which is the baseline, in `n_rounds` rounds.

    In a round a way is called as often as fills `round_seconds`, at least once; every second round
    goes backwards. What is measured to find that number is not counted. With `before`, which is
    called to set the scene and is not counted either, a way is called once a round.
    """
    n_calls = {
        name: 1 if before else ceil(round_seconds / seconds_of(way)) or 1
        for name, way in ways.items()
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(n_rounds):
        order = list(ways) if number % 2 else list(ways)[::-1]
        for name in order:
            if before is not None:
                before()
            seconds[name].append(seconds_of(ways[name], n_calls=n_calls[name]))
    baseline = next(iter(seconds.values()))
    return {
        name: Timing(
            seconds=median(found),
            ratio=median(one / base for one, base in zip(found, baseline, strict=True)),
        )
        for name, found in seconds.items()
    }


def seconds_of(way: Way, *, n_calls: int = 1) -> float:
    """Return the seconds of one call of many; garbage is collected before, and not meanwhile."""
    gc.collect()
    gc.disable()
    try:
        began = time.perf_counter()
        for _ in range(n_calls):
            way()
        return (time.perf_counter() - began) / n_calls
    finally:
        gc.enable()


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least this share (0 to 1) of all do not exceed."""
    ranked = sorted(values)
    return ranked[max(ceil(share * len(ranked)), 1) - 1]


def duration(seconds: float) -> str:
    """Return a time in the unit that suits it, with three figures."""
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * factor >= 1:
            return f"{_three(seconds * factor)} {unit}"
    return f"{_three(seconds * 1e9)} ns"


def times(ratio: float) -> str:
    """Return a ratio as `2.5 ×`."""
    return f"{_three(ratio)} ×"


def _three(value: float) -> str:
    digits = 0 if value >= 100 else 1 if value >= 10 else 2
    return f"{value:,.{digits}f}"
