"""What it costs to select an agent and to put it back, from 10 to 100,000 agents.

The scheduler keeps a heap by longest wait. It is the baseline for two simpler ways: making a heap of
all eligible agents anew for each turn, and drawing one of them at random, by how long each has
waited. They are generous to those ways, which only keep a list of the eligible: no timers, nobody
parked, nobody who leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from heapq import heapify, heappop
from itertools import count
from random import Random

from benchmarks.parts.measuring import Table, Way, compare, duration, run, times
from engine.core.scheduler import Place, Scheduler

SIZES, SIZES_SMALL = (10, 100, 1_000, 10_000, 100_000), (10, 100)
START = datetime(2026, 3, 2, tzinfo=UTC)
TURN = timedelta(milliseconds=1)
#: Of so many agents one is eligible where most are parked.
PARKED_SHARE = 10


def tables(*, small: bool) -> Iterator[Table]:
    scenes: dict[str, tuple[Callable[[int], Way], int]] = {
        "everybody always has work": (all_at_work, 1),
        "nine of ten are parked, and one wakes each turn": (parked_wake, PARKED_SHARE),
        "everybody cools down, and timers bring them back": (all_cool_down, 1),
    }
    for title, (ours, share) in scenes.items():
        yield Table(
            title=f"A turn selected and put back: {title}",
            columns=("agents", "ours", "a heap each turn", "ratio", "a weighted draw", "ratio"),
            rows=[
                _row(size, ours(size), max(size // share, 1), small=small)
                for size in (SIZES_SMALL if small else SIZES)
            ],
        )


def _row(size: int, ours: Way, n_eligible: int, *, small: bool) -> tuple[str, ...]:
    found = compare(
        {
            "ours": ours,
            "heap": heap_each_turn(n_eligible),
            "draw": weighted_draw(n_eligible),
        },
        n_rounds=1 if small else 7,
        round_seconds=0.0 if small else 0.05,
    )
    heap, draw = found["heap"], found["draw"]
    return (
        f"{size:,}",
        duration(found["ours"].seconds),
        *(duration(heap.seconds), times(heap.ratio)),
        *(duration(draw.seconds), times(draw.ratio)),
    )


# --- ours -------------------------------------------------------------------------------------------


def all_at_work(size: int) -> Way:
    """Whoever is selected has work again at once."""
    scheduler, nows = _scheduler(size), _times()
    for agent in range(size):
        scheduler.make_ready(agent, START)

    def turn() -> None:
        now = next(nows)
        agent = _selected(scheduler, now)
        scheduler.rest(agent, Place.PARKED, None)
        scheduler.make_ready(agent, now)

    return turn


def parked_wake(size: int) -> Way:
    """Whoever is selected is parked, and somebody who is parked wakes."""
    scheduler, nows, luck = _scheduler(size), _times(), Random(1)
    for agent in luck.sample(range(size), max(size // PARKED_SHARE, 1)):
        scheduler.make_ready(agent, START)
    parked = list(scheduler.agents(Place.PARKED))

    def turn() -> None:
        now = next(nows)
        agent = _selected(scheduler, now)
        scheduler.rest(agent, Place.PARKED, None)
        place = luck.randrange(len(parked))
        woken, parked[place] = parked[place], agent
        scheduler.make_ready(woken, now)

    return turn


def all_cool_down(size: int) -> Way:
    """Whoever is selected cools down for half as many turns as there are agents."""
    scheduler, nows = _scheduler(size), _times()
    for agent in range(size):
        scheduler.make_ready(agent, START)

    def turn() -> None:
        now = next(nows)
        agent = _selected(scheduler, now)
        scheduler.rest(agent, Place.COOLING, now + TURN * (size // 2))
        for woken in scheduler.fired(now):
            scheduler.make_ready(woken, now)

    return turn


def _scheduler(size: int) -> Scheduler:
    scheduler = Scheduler()
    for agent in range(size):
        scheduler.add(agent, 0)
    return scheduler


def _selected(scheduler: Scheduler, now: datetime) -> int:
    grant = scheduler.grant(now)
    assert grant is not None
    return grant.agent


def _times() -> Iterator[datetime]:
    return (START + TURN * number for number in count(1))


# --- the other ways ---------------------------------------------------------------------------------


def heap_each_turn(n_eligible: int) -> Way:
    last_selected = [0] * n_eligible
    numbers = count(1)

    def turn() -> None:
        heap = [(number, agent) for agent, number in enumerate(last_selected)]
        heapify(heap)
        _, agent = heappop(heap)
        last_selected[agent] = next(numbers)

    return turn


def weighted_draw(n_eligible: int) -> Way:
    eligible_since = [0.0] * n_eligible
    agents = range(n_eligible)
    luck, numbers = Random(1), count(1)

    def turn() -> None:
        now = float(next(numbers))
        weights = [now - since for since in eligible_since]
        (agent,) = luck.choices(agents, weights)
        eligible_since[agent] = now

    return turn


if __name__ == "__main__":
    run(tables, __doc__)
