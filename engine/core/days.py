"""The days of a run's time zone, on which daily limits count."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

#: Every offset from UTC in use is a whole number of these seconds, so no day ends within one.
_QUARTER_SECONDS = 900


def local_day(now: datetime, zone: str) -> date:
    """Return the date in a time zone."""
    return _day(zone, int(now.timestamp()) // _QUARTER_SECONDS)[0]


def midnight_after(now: datetime, zone: str) -> datetime:
    """Return when the day in a time zone is over, in the time zone of `now`."""
    return _day(zone, int(now.timestamp()) // _QUARTER_SECONDS)[1].astimezone(now.tzinfo)


@lru_cache(maxsize=64)
def _day(zone: str, quarter: int) -> tuple[date, datetime]:
    """Return the day of a quarter of an hour since 1970, and its end."""
    local = ZoneInfo(zone)
    day = datetime.fromtimestamp(quarter * _QUARTER_SECONDS, local).date()
    return day, datetime.combine(day + timedelta(days=1), time(), local)
