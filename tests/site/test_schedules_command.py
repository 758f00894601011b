"""Schedules in words, as `manage.py schedules` tells them, and followed by hand."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from django.core.management import call_command

from engine.models import Run, RunSchedule
from engine.runs.schedules import told, told_times
from tests.site.schedule_rows import EVENING, NINE, make_schedule

pytestmark = pytest.mark.django_db

DAY = timedelta(days=1)


def said_by(*arguments: str, at: datetime = EVENING) -> list[str]:
    out = io.StringIO()
    with time_machine.travel(at, tick=False):
        call_command("schedules", *arguments, stdout=out)
    return out.getvalue().splitlines()


def test_schedules_are_told_from_the_terminal() -> None:
    assert said_by() == ["There is no schedule: write one in the admin."]
    make_schedule()
    make_schedule(name="an off one", enabled=False)
    make_schedule(name="bad")
    RunSchedule.objects.filter(name="bad").update(times="soon", problem="Soon.", simulation=None)
    lines = said_by()
    assert lines[:4] == [
        "an off one (main, off): Every day at 09:00 (Europe/Berlin), from 30 November 2026.",
        "bad (no simulation, on): “soon” is no time of the day: write it like 9:00 or 17:30.",
        "  It cannot be followed: Soon.",
        "mornings (main, on): Every day at 09:00 (Europe/Berlin), from 30 November 2026.",
    ]
    assert lines[4] == "  Tuesday, 1 December 2026, 09:00 (UTC+01:00)"
    assert len(lines) == 9


def test_what_is_due_is_followed_from_the_terminal() -> None:
    make_schedule()
    assert said_by("--fire") == ["Nothing is due."]
    lines = said_by("--fire", at=NINE)
    run = Run.objects.get()
    assert lines == [f"mornings at 2026-12-01 08:00 UTC: run {run.pk} is asked for."]
    assert said_by("--fire", at=NINE + DAY) == [
        f"mornings at 2026-12-02 08:00 UTC: Run {run.pk} of main is queued."
    ]


def test_next_five_times_are_told_with_their_nights() -> None:
    schedule = make_schedule(times="2:30")
    times = told_times(schedule, after=datetime(2027, 3, 26, 12, tzinfo=UTC))
    assert len(times) == 5
    assert times[1].endswith("02:30 does not exist then, the clock jumps over it")
    assert told(schedule) == "Every day at 02:30 (Europe/Berlin), from 30 November 2026."
    schedule.times = "x"
    assert told(schedule).startswith("“x” is no time of the day")
