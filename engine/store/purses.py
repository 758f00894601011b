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


def purses_of(call: CallRecord, *, run: int) -> tuple[str, ...]:
    """Return the names of all purses that a reserved call is paid from."""
    assert call.reserved_on is not None
    return run_purse(run), agent_purse(run, call.agent), day_purse(call.reserved_on)
