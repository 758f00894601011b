"""What ends or pauses a run without anybody asking: its limits, spent caps, an open circuit, nobody
left to act."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from engine.core.records import Status
from engine.core.scheduler import Place
from engine.loop.ending import Ending, EndReason

if TYPE_CHECKING:
    from engine.core.participation import Rules
    from engine.core.scheduler import Scheduler
    from engine.core.world import World
    from engine.turn.calls import Line

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

    def nothing_goes_on(self, *, others_come: bool) -> Ending | None:
        """Return why a run without a turn in flight is over; `others_come` while someone may join.

        A spent cap pauses once no reservation is open; a drain done, or nobody in, ends.
        """
        spent = self._rules.budget.run_refusal()
        if spent is not None and not self._rules.budget.is_open:
            return Ending(reason=EndReason(spent.reason))
        if self._rules.draining and not self._world.threads:
            return Ending(reason=EndReason.STOPPED)
        if others_come or any(True for _ in self._scheduler.agents(*_IN)):
            return None
        if any(spec.status is Status.PAUSED for spec in self._world.agents.values()):
            return None  # a person may bring one back
        return Ending(reason=EndReason.NOBODY_LEFT)
