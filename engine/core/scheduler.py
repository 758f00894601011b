"""Who is next: every agent in exactly one place, and the longest-waiting one at the top.

The scheduler knows numbers and times, no rules: `standing` judges, the loop tells the result
here. Everything is O(log n), but for a shift within one packed list; an entry whose generation is
not the agent's is dropped when met, or swept out with others of its kind.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from enum import StrEnum
from heapq import heapify, heappop, heappush
from math import ceil
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

Key = TypeVar("Key")


class Place(StrEnum):
    """Where an agent is between two grants."""

    IN_FLIGHT = "in_flight"
    COOLING = "cooling"
    READY = "ready"
    PARKED = "parked"
    OUT = "out"


@dataclass(slots=True)
class _Seat:
    """One agent's place. A parked agent may have a `due` timer too; `generation` dates entries.

    `moved` is the number of the move by which it came among the ready, or left them last; 0 while
    it has never been there.
    """

    last_selected: int
    place: Place = Place.PARKED
    generation: int = 0
    eligible_since: datetime | None = None
    moved: int = 0
    due_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """A selection: its number in the simulation, who, and how long it had waited.

    `n_rivals` is how many agents were eligible at some moment of that wait, itself included.
    """

    number: int
    agent: int
    waited_seconds: float
    n_rivals: int

    def wait_bound_seconds(self, *, n_slots: int, max_turn_seconds: float) -> float:
        """Return what its wait cannot exceed: every rival takes one turn, `n_slots` at once."""
        return ceil(self.n_rivals / n_slots) * max_turn_seconds


class Scheduler:
    """The ready heap, ordered by `(last_selected, agent, generation)`, and the timer heap.

    Moves into and out of the ready are numbered; `_left` holds, ascending, those by which the agents
    that are not ready now left, so that whoever met a wait is counted once, however often it came.
    """

    def __init__(self, n_selections: int = 0) -> None:
        self.n_selections = n_selections
        self._seats: dict[int, _Seat] = {}
        self._ready: list[tuple[int, int, int]] = []
        self._timers: list[tuple[datetime, int, int]] = []
        self._n_ready = 0
        self._n_moves = 0
        self._left: list[int] = []

    def add(self, agent: int, last_selected: int) -> None:
        """Take in an agent, parked until it is judged; one that is known stays as it is."""
        self._seats.setdefault(agent, _Seat(last_selected))

    def place(self, agent: int) -> Place:
        return self._seats[agent].place

    def __contains__(self, agent: int) -> bool:
        return agent in self._seats

    def make_ready(self, agent: int, now: datetime) -> None:
        """Put an agent among the eligible; one that is there keeps its waiting time."""
        seat = self._seats[agent]
        if seat.place is Place.READY:
            return
        self._leave(seat)
        seat.place = Place.READY
        seat.due_at = None
        seat.eligible_since = now
        if seat.moved:
            del self._left[bisect_left(self._left, seat.moved)]
        self._n_ready += 1
        self._n_moves += 1
        seat.moved = self._n_moves
        self._push(self._ready, (seat.last_selected, agent, seat.generation))

    def rest(self, agent: int, place: Place, due_at: datetime | None) -> None:
        """Put an agent aside: cooling or parked, with or without a timer, or out."""
        seat = self._seats[agent]
        if seat.place is place and seat.due_at == due_at:
            return
        self._leave(seat)
        seat.place = place
        seat.due_at = due_at
        if due_at is not None:
            self._push(self._timers, (due_at, agent, seat.generation))

    def hasten(self, agent: int, due_at: datetime) -> None:
        """Let the timer of an agent that was put aside fire at `due_at`, if it would not sooner."""
        seat = self._seats[agent]
        if seat.due_at is None or due_at < seat.due_at:
            self.rest(agent, seat.place, due_at)

    def grant(self, now: datetime) -> Grant | None:
        """Select the agent that has waited longest by number of selections; None if none is ready.

        `last_selected` advances here, whatever the turn will do.
        """
        agent = self.next_ready()
        if agent is None:
            return None
        heappop(self._ready)
        seat = self._seats[agent]
        assert seat.eligible_since is not None
        waited_seconds = (now - seat.eligible_since).total_seconds()
        n_rivals = self._n_ready + len(self._left) - bisect_left(self._left, seat.moved)
        self._leave(seat)
        self.n_selections += 1
        seat.last_selected = self.n_selections
        seat.place = Place.IN_FLIGHT
        return Grant(
            number=self.n_selections,
            agent=agent,
            waited_seconds=waited_seconds,
            n_rivals=n_rivals,
        )

    def next_ready(self) -> int | None:
        """Return who `grant` would select, without selecting."""
        while self._ready:
            _, agent, generation = self._ready[0]
            if generation == self._seats[agent].generation:
                return agent
            heappop(self._ready)
        return None

    def fired(self, now: datetime) -> list[int]:
        """Return the agents whose timers are due, earliest first, and forget those timers."""
        due = []
        while self._timers and self._timers[0][0] <= now:
            _, agent, generation = heappop(self._timers)
            seat = self._seats[agent]
            if generation == seat.generation:
                seat.due_at = None
                due.append(agent)
        return due

    def next_due(self) -> datetime | None:
        """Return the time of the earliest timer that still counts."""
        while self._timers:
            due_at, agent, generation = self._timers[0]
            if generation == self._seats[agent].generation:
                return due_at
            heappop(self._timers)
        return None

    def agents(self, *places: Place) -> Iterable[int]:
        """Yield the agents in these places (all without an argument), in the order they came."""
        for agent, seat in self._seats.items():
            if not places or seat.place in places:
                yield agent

    @property
    def n_ready(self) -> int:
        return self._n_ready

    def _push(self, heap: list[tuple[Key, int, int]], entry: tuple[Key, int, int]) -> None:
        """Enter into a heap, which is swept when most of it may be dropped: each turn of an agent
        can set its timer for midnight anew."""
        heappush(heap, entry)
        if len(heap) > 2 * len(self._seats):
            heap[:] = [one for one in heap if one[2] == self._seats[one[1]].generation]
            heapify(heap)

    def _leave(self, seat: _Seat) -> None:
        seat.generation += 1
        if seat.place is Place.READY:
            self._n_ready -= 1
            self._n_moves += 1
            seat.moved = self._n_moves
            self._left.append(seat.moved)
        seat.eligible_since = None
