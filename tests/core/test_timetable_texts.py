"""Timetables read from what people write, cron text against a library, and said back in words."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from itertools import islice

import pytest
from croniter import croniter
from hypothesis import given
from hypothesis import strategies as st

from engine.core.cron import Cron, read_cron
from engine.core.settings import RefusedSetting
from engine.core.timetable import Daily, Every, Monthly, Timetable, WallClock, Weekly, due_times
from engine.core.timetable_texts import (
    check_zone,
    due_in_words,
    in_words,
    listed,
    read_times,
    read_when,
)

FIRST = date(2026, 12, 1)
NINE = (time(9),)


def field(lowest: int, highest: int) -> st.SearchStrategy[str]:
    number = st.integers(lowest, highest)
    # The library takes a range of one number, and a full one, for a star.
    spans = st.lists(number, min_size=2, max_size=2, unique=True).map(
        lambda pair: f"{min(pair)}-{max(pair)}"
    )
    steps = st.tuples(spans, st.integers(1, 7)).map(lambda pair: f"{pair[0]}/{pair[1]}")
    part = st.one_of(number.map(str), spans, steps)
    return st.one_of(st.just("*"), st.lists(part, min_size=1, max_size=3).map(",".join))


@given(st.tuples(field(0, 59), field(0, 23), field(1, 30), field(1, 12), field(0, 5)).map(" ".join))
def test_cron_text_means_what_a_library_says(text: str) -> None:
    after = datetime(2026, 1, 31, 12, tzinfo=UTC)
    timetable = Timetable(when=read_cron(text), zone="UTC", first=date(2026, 1, 1))
    found = [due.at for due in islice(due_times(timetable, after=after), 20)]
    library = croniter(text, after)
    assert found == [library.get_next(datetime) for _ in found]


def test_cron_text_that_no_library_ends_is_never_due() -> None:
    timetable = Timetable(when=read_cron("0 0 31 feb,apr *"), zone="UTC", first=FIRST)
    assert list(due_times(timetable, after=datetime(2026, 1, 1, tzinfo=UTC))) == []


def test_days_with_a_star_must_both_fit() -> None:
    cron = read_cron("0 9 */2 * mon")
    assert [day for day in range(1, 15) if cron.falls_on(date(2026, 6, day))] == [1]
    either = read_cron("0 9 2 * mon")
    assert [day for day in range(1, 15) if either.falls_on(date(2026, 6, day))] == [1, 2, 8]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "0 9 * *",
            "The cron text has 4 fields, and it needs five: minute, hour, day, month, week",
        ),
        ("60 9 * * *", "The minute of the cron text is “60”: write \\*, numbers from 0 to 59"),
        ("0 9-7 * * *", "The hour of the cron text is “9-7”"),
        ("0 9 1- * *", "The day of the cron text is “1-”"),
        ("0 9 * foo *", "The month of the cron text is “foo”"),
        ("*/0 9 * * *", "The minute of the cron text is “\\*/0”"),
        ("0 9 * * fri#2", "The weekday of the cron text is “fri#2”"),
        ("0 9 L * *", "The day of the cron text is “l”"),
        ("0 99999999999999999999 * * *", "The hour of the cron text"),
        ("@daily", "The cron text has 1 fields"),
        (", 9 * * *", "The minute of the cron text is “”"),
    ],
)
def test_cron_text_that_cannot_be_read_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(RefusedSetting, match=sentence):
        read_cron(text)


def read(kind: str, **given: object) -> Every | WallClock:
    blank: dict[str, object] = {
        "minutes": None,
        "times": "",
        "weekdays": "",
        "day": None,
        "cron": "",
    }
    return read_when(kind, **(blank | given))  # type: ignore[arg-type]


def test_each_kind_is_read_from_what_it_needs() -> None:
    assert read("every", minutes=90) == Every(minutes=90)
    assert read("daily", times="17:30,9:00 09:00") == Daily(times=(time(9), time(17, 30)))
    assert read("weekly", times="9:00", weekdays="40") == Weekly(times=NINE, weekdays=(0, 4))
    assert read("monthly", times="9:00", day=31) == Monthly(times=NINE, day=31)
    cron = read("cron", cron="0  9 * * MON")
    assert cron == Cron(
        text="0 9 * * mon",
        times=NINE,
        days=frozenset(range(1, 32)),
        months=frozenset(range(1, 13)),
        weekdays=frozenset({0}),
        either=False,
    )


@pytest.mark.parametrize(
    ("kind", "given", "sentence"),
    [
        ("every", {"minutes": 0}, "Say how many minutes or hours lie between two times"),
        ("every", {}, "Say how many minutes or hours lie between two times"),
        ("daily", {}, "Give at least one time of the day, like 9:00"),
        ("daily", {"times": "9 Uhr"}, "“9” is no time of the day: write it like 9:00"),
        ("daily", {"times": "24:00"}, "“24:00” is no time of the day"),
        ("weekly", {"times": "9:00", "weekdays": "7"}, "Choose at least one day of the week"),
        ("monthly", {"times": "9:00", "day": 32}, "Choose a day of the month"),
        ("yearly", {}, "There is no kind of timetable “yearly”, but every, daily, weekly"),
    ],
)
def test_what_a_kind_lacks_is_said(kind: str, given: dict[str, object], sentence: str) -> None:
    with pytest.raises(RefusedSetting, match=sentence):
        read(kind, **given)


@pytest.mark.parametrize("zone", ["Mars/Olympus", "", "../etc/passwd", "Europe", "a\0b"])
def test_zone_that_nobody_knows_is_refused(zone: str) -> None:
    check_zone("Europe/Berlin")
    with pytest.raises(RefusedSetting, match="There is no time zone “"):
        check_zone(zone)


@pytest.mark.parametrize(
    ("when", "words"),
    [
        (Every(minutes=1), "Every minute (UTC), counted from midnight of 1 December 2026."),
        (Every(minutes=90), "Every 90 minutes (UTC), counted from midnight of 1 December 2026."),
        (Every(minutes=60), "Every hour (UTC), counted from midnight of 1 December 2026."),
        (Every(minutes=360), "Every 6 hours (UTC), counted from midnight of 1 December 2026."),
        (Daily(times=NINE), "Every day at 09:00 (UTC), from 1 December 2026."),
        (
            Weekly(times=(time(9), time(12), time(17, 30)), weekdays=(0, 2)),
            "Every Monday and Wednesday at 09:00, 12:00 and 17:30 (UTC), from 1 December 2026.",
        ),
        (
            Monthly(times=NINE, day=5),
            "On day 5 of each month at 09:00 (UTC), from 1 December 2026.",
        ),
        (
            Monthly(times=NINE, day=30),
            (
                "On day 30 of each month (in a shorter month on its last) at 09:00 (UTC), "
                "from 1 December 2026."
            ),
        ),
        (
            Monthly(times=NINE, day=31),
            "On the last day of each month at 09:00 (UTC), from 1 December 2026.",
        ),
        (
            read_cron("0 9 * * 6,7"),
            "On Saturday and Sunday at 09:00 (UTC), from 1 December 2026.",
        ),
        (
            read_cron("0 9 1,15 * *"),
            "On day 1 and 15 of the month at 09:00 (UTC), from 1 December 2026.",
        ),
        (
            read_cron("0 9 1 6 1"),
            "On day 1 of the month, and on Monday in June at 09:00 (UTC), from 1 December 2026.",
        ),
        (
            read_cron("0 9 */16 * 1,2"),
            (
                "On day 1 and 17 of the month if that is a Monday or Tuesday at 09:00 (UTC), "
                "from 1 December 2026."
            ),
        ),
        (read_cron("0 9 1-31 * 1"), "Every day at 09:00 (UTC), from 1 December 2026."),
        (
            read_cron("* * * * *"),
            "Every day at each minute of every hour (UTC), from 1 December 2026.",
        ),
        (
            read_cron("0,30 8-12 * * *"),
            "Every day at minute 0 and 30 of hour 8, 9, 10, 11 and 12 (UTC), from 1 December 2026.",
        ),
        (
            Daily(times=tuple(time(hour, hour) for hour in range(9))),
            "Every day at 9 times of the day, from 00:00 to 08:08 (UTC), from 1 December 2026.",
        ),
    ],
)
def test_timetable_is_said_back_in_words(when: Every | WallClock, words: str) -> None:
    assert in_words(Timetable(when=when, zone="UTC", first=FIRST)) == words


def test_last_day_is_said_too() -> None:
    timetable = Timetable(when=Daily(times=NINE), zone="UTC", first=FIRST, last=date(2027, 3, 31))
    assert in_words(timetable) == (
        "Every day at 09:00 (UTC), from 1 December 2026 until 31 March 2027."
    )


def test_moments_are_said_with_what_is_special_about_their_nights() -> None:
    zone = "Europe/Berlin"
    timetable = Timetable(when=Daily(times=read_times("2:30")), zone=zone, first=FIRST)
    spring = due_times(timetable, after=datetime(2027, 3, 27, 1, tzinfo=UTC))
    autumn = due_times(timetable, after=datetime(2027, 10, 30, 1, tzinfo=UTC))
    assert [due_in_words(due, zone) for due in islice(spring, 2)] == [
        "Saturday, 27 March 2027, 02:30 (UTC+01:00)",
        "Sunday, 28 March 2027, 03:00 (UTC+02:00): 02:30 does not exist then, the clock jumps over it",
    ]
    assert due_in_words(next(autumn), zone) == (
        "Sunday, 31 October 2027, 02:30 (UTC+02:00): this time comes twice then, and counts the "
        "first time"
    )


def test_time_of_a_day_that_was_left_out_names_that_day() -> None:
    zone = "Pacific/Apia"
    timetable = Timetable(when=Daily(times=NINE), zone=zone, first=date(2011, 12, 30))
    due = next(due_times(timetable, after=datetime(2011, 12, 30, tzinfo=UTC)))
    assert due_in_words(due, zone) == (
        "Saturday, 31 December 2011, 00:00 (UTC+14:00): 09:00 of 30 December 2011 does not exist "
        "then, the clock jumps over it"
    )


def test_words_are_listed_as_in_a_sentence() -> None:
    assert [listed(words) for words in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == [
        "",
        "a",
        "a and b",
        "a, b and c",
    ]
