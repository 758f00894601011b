"""The money of an installation in dictionaries: purses that several simulations share."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.core.money import TOO_MANY_CALLS, Caps, DayMoney, MonthMoney, NoMoney
from engine.store.purses import agent_purse, day_purse, month_purse, purses_of, run_purse

if TYPE_CHECKING:
    from datetime import date

    from engine.core.effects import CallRecord


@dataclass(slots=True)
class Purse:
    """What was spent and is promised under one cap, in nano-USD."""

    spent: int = 0
    reserved: int = 0


@dataclass(slots=True, kw_only=True)
class Purses:
    """All purses by name, and the calls in flight that they are promised to.

    `day_cap` is the most that may be spent in a day, `month_caps` what the runs of a schedule may
    in a month, `max_in_flight` the most calls on their way; None is no limit.
    """

    day_cap: int | None = None
    month_caps: dict[int, int] = field(default_factory=dict)
    max_in_flight: int | None = None
    n_in_flight: int = 0
    by_name: defaultdict[str, Purse] = field(default_factory=lambda: defaultdict(Purse))

    def promise(
        self, call: CallRecord, caps: Caps, *, run: int, schedule: int | None
    ) -> NoMoney | None:
        """Promise what a call may cost under each of its caps, or tell which one forbids it."""
        day = call.reserved_on
        assert day is not None
        asked = [
            ("money_cap", run_purse(run), caps.run),
            ("own_money_cap", agent_purse(run, call.agent), caps.agent),
            ("day_cap", day_purse(day), self.day_cap),
        ]
        if schedule is not None:
            cap = self.month_caps.get(schedule)
            asked.insert(2, ("month_cap", month_purse(schedule, day), cap))
        for reason, name, cap in asked:
            purse = self.by_name[name]
            if cap is not None and purse.spent + purse.reserved + call.reserved_nano_usd > cap:
                return NoMoney(
                    reason=reason,
                    day=self.day_money(day) if reason == "day_cap" else None,
                    month=self.month_money(schedule, day) if reason == "month_cap" else None,
                )
        if self.max_in_flight is not None and self.n_in_flight >= self.max_in_flight:
            return NoMoney(reason=TOO_MANY_CALLS)
        self.n_in_flight += 1
        for _, name, _ in asked:
            self.by_name[name].reserved += call.reserved_nano_usd
        return None

    def pay(self, call: CallRecord, *, cost: int, run: int, schedule: int | None) -> None:
        """Take a call's promise off its purses, and put what it came to on them."""
        self.n_in_flight -= 1
        for name in purses_of(call, run=run, schedule=schedule):
            self.by_name[name].reserved -= call.reserved_nano_usd
            self.by_name[name].spent += cost

    def day_money(self, day: date) -> DayMoney:
        """Return what was spent and is promised on a day, and its cap."""
        purse = self.by_name[day_purse(day)]
        return DayMoney(day=day, spent=purse.spent, reserved=purse.reserved, cap=self.day_cap)

    def month_money(self, schedule: int | None, day: date) -> MonthMoney | None:
        """Return what runs of a schedule have spent and promised in a day's month, and its cap."""
        if schedule is None:
            return None
        purse = self.by_name[month_purse(schedule, day)]
        return MonthMoney(
            month=day.replace(day=1),
            spent=purse.spent,
            reserved=purse.reserved,
            cap=self.month_caps.get(schedule),
        )
