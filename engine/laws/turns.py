"""Laws on turns: numbers, slots, cooldowns, waits, and who was chosen."""

from __future__ import annotations

from datetime import datetime, timedelta
from heapq import heappop, heappush
from itertools import pairwise
from typing import TYPE_CHECKING

from engine.export.schema import LIVE_STATUSES, RunRow, TurnRow
from engine.laws.law import Breach, Law

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from engine.laws.export import Export

TOLERANCE = timedelta(milliseconds=1)
WAIT_TOLERANCE_SECONDS = 1e-3


def _runs_with_turns(export: Export) -> Iterator[tuple[RunRow, Sequence[TurnRow]]]:
    for run, turns in export.turns_of_run.items():
        yield export.run_by_id[run], turns


def turn_numbers(export: Export) -> Iterator[Breach]:
    """Check that no number is left out, but for turns that died before they stored anything."""
    turns = sorted(export.turns, key=lambda turn: turn.number)
    for before, turn in pairwise(turns):
        if turn.number != before.number + 1 and not any(
            _may_lose_turns(export, run) for run in (before.run, turn.run)
        ):
            yield Breach(f"turn {turn.number}", f"it follows turn {before.number}.")
        if turn.run < before.run:
            yield Breach(f"turn {turn.number}", f"run {before.run} had gone on before it.")


def _may_lose_turns(export: Export, run: int) -> bool:
    row = export.run_by_id[run]
    return row.status in LIVE_STATUSES | {"failed", "interrupted"} or row.takeovers > 0


def turn_times(export: Export) -> Iterator[Breach]:
    for run, turns in _runs_with_turns(export):
        for turn in turns:
            where = f"turn {turn.number}"
            if turn.outcome == "running" and run.status not in LIVE_STATUSES:
                yield Breach(where, f"it is running and its run is {run.status}.")
            if turn.finished_at is None and turn.outcome not in {"running", "interrupted"}:
                yield Breach(where, f"it has the outcome {turn.outcome} and no end.")
            elif turn.finished_at is not None and turn.finished_at < turn.selected_at:
                yield Breach(where, "it finished before it was selected.")
            if turn.waited_seconds < 0:
                yield Breach(where, "it waited less than no time.")


def selection_order(export: Export) -> Iterator[Breach]:
    for _, turns in _runs_with_turns(export):
        for before, turn in pairwise(turns):
            if turn.selected_at < before.selected_at:
                yield Breach(f"turn {turn.number}", f"it was selected before turn {before.number}.")


def one_turn_at_once(export: Export) -> Iterator[Breach]:
    for _, before, turn in _successive(export):
        if before.finished_at is not None and turn.selected_at < before.finished_at:
            yield Breach(f"turn {turn.number}", f"{turn.agent} was still in turn {before.number}.")


def cooldown(export: Export) -> Iterator[Breach]:
    for run, before, turn in _successive(export):
        rest = timedelta(seconds=run.configuration.turn_delay_seconds)
        if before.finished_at is not None and turn.selected_at - before.finished_at < rest:
            yield Breach(
                f"turn {turn.number}",
                f"{turn.agent} rested less than {rest.total_seconds():g} s "
                f"after turn {before.number}.",
            )


def _successive(export: Export) -> Iterator[tuple[RunRow, TurnRow, TurnRow]]:
    """Yield each turn with the agent's turn before it in the same run."""
    for run, turns in _runs_with_turns(export):
        last: dict[str, TurnRow] = {}
        for turn in turns:
            if turn.agent in last:
                yield run, last[turn.agent], turn
            last[turn.agent] = turn


def slots(export: Export) -> Iterator[Breach]:
    for run, turns in _runs_with_turns(export):
        ends: list[datetime] = []
        for turn in sorted(turns, key=lambda turn: turn.selected_at):
            while ends and ends[0] <= turn.selected_at:
                heappop(ends)
            if turn.finished_at is not None:
                heappush(ends, turn.finished_at)
            if len(ends) > run.configuration.concurrent_turns:
                yield Breach(
                    f"turn {turn.number}",
                    f"with it {len(ends)} turns were in flight "
                    f"on {run.configuration.concurrent_turns} slots.",
                )


def waits(export: Export) -> Iterator[Breach]:
    for turn in export.turns:
        if turn.waited_seconds > turn.wait_bound_seconds + WAIT_TOLERANCE_SECONDS:
            yield Breach(
                f"turn {turn.number}",
                f"{turn.agent} waited {turn.waited_seconds:g} s "
                f"and the bound is {turn.wait_bound_seconds:g} s.",
            )


