"""A timetable from the texts and numbers that a person gives, and back in words."""

from __future__ import annotations

import re
from datetime import date, time
from typing import TYPE_CHECKING, Final, assert_never
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from engine.core.cron import Cron, read_cron
from engine.core.settings import RefusedSetting
from engine.core.timetable import Daily, Every, Mark, Monthly, Timetable, WallClock, Weekly

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.core.timetable import Due

WEEKDAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS: Final = tuple(
    "January February March April May June July August September October November December".split()
)
#: The kinds of timetables.
KINDS: Final = ("every", "daily", "weekly", "monthly", "cron")
LAST_DAY: Final = 31
#: A year: what comes more rarely is told by months, or by cron.
MOST_MINUTES: Final = 366 * 24 * 60
_TIME: Final = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")
#: So many times of a day are named; of more, their minutes and hours.
_NAMED: Final = 8


def read_when(
    kind: str, *, minutes: int | None, times: str, weekdays: str, day: int | None, cron: str
) -> Every | WallClock:
    """Return when a schedule is due, of what its kind needs; raise RefusedSetting with a sentence.

    `times` are like "9:00, 17:30", `weekdays` are digits, Monday being 0, and `day` is one of a
    month, of which 31 is the last.
    """
    match kind:
        case "every":
            return Every(minutes=_minutes(minutes))
        case "daily":
            return Daily(times=read_times(times))
        case "weekly":
            return Weekly(times=read_times(times), weekdays=_weekdays(weekdays))
        case "monthly":
            if day is None or not 1 <= day <= LAST_DAY:
                raise RefusedSetting("Choose a day of the month, from 1 to 30 or the last.")
            return Monthly(times=read_times(times), day=day)
        case "cron":
            return read_cron(cron)
    raise RefusedSetting(f"There is no kind of timetable “{kind}”, but {', '.join(KINDS)}.")


def read_times(text: str) -> tuple[time, ...]:
    """Read times of a day, like "9:00, 17:30", in their order and each once."""
    parts = text.replace(",", " ").split()
    if not parts:
        raise RefusedSetting("Give at least one time of the day, like 9:00.")
    found = [_TIME.fullmatch(part) for part in parts]
    for part, match in zip(parts, found, strict=True):
        if match is None:
            raise RefusedSetting(f"“{part}” is no time of the day: write it like 9:00 or 17:30.")
    return tuple(sorted({time(int(match[1]), int(match[2])) for match in found if match}))


def check_zone(zone: str) -> None:
    """Refuse what is no name of a time zone."""
    try:
        ZoneInfo(zone)
    except (ValueError, OSError, ZoneInfoNotFoundError) as error:
        raise RefusedSetting(
            f"There is no time zone “{zone}”: write it like Europe/Berlin."
        ) from error


def in_words(timetable: Timetable) -> str:
    """Say a timetable as a person would."""
    zone = timetable.zone
    words = f"{_when_in_words(timetable.when)} ({zone})"
    if isinstance(timetable.when, Every):
        words += f", counted from midnight of {date_in_words(timetable.first)}"
    else:
        words += f", from {date_in_words(timetable.first)}"
    if timetable.last is not None:
        words += f" until {date_in_words(timetable.last)}"
    return f"{words}."


def due_in_words(due: Due, zone: str) -> str:
    """Say a moment as the wall clock of a zone shows it, and what is special about that night."""
    local = due.at.astimezone(ZoneInfo(zone))
    offset = f"{local:%z}"
    told = f"{WEEKDAYS[local.weekday()]}, {date_in_words(local.date())}, {local:%H:%M}"
    told = f"{told} (UTC{offset[:3]}:{offset[3:5]})"
    if due.mark is None:
        return told
    if due.mark is Mark.TWICE:
        return f"{told}: this time comes twice then, and counts the first time"
    return f"{told}: {_wall(due, local.date())} does not exist then, the clock jumps over it"


def date_in_words(day: date) -> str:
    return f"{day.day} {MONTHS[day.month - 1]} {day.year}"


def _wall(due: Due, day: date) -> str:
    shown = f"{due.wall:%H:%M}"
    return shown if due.wall.date() == day else f"{shown} of {date_in_words(due.wall.date())}"


def _when_in_words(when: Every | WallClock) -> str:
    match when:
        case Every():
            return f"Every {_duration(when.minutes)}"
        case Daily():
            return f"Every day at {_times(when.times)}"
        case Weekly():
            named = [WEEKDAYS[number] for number in when.weekdays]
            return f"Every {listed(named)} at {_times(when.times)}"
        case Monthly():
            return f"{_month_day(when.day)} at {_times(when.times)}"
        case Cron():
            return f"{_cron_days(when)} at {_times(when.times)}"
        case _:
            assert_never(when)


def _duration(minutes: int) -> str:
    hours, rest = divmod(minutes, 60)
    if rest:
        return "minute" if minutes == 1 else f"{minutes} minutes"
    return "hour" if hours == 1 else f"{hours} hours"


def _month_day(day: int) -> str:
    if day == LAST_DAY:
        return "On the last day of each month"
    shorter = " (in a shorter month on its last)" if day > 28 else ""
    return f"On day {day} of each month{shorter}"


def _cron_days(cron: Cron) -> str:
    days = f"on day {listed([str(day) for day in sorted(cron.days)])} of the month"
    weekdays = f"on {listed([WEEKDAYS[number] for number in sorted(cron.weekdays)])}"
    are_told = len(cron.days) < 31, len(cron.weekdays) < 7
    match are_told:
        case True, True:
            named = [WEEKDAYS[number] for number in sorted(cron.weekdays)]
            only_if = f"{days} if that is a {listed(named, last='or')}"
            told = f"{days}, and {weekdays}" if cron.either else only_if
        case True, False if not cron.either:
            told = days
        case False, True if not cron.either:
            told = weekdays
        case _:
            told = "every day"
    if len(cron.months) < 12:
        months = listed([MONTHS[number - 1] for number in sorted(cron.months)])
        told = f"{told} in {months}"
    return told[0].upper() + told[1:]


def _times(times: Sequence[time]) -> str:
    if len(times) <= _NAMED:
        return listed([f"{clock:%H:%M}" for clock in times])
    minutes = sorted({clock.minute for clock in times})
    hours = sorted({clock.hour for clock in times})
    if len(minutes) * len(hours) != len(times):
        return f"{len(times)} times of the day, from {times[0]:%H:%M} to {times[-1]:%H:%M}"
    of_hours = "every hour" if len(hours) == 24 else f"hour {listed([str(one) for one in hours])}"
    if len(minutes) == 60:
        return f"each minute of {of_hours}"
    return f"minute {listed([str(minute) for minute in minutes])} of {of_hours}"


def listed(words: Sequence[str], *, last: str = "and") -> str:
    """Return words as a list of a sentence: a, b and c."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} {last} {words[-1]}"


def _minutes(minutes: int | None) -> int:
    if minutes is None or not 1 <= minutes <= MOST_MINUTES:
        raise RefusedSetting(
            "Say how many minutes or hours lie between two times: at least 1 minute."
        )
    return minutes


def _weekdays(digits: str) -> tuple[int, ...]:
    numbers = sorted({int(digit) for digit in digits if digit in "0123456"})
    if not numbers:
        raise RefusedSetting("Choose at least one day of the week.")
    return tuple(numbers)
