"""Money that several runs share, of a day or of a month, and the caps of one call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import date


#: Why a call may not leave yet: as many are on their way, of all runs, as may.
TOO_MANY_CALLS = "too_many_calls"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shared:
    """What runs have spent and promised together, in nano-USD; `cap` None is no limit."""

    spent: int = 0
    reserved: int = 0
    cap: int | None = None

    def has_room_for(self, nano_usd: int) -> bool:
        """Tell whether so much more may be promised; what is used up has no room at all."""
        if self.cap is None:
            return True
        promised = self.spent + self.reserved
        return promised < self.cap and promised + nano_usd <= self.cap


@dataclass(frozen=True, slots=True, kw_only=True)
class DayMoney(_Shared):
    """What all runs of the installation share on a day."""

    day: date


@dataclass(frozen=True, slots=True, kw_only=True)
class MonthMoney(_Shared):
    """What the runs of one schedule share in the month that begins on this day."""

    month: date


@dataclass(frozen=True, slots=True, kw_only=True)
class Caps:
    """The money caps of one call that its driver knows, in nano-USD; None is no limit.

    The store knows three more: the run's as somebody raised it, the day's, and its schedule's.
    """

    run: int | None = None
    agent: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NoMoney:
    """A cap that forbids a call: `money_cap`, `own_money_cap`, `day_cap` with the day's money, or
    `month_cap` with the month's, or `TOO_MANY_CALLS`, which passes."""

    reason: str
    day: DayMoney | None = None
    month: MonthMoney | None = None
