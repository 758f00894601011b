"""The purses of a call: under which names its money is promised and spent, in every store."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import date

    from engine.core.effects import CallRecord


def run_purse(run: int) -> str:
    return f"run {run}"


def agent_purse(run: int, agent: int) -> str:
    return f"run {run} agent {agent}"


def day_purse(day: date) -> str:
    return f"day {day.isoformat()}"


def month_purses(schedule: int) -> str:
    """Return how the names of a schedule's purses begin."""
    return f"schedule {schedule} month "


def month_purse(schedule: int, day: date) -> str:
    """Return the purse of the runs of a schedule in the month of a day."""
    return f"{month_purses(schedule)}{day:%Y-%m}"


def purses_of(call: CallRecord, *, run: int, schedule: int | None) -> tuple[str, ...]:
    """Return the names of all purses that a reserved call is paid from.

    A run that no schedule has asked for has no month's.
    """
    assert call.reserved_on is not None
    names = run_purse(run), agent_purse(run, call.agent), day_purse(call.reserved_on)
    return names if schedule is None else (*names, month_purse(schedule, call.reserved_on))
