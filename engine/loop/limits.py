"""What ends or pauses a run without anybody asking: its limits, spent caps, an open circuit, nobody
left to act."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from engine.core.prices import in_usd
from engine.core.records import Status
from engine.core.scheduler import Place
from engine.loop.ending import Ending, EndReason

if TYPE_CHECKING:
    from engine.core.budget import Budget
    from engine.core.participation import Rules
    from engine.core.scheduler import Scheduler
    from engine.core.world import World
    from engine.turn.line import Line

#: Why an agent is out for the rest of its run.
BENCHED = frozenset({"own_call_cap", "own_money_cap", "unpriced"})
_IN = (Place.IN_FLIGHT, Place.COOLING, Place.READY, Place.PARKED)


class Limits:
    """Judges one run from its beginning on; `ends_at` is when its time is up, None without limit."""

    def __init__(self, world: World, rules: Rules, scheduler: Scheduler, line: Line) -> None:
        self.ends_at: datetime | None = None
        self._world = world
        self._rules = rules
        self._scheduler = scheduler
        self._line = line
        self._first_turn = scheduler.n_selections

    def begin(self, now: datetime) -> None:
        """Count the run's minutes from now on."""
        if self._rules.config.max_minutes is not None:
            self.ends_at = now + timedelta(minutes=self._rules.config.max_minutes)

    def reached_now(self, now: datetime) -> Ending | None:
        """Return why not even the turns in flight are waited for, beyond their grace."""
        if self._line.circuit_is_open:
            return Ending(
                reason=EndReason.CIRCUIT_OPEN,
                sentence=f"The model failed {self._line.n_failures_in_row} times in a row, at last "
                f"like this: {self._line.last_failure} Look at its status, then resume.",
            )
        if self.ends_at is not None and now >= self.ends_at:
            return Ending(reason=EndReason.TIME_LIMIT)
        return None

    def reached(self) -> Ending | None:
        """Return why nobody is selected any more."""
        limit = self._rules.config.max_turns
        if limit is not None and self._scheduler.n_selections - self._first_turn >= limit:
            return Ending(reason=EndReason.TURN_LIMIT)
        return None

    def spent(self, reason: str, now: datetime) -> Ending | None:
        """Return the pause that a spent cap makes; None while the day's may soon have room again."""
        budget, zone = self._rules.budget, self._rules.config.time_zone
        if not reason or (reason == "day_cap" and budget.waits_for_others(now)):
            return None
        return Ending(
            reason=EndReason.CALL_CAP if reason == "call_cap" else EndReason.MONEY_CAP,
            sentence=cap_sentence(reason, budget, zone),
        )

    def nothing_goes_on(self, now: datetime, *, others_come: bool) -> Ending | None:
        """Return why a run without a turn in flight is over; `others_come` while someone may join.

        A spent cap pauses once no reservation is open; a drain done, or nobody in, ends.
        """
        refusal = self._rules.budget.run_refusal(now)
        spent = None if refusal is None else self.spent(refusal.reason, now)
        if spent is not None and not self._rules.budget.is_open:
            return spent
        if self._rules.draining and not self._world.threads:
            return Ending(reason=EndReason.STOPPED)
        if others_come or any(True for _ in self._scheduler.agents(*_IN)):
            return None
        if any(spec.status is Status.PAUSED for spec in self._world.agents.values()):
            return None  # a person may bring one back
        return Ending(reason=EndReason.NOBODY_LEFT)


def cap_sentence(reason: str, budget: Budget, time_zone: str) -> str:
    """Return which cap pauses a run, and what lets it go on."""
    if reason == "call_cap":
        return f"Its {budget.max_calls} calls are made: raise max_calls, then resume it."
    if reason == "money_cap":
        left = f"{in_usd(budget.spent_nano_usd)} of {in_usd(budget.max_nano_usd or 0)}"
        return (
            f"It has spent {left}, and what is left pays for no further call: raise max_usd, then "
            "resume it."
        )
    if reason == "month_cap":
        month = budget.month
        assert month is not None
        return (
            f"The runs of its schedule have spent or promised {in_usd(month.spent + month.reserved)}"
            f" of the {in_usd(month.cap or 0)} that they may in {month.month:%Y-%m}: raise the "
            "money of a month on the page of the schedule, or wait for the next, then resume it."
        )
    day = budget.day
    assert day is not None
    return (
        f"All runs together have spent or promised {in_usd(day.spent + day.reserved)} of the "
        f"{in_usd(day.cap or 0)} that they may on {day.day}: resume it after midnight "
        f"({time_zone}), or raise the money of a day, then resume it."
    )
