"""Permits for calls in flight, served in the order of turns, against a plain `asyncio.Semaphore`.

First what one call costs; then, on the virtual clock, what the order does where 50 turns go on at once
and each makes one call and then twenty more, at most five at a time: how long the first call of a turn
waits for its permit, and how long the turn takes. A turn that ends is followed by the next.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import Protocol

from benchmarks.parts.measuring import Table, Way, compare, duration, percentile, run, times
from engine.backends.clock import VirtualLoop
from engine.core.config import MAX_CALLS_PER_TURN
from engine.turn.permits import Permits

N_SLOTS, N_SLOTS_SMALL = 50, 5
N_SIDE_CALLS = 20
MEDIAN_SECONDS, SIGMA = 0.5, 0.8


class Limiter(Protocol):
    """Something that lets only so many calls be in flight."""

    def hold(self, turn: int) -> AbstractAsyncContextManager[None]: ...


class FirstCome:
    """A semaphore, whichever turn asks."""

    def __init__(self, n_permits: int) -> None:
        self._semaphore = asyncio.Semaphore(n_permits)

    @asynccontextmanager
    async def hold(self, turn: int) -> AsyncIterator[None]:
        async with self._semaphore:
            yield


KINDS: dict[str, Callable[[int], Limiter]] = {"semaphore": FirstCome, "permits": Permits}


def tables(*, small: bool) -> Iterator[Table]:
    n_slots = N_SLOTS_SMALL if small else N_SLOTS
    yield _costs(n_slots, n_rounds=1 if small else 9)
    yield _orders(n_slots, n_turns=50 if small else 2_000)


# --- what a call costs ------------------------------------------------------------------------------


def _costs(n_slots: int, *, n_rounds: int) -> Table:
    rows = []
    for title, n_permits in (("enough permits", 5 * n_slots), ("a fifth of them", n_slots)):
        ways = {name: _calls(kind, n_slots, n_permits) for name, kind in KINDS.items()}
        found = compare(ways, n_rounds=n_rounds)
        n_calls = n_slots * N_SIDE_CALLS
        rows.append(
            (
                title,
                *(duration(one.seconds / n_calls) for one in found.values()),
                times(found["permits"].ratio),
            )
        )
    return Table(
        title=f"A call let through, {n_slots} turns with {N_SIDE_CALLS} calls each",
        columns=("", "semaphore", "permits", "ratio"),
        rows=rows,
    )


def _calls(kind: Callable[[int], Limiter], n_slots: int, n_permits: int) -> Way:
    async def call(limiter: Limiter, turn: int) -> None:
        async with limiter.hold(turn):
            await asyncio.sleep(0)

    async def all_calls() -> None:
        limiter = kind(n_permits)
        turns = range(n_slots)
        await asyncio.gather(*(call(limiter, turn) for _ in range(N_SIDE_CALLS) for turn in turns))

    return lambda: asyncio.run(all_calls())


# --- what the order does ------------------------------------------------------------------------------


@dataclass(slots=True)
class Found:
    """Seconds that first calls waited and that turns took, one value a turn."""

    first_waits: list[float] = field(default_factory=list)
    lengths: list[float] = field(default_factory=list)


def _orders(n_slots: int, *, n_turns: int) -> Table:
    rows = []
    for factor in (4, 2, 1):
        for name, kind in KINDS.items():
            with asyncio.Runner(loop_factory=VirtualLoop) as runner:
                found = runner.run(_turns(kind(factor * n_slots), n_slots, n_turns))
            rows.append(
                (
                    f"{factor * n_slots} permits, {name}",
                    *_percentiles(found.first_waits),
                    *_percentiles(found.lengths),
                )
            )
    return Table(
        title=f"Waits under {n_slots} turns, {n_turns:,} in all (virtual clock)",
        columns=("", "first call waits: median", "p99", "a turn takes: median", "p99"),
        rows=rows,
    )


def _percentiles(values: list[float]) -> tuple[str, str]:
    return f"{percentile(values, 0.5):.2f} s", f"{percentile(values, 0.99):.2f} s"


async def _turns(limiter: Limiter, n_slots: int, n_turns: int) -> Found:
    """Keep all slots busy; the slots begin one after the other, so that they do not go in step."""
    found, numbers = Found(), count()
    loop = asyncio.get_running_loop()

    async def slot(place: int) -> None:
        await asyncio.sleep(place * MEDIAN_SECONDS)
        while (number := next(numbers)) < n_turns:
            began = loop.time()
            await _turn(limiter, number, found.first_waits)
            found.lengths.append(loop.time() - began)

    await asyncio.gather(*(slot(place) for place in range(n_slots)))
    return found


async def _turn(limiter: Limiter, number: int, first_waits: list[float]) -> None:
    luck = Random(number)
    loop = asyncio.get_running_loop()
    asked = loop.time()
    async with limiter.hold(number):
        first_waits.append(loop.time() - asked)
        await asyncio.sleep(_latency(luck))
    own = asyncio.Semaphore(MAX_CALLS_PER_TURN)

    async def side_call(seconds: float) -> None:
        async with own, limiter.hold(number):
            await asyncio.sleep(seconds)

    await asyncio.gather(*(side_call(_latency(luck)) for _ in range(N_SIDE_CALLS)))


def _latency(luck: Random) -> float:
    """Return the seconds of one answer: log-normal, as models answer."""
    return MEDIAN_SECONDS * luck.lognormvariate(0.0, SIGMA)


if __name__ == "__main__":
    run(tables, __doc__)
