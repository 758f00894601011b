"""Due times against a slow oracle that looks at every minute, and by the days people ask about."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from itertools import islice, takewhile
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine.core.cron import read_cron
from engine.core.timetable import (
    Daily,
    Due,
    Every,
    Mark,
    Monthly,
    Timetable,
    WallClock,
    Weekly,
    due_times,
    newest_due,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
#: Half an hour, two hours, midnight, a whole day: clocks are moved in many ways.
ZONES = (
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "America/Havana",
    "America/Sao_Paulo",
    "Antarctica/Troll",
    "Asia/Kathmandu",
    "Pacific/Apia",
    "Africa/Casablanca",
    "America/St_Johns",
)


def due_by_looking(timetable: Timetable, start: datetime, end: datetime) -> list[datetime]:
    """Look at the wall clock at every minute after `start` until `end`, with the two rules."""
    assert not isinstance(timetable.when, Every)
    zone, when = ZoneInfo(timetable.zone), timetable.when
    found, seen = [], start.astimezone(zone).replace(tzinfo=None)
    newest = max(seen, (start - DAY).astimezone(zone).replace(tzinfo=None))
    for at in _minutes(start, end):
        wall = at.astimezone(zone).replace(tzinfo=None)
        # What the clock shows now for the first time, and what it has jumped over.
        fresh = [
            shown
            for shown in _walls(seen + MINUTE, wall)
            if shown > newest and _is_due(timetable, when, shown)
        ]
        seen, newest = wall, max(newest, wall)
        if fresh:
            found.append(at)
    return found


def _minutes(start: datetime, end: datetime) -> Iterator[datetime]:
    return (start + n * MINUTE for n in range(1, (end - start) // MINUTE + 1))


def _walls(first: datetime, last: datetime) -> Iterator[datetime]:
    return (first + n * MINUTE for n in range((last - first) // MINUTE + 1))


def _is_due(timetable: Timetable, when: WallClock, wall: datetime) -> bool:
    in_time = timetable.first <= wall.date() <= (timetable.last or date.max)
    return in_time and wall.time() in when.times and when.falls_on(wall.date())


def moves_of(zone: str, year: int) -> list[datetime]:
    """Return the beginning of each day of a year on which a clock is moved."""
    days = (datetime(year, 1, 1, tzinfo=UTC) + n * DAY for n in range(365))
    local = ZoneInfo(zone)
    return [
        day
        for day in days
        if day.astimezone(local).utcoffset() != (day + DAY).astimezone(local).utcoffset()
    ]


times = st.lists(
    st.builds(time, st.integers(0, 23), st.sampled_from([0, 5, 15, 30, 59])),
    min_size=1,
    max_size=6,
    unique=True,
).map(lambda found: tuple(sorted(found)))
walls = st.one_of(
    st.builds(Daily, times=times),
    st.builds(
        Weekly,
        times=times,
        weekdays=st.lists(st.integers(0, 6), min_size=1, unique=True).map(tuple),
    ),
    st.builds(Monthly, times=times, day=st.integers(1, 31)),
    st.sampled_from(["*/10 * * * *", "30 0-4 * * *", "15 2 * * 0", "0 0 1,31 * 6"]).map(read_cron),
)


@st.composite
def stretches(draw: st.DrawFn) -> tuple[str, datetime]:
    """Draw a zone and the beginning of some days there, mostly such on which its clock is moved."""
    zone, year = draw(st.sampled_from(ZONES)), draw(st.integers(1995, 2035))
    moves = moves_of(zone, year)
    day = datetime(year, 1, 1, tzinfo=UTC) + draw(st.integers(0, 360)) * DAY
    is_near: int = draw(st.integers(0, 3))
    if moves and is_near:
        day = draw(st.sampled_from(moves)) - DAY
    return zone, day + draw(st.integers(0, 24 * 60)) * MINUTE


def within(timetable: Timetable, start: datetime, end: datetime) -> list[datetime]:
    dues = due_times(timetable, after=start)
    return [due.at for due in takewhile(lambda due: due.at <= end, dues)]


@given(stretches(), walls, st.integers(0, 3), st.one_of(st.none(), st.integers(0, 3)))
def test_due_times_are_those_that_the_wall_clock_shows(
    stretch: tuple[str, datetime], when: WallClock, first: int, length: int | None
) -> None:
    zone, start = stretch
    begin = start.astimezone(ZoneInfo(zone)).date() + (first - 1) * DAY
    last = None if length is None else begin + length * DAY
    timetable = Timetable(when=when, zone=zone, first=begin, last=last)
    end = start + 3 * DAY
    expected = due_by_looking(timetable, start, end)
    found = within(timetable, start, end)
    assert found == expected
    newest = newest_due(timetable, after=start, until=end)
    assert (newest and newest.at) == (expected[-1] if expected else None)


def midnight_after(day: date, zone: str) -> datetime:
    """Return when a day is over; a clock that goes back to it once more, as that of St. John's did
    at 0:01, does not open it again."""
    midnights = Timetable(when=Daily(times=(time(),)), zone=zone, first=day + DAY)
    return next(
        due_times(midnights, after=datetime(day.year, day.month, day.day, tzinfo=UTC) - DAY)
    ).at


@given(
    stretches(),
    st.sampled_from([1, 7, 60, 90, 1440, 10_000]),
    st.integers(-3, 3),
    st.one_of(st.none(), st.integers(0, 3)),
    st.integers(0, 5000),
)
@example(("America/St_Johns", datetime(1995, 10, 28, tzinfo=UTC)), 1, 0, 1, 1591)
def test_elapsed_times_are_evenly_apart_whatever_the_clock_does(
    stretch: tuple[str, datetime], minutes: int, first: int, length: int | None, wait: int
) -> None:
    zone, start = stretch
    local = ZoneInfo(zone)
    begin = start.astimezone(local).date() + first * DAY
    last = None if length is None else begin + length * DAY
    timetable = Timetable(when=Every(minutes=minutes), zone=zone, first=begin, last=last)
    end = start + wait * MINUTE
    midnights = Timetable(when=Daily(times=(time(),)), zone=zone, first=begin)
    midnight = next(due_times(midnights, after=start - 10 * DAY)).at
    over = None if last is None else midnight_after(last, zone)
    step = minutes * MINUTE
    expected = [
        midnight + n * step
        for n in range((end - midnight) // step + 1)
        if midnight + n * step > start and (over is None or midnight + n * step < over)
    ]
    found = within(timetable, start, end)
    assert found == expected
    newest = newest_due(timetable, after=start, until=end)
    assert (newest and newest.at) == (expected[-1] if expected else None)


def next_due(when: Every | WallClock, zone: str, after: datetime, *, n: int = 1) -> list[Due]:
    timetable = Timetable(when=when, zone=zone, first=date(2020, 1, 1))
    return list(islice(due_times(timetable, after=after), n))


def test_time_that_does_not_exist_is_due_when_the_clock_has_jumped() -> None:
    (due,) = next_due(
        Daily(times=(time(2, 30),)), "Europe/Berlin", datetime(2026, 3, 28, 12, tzinfo=UTC)
    )
    assert due == Due(
        at=datetime(2026, 3, 29, 1, tzinfo=UTC),
        wall=datetime.fromisoformat("2026-03-29T02:30"),
        mark=Mark.JUMPED,
    )


def test_time_that_comes_twice_is_due_the_first_time() -> None:
    after = datetime(2026, 10, 24, 12, tzinfo=UTC)
    one, two = next_due(Daily(times=(time(2, 30),)), "Europe/Berlin", after, n=2)
    assert one == Due(
        at=datetime(2026, 10, 25, 0, 30, tzinfo=UTC),
        wall=datetime.fromisoformat("2026-10-25T02:30"),
        mark=Mark.TWICE,
    )
    assert (two.at, two.mark) == (datetime(2026, 10, 26, 1, 30, tzinfo=UTC), None)


def test_moment_that_is_due_by_itself_too_is_due_once_and_not_marked() -> None:
    when = Daily(times=(time(2), time(2, 30), time(3)))
    one, two = next_due(when, "Europe/Berlin", datetime(2026, 3, 28, 12, tzinfo=UTC), n=2)
    assert (one.at, one.mark) == (datetime(2026, 3, 29, 1, tzinfo=UTC), None)
    assert two.at == datetime(2026, 3, 30, 0, tzinfo=UTC)


def test_day_that_a_zone_left_out_is_due_when_the_next_begins() -> None:
    fridays = Weekly(times=(time(9),), weekdays=(4,))
    timetable = Timetable(when=fridays, zone="Pacific/Apia", first=date(2011, 12, 25))
    due = next(due_times(timetable, after=datetime(2011, 12, 25, tzinfo=UTC)))
    assert (due.at, due.mark) == (datetime(2011, 12, 30, 10, tzinfo=UTC), Mark.JUMPED)
    assert due.wall.isoformat() == "2011-12-30T09:00:00"


def test_day_31_is_the_last_day_of_every_month() -> None:
    dues = next_due(Monthly(times=(time(9),), day=31), "UTC", datetime(2028, 1, 1, tzinfo=UTC), n=4)
    assert [due.wall.day for due in dues] == [31, 29, 31, 30]
    dues = next_due(Monthly(times=(time(9),), day=30), "UTC", datetime(2027, 1, 1, tzinfo=UTC), n=4)
    assert [due.wall.day for due in dues] == [30, 28, 30, 30]


def test_rarest_day_is_found_and_what_never_comes_ends() -> None:
    after = datetime(2096, 3, 1, tzinfo=UTC)
    (due,) = next_due(read_cron("0 9 29 2 *"), "UTC", after)
    assert due.at == datetime(2104, 2, 29, 9, tzinfo=UTC)
    assert next_due(read_cron("0 9 30 2 *"), "UTC", after) == []


def test_newest_of_a_long_absence_is_found_without_counting() -> None:
    timetable = Timetable(when=Every(minutes=1), zone="UTC", first=date(1990, 1, 1))
    until = datetime(2030, 1, 1, 0, 0, 30, tzinfo=UTC)
    due = newest_due(timetable, after=datetime(1990, 1, 1, tzinfo=UTC), until=until)
    assert due is not None
    assert due.at == datetime(2030, 1, 1, tzinfo=UTC)
    assert newest_due(timetable, after=until, until=until + 29 * timedelta(seconds=1)) is None


@pytest.mark.parametrize("when", [Every(minutes=5), Daily(times=(time(9), time(23)))])
def test_nothing_is_due_after_the_last_day(when: Every | Daily) -> None:
    timetable = Timetable(when=when, zone="UTC", first=date(2026, 1, 1), last=date(2026, 1, 2))
    over = datetime(2026, 1, 3, tzinfo=UTC)
    assert list(due_times(timetable, after=over)) == []
    assert list(due_times(timetable, after=over - DAY)) != []
    assert newest_due(timetable, after=over, until=over + 9 * DAY) is None
    newest = newest_due(timetable, after=over - 2 * DAY, until=over + 9 * DAY)
    assert newest is not None
    assert newest.at.date() == date(2026, 1, 2)
