"""Schedules for the tests: every day at nine in Berlin, saved the evening before."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

from engine.models import RunSchedule, Simulation
from engine.runs.schedules import save_schedule

#: 09:00 in Berlin is 08:00 UTC in winter.
EVENING = datetime(2026, 11, 30, 20, tzinfo=UTC)
NINE = datetime(2026, 12, 1, 8, tzinfo=UTC)


def schedule_row(simulation: Simulation | None, **given: Any) -> RunSchedule:
    """Return a schedule that is not saved yet."""
    fields: dict[str, Any] = {
        "name": "mornings",
        "kind": "daily",
        "times": "9:00",
        "time_zone": "Europe/Berlin",
        "first_date": date(2026, 11, 30),
        "owner": "ada",
        "asked": {"llm": "offline", "until_idle": True},
        **given,
    }
    return RunSchedule(simulation=simulation, **fields)


def make_schedule(simulation: Simulation | None = None, **given: Any) -> RunSchedule:
    """Save a schedule of this simulation, or of a new one."""
    if simulation is None:
        simulation, _ = Simulation.objects.get_or_create(name="main")
    schedule = schedule_row(simulation, **given)
    save_schedule(schedule, who="ada", now=EVENING)
    return schedule
