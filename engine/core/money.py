"""The money of a day, shared by all runs of the installation, and the caps of one call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import date


#: Why a call may not leave yet: as many are on their way, of all runs, as may.
TOO_MANY_CALLS = "too_many_calls"


@dataclass(frozen=True, slots=True, kw_only=True)
class DayMoney:
    """What all runs have spent and promised on a day, in nano-USD; `cap` None is no limit."""

    day: date
    spent: int = 0
    reserved: int = 0
    cap: int | None = None

    def has_room_for(self, nano_usd: int) -> bool:
        """Tell whether so much more may be promised; a day that is used up has no room at all."""
        if self.cap is None:
            return True
        promised = self.spent + self.reserved
        return promised < self.cap and promised + nano_usd <= self.cap


@dataclass(frozen=True, slots=True, kw_only=True)
class Caps:
    """The money caps of one call that its driver knows, in nano-USD; None is no limit.

    The store knows two more: the run's as somebody raised it, and the day's.
    """

    run: int | None = None
    agent: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NoMoney:
    """A cap that forbids a call: `money_cap`, `own_money_cap`, `day_cap` with the day's money, or
    `TOO_MANY_CALLS`, which passes."""

    reason: str
    day: DayMoney | None = None