def longest_waits(export: Export) -> Iterator[Breach]:
    for run in export.runs:
        turns = export.turns_of_run.get(run.run, ())
        longest = max(turns, key=lambda turn: (turn.waited_seconds, turn.number), default=None)
        stated = (run.longest_wait_seconds, run.wait_bound_seconds)
        if longest is None and stated != (None, None):
            yield Breach(f"run {run.run}", "it tells of a wait and has no turns.")
        elif longest is not None and stated != (longest.waited_seconds, longest.wait_bound_seconds):
            yield Breach(
                f"run {run.run}",
                f"its longest wait is told as {stated[0]} of {stated[1]} s, "
                f"turn {longest.number} waited {longest.waited_seconds:g} "
                f"of {longest.wait_bound_seconds:g} s.",
            )


def longest_unselected_first(export: Export) -> Iterator[Breach]:
    """Check every grant against those who were provably eligible at that moment.

    Who is selected later with a wait that began before this grant was eligible then. Only
    agents selected before in this export can be compared.
    """
    for _, turns in _runs_with_turns(export):
        before = _selection_before(turns)
        coming = sorted(turns, key=_eligible_since)
        waiting: list[tuple[int, int]] = []
        position, granted = 0, set[int]()
        for turn in turns:
            while position < len(coming) and (
                _eligible_since(coming[position]) < turn.selected_at - TOLERANCE
            ):
                if (last := before.get(coming[position].number)) is not None:
                    heappush(waiting, (last, coming[position].number))
                position += 1
            granted.add(turn.number)
            while waiting and waiting[0][1] in granted:
                heappop(waiting)
            if waiting and waiting[0][0] < before.get(turn.number, -1):
                yield Breach(
                    f"turn {turn.number}",
                    f"the agent of turn {waiting[0][1]} was eligible and had waited longer.",
                )


def _eligible_since(turn: TurnRow) -> datetime:
    return turn.selected_at - timedelta(seconds=turn.waited_seconds)


def _selection_before(turns: Sequence[TurnRow]) -> dict[int, int]:
    """Return, for a run's turns, the number of the agent's selection before each."""
    last: dict[str, int] = {}
    found: dict[int, int] = {}
    for turn in turns:
        if turn.agent in last:
            found[turn.number] = last[turn.agent]
        last[turn.agent] = turn.number
    return found


def turn_limit(export: Export) -> Iterator[Breach]:
    for run, turns in _runs_with_turns(export):
        limit = run.configuration.max_turns
        if limit is not None and len(turns) > limit:
            yield Breach(f"run {run.run}", f"it took {len(turns)} turns and max_turns is {limit}.")


FILE = "turns.jsonl"
TURN_LAWS = (
    Law(
        name="turn-numbers",
        file=FILE,
        says="turns are numbered through the simulation without a gap",
        check=turn_numbers,
    ),
    Law(
        name="turn-times",
        file=FILE,
        says="a turn ends after it was selected, and has no end only if it runs or died",
        check=turn_times,
    ),
    Law(
        name="selection-order",
        file=FILE,
        says="in a run turns are selected in the order of their numbers",
        check=selection_order,
    ),
    Law(
        name="one-turn-at-once",
        file=FILE,
        says="no agent is in two turns of a run at once",
        check=one_turn_at_once,
    ),
    Law(
        name="cooldown",
        file=FILE,
        says="an agent rests turn_delay_seconds after the end of its turn",
        check=cooldown,
    ),
    Law(
        name="slots",
        file=FILE,
        says="at most concurrent_turns turns are in flight at any moment",
        check=slots,
    ),
    Law(
        name="waits",
        file=FILE,
        says="nobody waits longer than the bound of that wait",
        check=waits,
    ),
    Law(
        name="longest-waits",
        file="runs.jsonl",
        says="the longest wait of a run is that of its turns",
        check=longest_waits,
    ),
    Law(
        name="longest-unselected-first",
        file=FILE,
        says="of those eligible the agent is chosen whose last selection is the oldest",
        check=longest_unselected_first,
    ),
    Law(
        name="turn-limit",
        file=FILE,
        says="a run takes at most max_turns turns",
        check=turn_limit,
    ),
)
