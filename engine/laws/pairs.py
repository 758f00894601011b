"""Laws on what may be open at once: pairs, seats, a pair's rest, debts at the end."""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta
from heapq import heappop, heappush
from itertools import pairwise
from typing import TYPE_CHECKING

from engine.laws.law import Breach, Law

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.laws.export import Cycle, Export

NEVER = 1 << 62
RESTLESS_CLOSES = 3


def _openings(export: Export) -> list[Cycle]:
    """Return the cycles that an agent has opened, in the order of their opening."""
    opened = [cycle for cycle in export.cycles if cycle.row.opened_seq is not None]
    return sorted(opened, key=lambda cycle: cycle.row.opened_seq or 0)


def _by_pair(export: Export) -> list[list[Cycle]]:
    """Return the cycles of each pair of agents in the order of their opening."""
    pairs: dict[frozenset[str], list[Cycle]] = defaultdict(list)
    for cycle in _openings(export):
        if cycle.row.partner is not None:
            pairs[frozenset(cycle.sides)].append(cycle)
    return list(pairs.values())


def _end(cycle: Cycle) -> int:
    return NEVER if cycle.row.closed_seq is None else cycle.row.closed_seq


def one_per_pair(export: Export) -> Iterator[Breach]:
    for cycles in _by_pair(export):
        for before, cycle in pairwise(cycles):
            if _end(before) > (cycle.row.opened_seq or 0):
                yield Breach(cycle.where, f"its pair still had {before.where} open.")


def seats(export: Export) -> Iterator[Breach]:
    ends: dict[str, list[int]] = defaultdict(list)
    for cycle in _openings(export):
        run = export.opening_run(cycle)
        for side in cycle.sides:
            held = ends[side]
            while held and held[0] <= (cycle.row.opened_seq or 0):
                heappop(held)
            heappush(held, _end(cycle))
            if run is not None and len(held) > run.configuration.active_thread_threshold:
                yield Breach(
                    cycle.where,
                    f"with it {side} has {len(held)} threads open "
                    f"and only {run.configuration.active_thread_threshold} seats.",
                )


def pair_rest(export: Export) -> Iterator[Breach]:
    for cycles in _by_pair(export):
        n_fruitless = 0
        for before, cycle in pairwise(cycles):
            n_fruitless = 0 if before.row.outcome == "proposal" else n_fruitless + 1
            if cycle.row.cycle > 1 or before.row.closed_seq is None:
                continue
            if cycle.row.root_seq <= before.row.closed_seq:
                yield Breach(
                    cycle.where, f"its root is not newer than the close of {before.where}."
                )
            elif (owed := _rest_owed(export, before, cycle, n_fruitless)) > timedelta():
                yield Breach(
                    cycle.where,
                    f"its pair had {owed.total_seconds():g} s to rest after {before.where}.",
                )


def _rest_owed(export: Export, before: Cycle, cycle: Cycle, n_fruitless: int) -> timedelta:
    """Return how much of a pair's rest was left; times of two runs are not compared."""
    run = export.opening_run(cycle)
    closed_at, opened_at = before.row.closed_at, cycle.row.opened_at
    if run is None or run is not export.opening_run(before) or not (closed_at and opened_at):
        return timedelta()
    factor = 2 if n_fruitless >= RESTLESS_CLOSES else 1
    rest = timedelta(seconds=factor * run.configuration.pair_rest_seconds)
    return rest - (opened_at - closed_at)


def no_debts(export: Export) -> Iterator[Breach]:
    if not export.runs:
        return
    last = max(export.runs, key=lambda run: run.run)
    if last.end_reason != "idle" or any((row.run or 0) > last.run for row in export.messages):
        return
    for cycle in export.cycles:
        if cycle.row.state == "closed":
            continue
        debtors = _debtors(export, cycle, last.run)
        if debtors and all(export.agent_by_slug[slug].status == "active" for slug in debtors):
            yield Breach(cycle.where, f"the run ended idle and {debtors[0]} owes an answer here.")


def _debtors(export: Export, cycle: Cycle, run: int) -> tuple[str, ...]:
    """Return who owes an answer in an open cycle, as far as messages up to `run` show it."""
    spoken = cycle.by_agents
    if cycle.row.partner is not None:
        return tuple(side for side in cycle.sides if not spoken or side != spoken[-1].author)
    if not cycle.messages or cycle.messages[-1].author is not None:
        return ()
    last = cycle.messages[-1]
    mentioned = export.mentioned(last.text)
    return tuple(
        side for side in cycle.sides if last.run == run and (not mentioned or side in mentioned)
    )


FILE = "threads.jsonl"
PAIR_LAWS = (
    Law(
        name="one-thread-per-pair",
        file=FILE,
        says="two agents have at most one open thread with each other",
        check=one_per_pair,
    ),
    Law(
        name="seats",
        file=FILE,
        says="no agent is in more open threads than active_thread_threshold, on either side",
        check=seats,
    ),
    Law(
        name="pair-rest",
        file=FILE,
        says="a pair opens its next thread after pair_rest_seconds, twice that after three "
        "closes without a proposal, and on a root newer than the close",
        check=pair_rest,
    ),
    Law(
        name="no-debts",
        file=FILE,
        says="after a run that ended idle no active agent owes an answer in an open thread",
        check=no_debts,
    ),
)
