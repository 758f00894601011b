"""Claims and budget: what a turn took before it asked a model.

A claim is tried and never waited for; it is given back when the turn ends, or turned into a fact
when its effect is taken into a group. Nothing here awaits, so a check and its claim are one step.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.core.config import WINDOW

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from engine.core.config import RunConfig
    from engine.core.records import AgentSpec


class Claims:
    """Seats and debts that turns in flight have claimed; a key is the root's `seq`.

    An agent has one turn at a time, so its claims never compete with each other; they keep
    others from filling the seat that its answer needs.
    """

    def __init__(self) -> None:
        self._seats: defaultdict[int, set[int]] = defaultdict(set)
        self._debts: set[tuple[int, int]] = set()

    def n_seats(self, agent: int) -> int:
        """Return how many seats the agent's own turn holds."""
        return len(self._seats.get(agent, ()))

    def take_seat(self, agent: int, key: int) -> None:
        self._seats[agent].add(key)

    def take_debt(self, agent: int, root: int) -> bool:
        """Claim an answer; False if it is claimed already."""
        if (agent, root) in self._debts:
            return False
        self._debts.add((agent, root))
        return True

    def release(self, agent: int, key: int) -> bool:
        """Give back what was claimed under one key; True if a seat came free."""
        self._debts.discard((agent, key))
        held = key in self._seats.get(agent, ())
        self._seats[agent].discard(key)
        return held

    def release_all(self, agent: int) -> bool:
        """Give back all that an agent's turn still holds; True if a seat came free."""
        self._debts = {debt for debt in self._debts if debt[0] != agent}
        return bool(self._seats.pop(agent, None))

    @property
    def is_empty(self) -> bool:
        return not self._debts and not any(self._seats.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """A refused reservation. `until` is when it may be granted, None if never in this run.

    `of_run` says that the run's own cap is spent, not only the agent's.
    """

    reason: str
    until: datetime | None = None
    of_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """One call that may be made, at most at this price in nano-USD."""

    agent: int
    nano_usd: int


class Budget:
    """Calls and money of a run and of its agents, reserved before each call and settled after.

    A cap of None is unlimited. A sliding window per agent allows `calls_per_window` times its
    open threads (1 to the threshold) in 600 seconds.
    """

    def __init__(self, config: RunConfig, calls: Iterable[tuple[int, datetime]] = ()) -> None:
        self.max_calls = config.max_calls
        self.max_nano_usd = config.max_nano_usd
        self.n_calls = 0
        self.spent_nano_usd = 0
        self.n_open = 0
        self._reserved_nano_usd = 0
        self._unpaid: dict[int, int] = {}
        self._per_window = config.calls_per_window
        self._threshold = config.active_thread_threshold
        self._calls_of: Counter[int] = Counter()
        self._window: defaultdict[int, deque[datetime]] = defaultdict(deque)
        for agent, at in calls:
            self._window[agent].append(at)

    def count(self, agent: int, *, n_calls: int, nano_usd: int) -> None:
        """Count calls that an agent made, and paid, before this budget was there."""
        self.n_calls += n_calls
        self.spent_nano_usd += nano_usd
        self._calls_of[agent] += n_calls

    def refusal(
        self, spec: AgentSpec, now: datetime, *, n_threads: int, nano_usd: int | None = None
    ) -> Spent | None:
        """Tell why the agent may not call now, or None if it may.

        Without a price it is asked about the call that it could not pay last, if there is one.
        """
        if nano_usd is None:
            nano_usd = self._unpaid.get(spec.id, 0)
        if self.max_calls is not None and self.n_calls + self.n_open >= self.max_calls:
            return Spent(reason="call_cap", of_run=True)
        promised = self.spent_nano_usd + self._reserved_nano_usd + nano_usd
        if self.max_nano_usd is not None and promised > self.max_nano_usd:
            return Spent(reason="money_cap", of_run=True)
        if spec.max_calls is not None and self._calls_of[spec.id] >= spec.max_calls:
            return Spent(reason="own_call_cap")
        return self._window_refusal(spec, now, n_threads=n_threads)

    def reserve(
        self, spec: AgentSpec, now: datetime, *, n_threads: int, nano_usd: int
    ) -> Reservation | Spent:
        """Reserve one call, or tell why not."""
        refusal = self.refusal(spec, now, n_threads=n_threads, nano_usd=nano_usd)
        if refusal is not None:
            if refusal.reason == "money_cap":
                self._unpaid[spec.id] = nano_usd
            return refusal
        self._unpaid.pop(spec.id, None)
        self.n_open += 1
        self._reserved_nano_usd += nano_usd
        self._calls_of[spec.id] += 1
        if spec.calls_per_window or self._per_window:
            self._window[spec.id].append(now)
        return Reservation(agent=spec.id, nano_usd=nano_usd)

    def settle(self, reservation: Reservation, *, cost_nano_usd: int) -> None:
        """Book a call that was made, whatever came of it."""
        self.n_open -= 1
        self.n_calls += 1
        self._reserved_nano_usd -= reservation.nano_usd
        self.spent_nano_usd += cost_nano_usd

    @property
    def is_open(self) -> bool:
        """True while a reservation is neither settled nor given back."""
        return self.n_open > 0

    def run_refusal(self) -> Spent | None:
        """Tell which cap of the run is spent, or None."""
        if self.max_calls is not None and self.n_calls + self.n_open >= self.max_calls:
            return Spent(reason="call_cap", of_run=True)
        promised = self.spent_nano_usd + self._reserved_nano_usd
        if self.max_nano_usd is not None and promised >= self.max_nano_usd:
            return Spent(reason="money_cap", of_run=True)
        return None

    def _window_refusal(self, spec: AgentSpec, now: datetime, *, n_threads: int) -> Spent | None:
        per_thread = spec.calls_per_window or self._per_window
        if not per_thread:
            return None
        window = self._window[spec.id]
        while window and now - window[0] >= WINDOW:
            window.popleft()
        allowance = per_thread * min(max(n_threads, 1), self._threshold)
        if len(window) < allowance:
            return None
        return Spent(reason="window", until=window[len(window) - allowance] + WINDOW)
