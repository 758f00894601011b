"""The budget of a run: calls and money, reserved before each call and settled after it.

Nothing here awaits, so a check and its reservation are one step. Money is promised once more in
the store, which alone knows what other processes spend; this is what the loop judges by.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from engine.core.config import WINDOW
from engine.core.days import local_day
from engine.core.money import Caps, DayMoney, MonthMoney, NoMoney

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import date

    from engine.core.config import RunConfig
    from engine.core.records import AgentSpec

#: At the day's cap a run waits so long for what calls of other runs may give back.
OTHERS_REST = timedelta(seconds=60)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """A refused reservation. `until` is when it may be granted, None if never in this run.

    `of_run` says that everybody's cap is spent (the run's, its schedule's or the day's), not only
    the agent's.
    """

    reason: str
    until: datetime | None = None
    of_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """One call that may be made, at most at this price in nano-USD; None if nobody knows it."""

    agent: int
    nano_usd: int | None


class Budget:
    """Calls and money of a run and of its agents.

    A cap of None is unlimited. A sliding window per agent allows `calls_per_window` times its
    open threads (1 to the threshold) in 600 seconds. `day` is the installation's money of the day
    as last heard of, None while nothing is paid for; `month` is that of the run's schedule.
    """

    def __init__(self, config: RunConfig, calls: Iterable[tuple[int, datetime]] = ()) -> None:
        self.max_calls = config.max_calls
        self.max_nano_usd = config.max_nano_usd
        self.day: DayMoney | None = None
        self.month: MonthMoney | None = None
        self.n_calls = 0
        self.spent_nano_usd = 0
        self.n_open = 0
        self._reserved_nano_usd = 0
        self._unpaid: dict[int, int] = {}
        self._unpriced: set[int] = set()
        self._day_refused_at: datetime | None = None
        self._zone = config.time_zone
        self._per_window = config.calls_per_window
        self._threshold = config.active_thread_threshold
        self._calls_of: Counter[int] = Counter()
        self._promised_to: Counter[int] = Counter()
        self._window: defaultdict[int, deque[datetime]] = defaultdict(deque)
        for agent, at in calls:
            self._window[agent].append(at)

    def count(self, agent: int, *, n_calls: int, nano_usd: int) -> None:
        """Count calls that an agent made, and paid, before this budget was there."""
        self.n_calls += n_calls
        self.spent_nano_usd += nano_usd
        self._calls_of[agent] += n_calls
        self._promised_to[agent] += nano_usd

    # --- asking ----------------------------------------------------------------------------------

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
        if not self._has_room_this_month(now, nano_usd):
            return Spent(reason="month_cap", of_run=True)
        if not self._has_room_today(now, nano_usd):
            return Spent(reason="day_cap", of_run=True)
        if spec.max_calls is not None and self._calls_of[spec.id] >= spec.max_calls:
            return Spent(reason="own_call_cap")
        if _is_spent(spec.max_nano_usd, self._promised_to[spec.id], nano_usd):
            return Spent(reason="own_money_cap")
        if spec.id in self._unpriced and self._counts_money(spec):
            return Spent(reason="unpriced")
        return self._window_refusal(spec, now, n_threads=n_threads)

    def run_refusal(self, now: datetime) -> Spent | None:
        """Tell which cap that is everybody's is spent, or None."""
        if self.max_calls is not None and self.n_calls + self.n_open >= self.max_calls:
            return Spent(reason="call_cap", of_run=True)
        promised = self.spent_nano_usd + self._reserved_nano_usd
        if self.max_nano_usd is not None and promised >= self.max_nano_usd:
            return Spent(reason="money_cap", of_run=True)
        if not self._has_room_this_month(now, 0):
            return Spent(reason="month_cap", of_run=True)
        if not self._has_room_today(now, 0):
            return Spent(reason="day_cap", of_run=True)
        return None

    @property
    def is_open(self) -> bool:
        """True while a reservation is neither settled nor given back."""
        return self.n_open > 0

    def today(self, now: datetime) -> date:
        """Return the day to whose account a call of this moment goes."""
        return local_day(now, self._zone)

    def waits_for_others(self, now: datetime) -> bool:
        """Tell whether calls of other runs may soon give back what the day's cap lacks.

        A process that died gives back nothing, so that is waited for only a while.
        """
        since = self._day_refused_at
        if self.day is None or self.day.reserved == 0 or since is None:
            return False
        return now - since < OTHERS_REST

    def caps_of(self, spec: AgentSpec) -> Caps:
        """Return the money caps of the agent's next call."""
        return Caps(run=self.max_nano_usd, agent=spec.max_nano_usd)

    # --- booking ---------------------------------------------------------------------------------

    def reserve(
        self, spec: AgentSpec, now: datetime, *, n_threads: int, nano_usd: int | None
    ) -> Reservation | Spent:
        """Reserve one call, or tell why not; one without a price only while nothing counts money."""
        if nano_usd is None and self._counts_money(spec):
            self._unpriced.add(spec.id)
        refusal = self.refusal(spec, now, n_threads=n_threads, nano_usd=nano_usd or 0)
        if refusal is not None:
            self._note(spec.id, refusal.reason, nano_usd or 0, now)
            return refusal
        self._unpaid.pop(spec.id, None)
        self.n_open += 1
        self._promise(spec.id, nano_usd or 0)
        self._calls_of[spec.id] += 1
        if spec.calls_per_window or self._per_window:
            self._window[spec.id].append(now)
        return Reservation(agent=spec.id, nano_usd=nano_usd)

    def granted(self, now: datetime) -> None:
        """Note that the store has promised the money of a call, too.

        Who was refused a dearer one before waits on: what others may give back is waited for anew.
        """
        if self._day_refused_at is not None:
            self._day_refused_at = now

    def refused(self, reservation: Reservation, refusal: NoMoney, now: datetime) -> Spent:
        """Give a reservation back that the store refused, and remember why; the call is not made."""
        nano_usd = reservation.nano_usd or 0
        self.give_back(reservation)
        self._note(reservation.agent, refusal.reason, nano_usd, now)
        if refusal.day is not None:
            self.day = refusal.day
        if refusal.month is not None:
            self.month = refusal.month
        return Spent(reason=refusal.reason, of_run=refusal.reason != "own_money_cap")

    def give_back(self, reservation: Reservation) -> None:
        """Take back a reservation whose call was not made."""
        self.n_open -= 1
        self._promise(reservation.agent, -(reservation.nano_usd or 0))
        self._calls_of[reservation.agent] -= 1
        if self._window[reservation.agent]:
            self._window[reservation.agent].pop()

    def settle(self, reservation: Reservation, *, cost_nano_usd: int | None) -> None:
        """Book a call that was made, whatever came of it; without a price it costs nothing here."""
        cost = cost_nano_usd or 0
        self.n_open -= 1
        self.n_calls += 1
        self._promise(reservation.agent, -(reservation.nano_usd or 0))
        self.spent_nano_usd += cost
        self._promised_to[reservation.agent] += cost

    # ---------------------------------------------------------------------------------------------

    def _promise(self, agent: int, nano_usd: int) -> None:
        self._reserved_nano_usd += nano_usd
        self._promised_to[agent] += nano_usd

    def _note(self, agent: int, reason: str, nano_usd: int, now: datetime) -> None:
        """Remember what the agent could not pay, and since when the day's cap is met."""
        if reason in {"money_cap", "month_cap", "day_cap", "own_money_cap"}:
            self._unpaid[agent] = nano_usd
        if reason == "day_cap" and self._day_refused_at is None:
            self._day_refused_at = now

    def _counts_money(self, spec: AgentSpec) -> bool:
        day_cap = None if self.day is None else self.day.cap
        month_cap = None if self.month is None else self.month.cap
        return {self.max_nano_usd, spec.max_nano_usd, day_cap, month_cap} != {None}

    def _has_room_today(self, now: datetime, nano_usd: int) -> bool:
        day = self.day
        if day is None or day.day != local_day(now, self._zone):
            return True
        return day.has_room_for(nano_usd)

    def _has_room_this_month(self, now: datetime, nano_usd: int) -> bool:
        month = self.month
        if month is None or month.month != local_day(now, self._zone).replace(day=1):
            return True
        return month.has_room_for(nano_usd)

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


def _is_spent(cap: int | None, promised: int, nano_usd: int) -> bool:
    """Tell whether a cap forbids so much more; one that is used up forbids everything."""
    if cap is None:
        return False
    return promised + nano_usd > cap or 0 < cap <= promised
