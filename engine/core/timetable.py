"""When a schedule is due, as moments in time: by the wall clock of a time zone, or by elapsed time.

On nights on which a clock is moved two rules hold for everything that is due by the wall clock: a
time that does not exist is due at the moment the clock has jumped over it, and a time that comes
twice is due the first time. "Every N minutes" counts elapsed time, which no such night changes.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from itertools import groupby
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from engine.core.cron import Cron

if TYPE_CHECKING:
    from collections.abc import Iterator

#: The longest distance between two days of one rule is that of two 29 Februaries around 2100.
_SEARCHED_DAYS = 8 * 366 + 1
_DAY = timedelta(days=1)


class Mark(StrEnum):
    """What is special about a moment: its time was jumped over, or comes twice."""

    JUMPED = "jumped"
    TWICE = "twice"


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """A moment (UTC) at which a schedule is due, and what the wall clock should have shown."""

    at: datetime
    wall: datetime
    mark: Mark | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Every:
    """Every so many minutes, counted from the midnight that begins the first day."""

    minutes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Daily:
    """Every day at these times."""

    times: tuple[time, ...]

    def falls_on(self, day: date) -> bool:
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Weekly:
    """On some days of the week, Monday being 0."""

    times: tuple[time, ...]
    weekdays: tuple[int, ...]

    def falls_on(self, day: date) -> bool:
        return day.weekday() in self.weekdays


@dataclass(frozen=True, slots=True, kw_only=True)
class Monthly:
    """Once a month, in a month that is shorter on its last day: so 31 is the last day of each."""

    times: tuple[time, ...]
    day: int

    def falls_on(self, day: date) -> bool:
        is_last = (day + _DAY).day == 1
        return day.day == self.day or (is_last and day.day < self.day)


#: Days with times on them.
WallClock = Daily | Weekly | Monthly | Cron


@dataclass(frozen=True, slots=True, kw_only=True)
class Timetable:
    """When a schedule is due, from its first to its last day, both included; None is no end.

    A day is over at the next one's first midnight, also where the clock then goes back to it.
    """

    when: Every | WallClock
    zone: str
    first: date
    last: date | None = None


def due_times(timetable: Timetable, *, after: datetime) -> Iterator[Due]:
    """Yield the moments after another one, in their order, each once."""
    if isinstance(timetable.when, Every):
        yield from _elapsed(timetable, timetable.when, after)
        return
    day = max(_local_day(after, timetable.zone) - _DAY, timetable.first)
    reached, n_searched = after, 0
    while n_searched <= _SEARCHED_DAYS and (timetable.last is None or day <= timetable.last):
        n_searched += 1
        for due in _dues_of(timetable.when, day, timetable.zone):
            if due.at > reached:
                reached, n_searched = due.at, 0
                yield due
        day += _DAY


def newest_due(timetable: Timetable, *, after: datetime, until: datetime) -> Due | None:
    """Return the last moment after one and not after another, however many lie between them."""
    if isinstance(timetable.when, Every):
        return _newest_elapsed(timetable, timetable.when, after, until)
    return _newest_by_wall(timetable, timetable.when, after, until)


def _newest_by_wall(
    timetable: Timetable, when: WallClock, after: datetime, until: datetime
) -> Due | None:
    day = _local_day(until, timetable.zone)
    if timetable.last is not None:
        day = min(day, timetable.last)
    oldest = max(_local_day(after, timetable.zone) - _DAY, timetable.first)
    while day >= oldest:
        for due in reversed(_dues_of(when, day, timetable.zone)):
            if due.at <= until:
                return due if due.at > after else None
        day -= _DAY
    return None


def resolve(wall: datetime, zone: str) -> Due:
    """Return the moment at which the wall clock of a zone shows a time, by the two rules."""
    local = ZoneInfo(zone)
    first, second = wall.replace(tzinfo=local), wall.replace(tzinfo=local, fold=1)
    at = first.astimezone(UTC)
    if first.utcoffset() == second.utcoffset():
        return Due(at=at, wall=wall)
    if at.astimezone(local).replace(tzinfo=None) == wall:
        return Due(at=at, wall=wall, mark=Mark.TWICE)
    return Due(at=_jump(second.astimezone(UTC), at, local), wall=wall, mark=Mark.JUMPED)


def _jump(before: datetime, after: datetime, zone: ZoneInfo) -> datetime:
    """Return the first moment of a new offset from UTC, of two moments around it."""
    offset = after.astimezone(zone).utcoffset()
    seconds = bisect_left(
        range(round((after - before).total_seconds())),
        True,  # noqa: FBT003 - what is looked for
        key=lambda n: (before + timedelta(seconds=n)).astimezone(zone).utcoffset() == offset,
    )
    return before + timedelta(seconds=seconds)


def _dues_of(when: WallClock, day: date, zone: str) -> list[Due]:
    """Return what is due on a day; of one moment, what was meant for it by itself."""
    if not when.falls_on(day):
        return []
    dues = (resolve(datetime.combine(day, clock), zone) for clock in when.times)
    return [list(same)[-1] for _, same in groupby(dues, key=lambda due: due.at)]


def _elapsed(timetable: Timetable, every: Every, after: datetime) -> Iterator[Due]:
    start, step = _midnight(timetable.first, timetable.zone), timedelta(minutes=every.minutes)
    end = None if timetable.last is None else _midnight(timetable.last + _DAY, timetable.zone)
    at = start + max(0, (after - start) // step + 1) * step
    while end is None or at < end:
        yield _shown(at, timetable.zone)
        at += step


def _newest_elapsed(
    timetable: Timetable, every: Every, after: datetime, until: datetime
) -> Due | None:
    start, step = _midnight(timetable.first, timetable.zone), timedelta(minutes=every.minutes)
    if timetable.last is not None:
        end = _midnight(timetable.last + _DAY, timetable.zone)
        until = min(until, end - timedelta.resolution)
    at = start + (until - start) // step * step
    return _shown(at, timetable.zone) if at >= start and at > after else None


def _shown(at: datetime, zone: str) -> Due:
    return Due(at=at, wall=at.astimezone(ZoneInfo(zone)).replace(tzinfo=None))


def _midnight(day: date, zone: str) -> datetime:
    return resolve(datetime.combine(day, time()), zone).at


def _local_day(at: datetime, zone: str) -> date:
    return at.astimezone(ZoneInfo(zone)).date()
