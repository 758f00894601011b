"""Schedules as people change them: saved, switched off, deleted; and what each of them says.

Whoever changes one holds its row, as whoever follows it does: neither sees the other's half.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Final

from django.db import transaction

from engine.core.settings import RefusedSetting
from engine.core.timetable import Timetable, due_times
from engine.core.timetable_texts import check_zone, due_in_words, in_words, read_when
from engine.models import Purse, Run, RunSchedule
from engine.models.runs import LIVE
from engine.runs.asked import check_asked, configured
from engine.runs.controls import stop
from engine.runs.refusals import RunRefused
from engine.store.purses import month_purses

if TYPE_CHECKING:
    from datetime import datetime

    from engine.core.config import RunConfig
    from engine.core.timetable import Due

#: So many of the next times are told.
TOLD: Final = 5
#: What a schedule is followed by: a change of one of these makes its earlier times the past.
_OF_TIME: Final = (
    "kind",
    "every_minutes",
    "times",
    "weekdays",
    "month_day",
    "cron",
    "time_zone",
    "first_date",
    "last_date",
    "enabled",
)


def timetable_of(schedule: RunSchedule) -> Timetable:
    """Return when a schedule is due, or raise RefusedSetting with what is wrong in its row."""
    check_zone(schedule.time_zone)
    if schedule.last_date is not None and schedule.last_date < schedule.first_date:
        raise RefusedSetting("The last date is before the first: give a later one, or none.")
    when = read_when(
        schedule.kind,
        minutes=schedule.every_minutes,
        times=schedule.times,
        weekdays=schedule.weekdays,
        day=schedule.month_day,
        cron=schedule.cron,
    )
    return Timetable(
        when=when, zone=schedule.time_zone, first=schedule.first_date, last=schedule.last_date
    )


def config_of(schedule: RunSchedule) -> RunConfig:
    """Return what the next run of a schedule is asked for; raise RefusedSetting if it cannot be."""
    if schedule.simulation is None:
        raise RefusedSetting("Its simulation is gone: choose another one.")
    check_asked(schedule.asked)
    caps = {"max_nano_usd": schedule.max_nano_usd}
    return configured(schedule.simulation, {**schedule.asked, **caps})


def check_schedule(schedule: RunSchedule, *, now: datetime) -> None:
    """Raise RefusedSetting, in one sentence, for a schedule that cannot be followed."""
    timetable_of(schedule)
    config_of(schedule)
    if schedule.enabled and next_due(schedule, after=now) is None:
        raise RefusedSetting(
            "It would never be due again: look at its days and dates, or switch it off."
        )


def next_due(schedule: RunSchedule, *, after: datetime) -> Due | None:
    return next(due_times(timetable_of(schedule), after=after), None)


def told_times(schedule: RunSchedule, *, after: datetime) -> list[str]:
    """Return the next times of a schedule in words, marked where a clock is moved."""
    timetable = timetable_of(schedule)
    dues = islice(due_times(timetable, after=after), TOLD)
    return [due_in_words(due, timetable.zone) for due in dues]


def told(schedule: RunSchedule) -> str:
    """Return in words when a schedule is due, or why nobody can tell."""
    try:
        return in_words(timetable_of(schedule))
    except RefusedSetting as refusal:
        return str(refusal)


def save_schedule(schedule: RunSchedule, *, who: str, now: datetime) -> None:
    """Save a schedule that somebody wrote; raises RefusedSetting for one that cannot be followed.

    Times before a change of its timetable are past, also those that nobody has seen. Switched off,
    what it has asked for and has not begun is withdrawn.
    """
    with transaction.atomic():
        stored = RunSchedule.objects.select_for_update().filter(pk=schedule.pk).first()
        is_same = stored is not None and all(
            getattr(stored, name) == getattr(schedule, name) for name in _OF_TIME
        )
        schedule.settled_until = stored.settled_until if stored is not None and is_same else now
        check_schedule(schedule, now=schedule.settled_until)
        due = next_due(schedule, after=schedule.settled_until)
        schedule.next_at = None if due is None else due.at
        schedule.problem = ""
        schedule.changed_by = who
        schedule.save()
        if not schedule.enabled:
            _withdraw(schedule, "Its schedule was switched off.", who=who)


def delete_schedule(schedule: RunSchedule, *, who: str) -> None:
    """Delete a schedule with its occasions; runs that ended stay, those that wait are withdrawn.

    Raises RunRefused while one of its runs is live: its money of a month is counted here.
    """
    with transaction.atomic():
        RunSchedule.objects.select_for_update().get(pk=schedule.pk)
        _withdraw(schedule, "Its schedule was deleted.", who=who)
        live = Run.objects.filter(occasion__schedule=schedule, status__in=LIVE).first()
        if live is not None:
            raise RunRefused(
                f"Run {live.pk} of {schedule} is {live.status}: stop it, or wait until it is over; "
                "or switch the schedule off."
            )
        Purse.objects.filter(name__startswith=month_purses(schedule.pk)).delete()
        schedule.delete()


def _withdraw(schedule: RunSchedule, sentence: str, *, who: str) -> None:
    """Stop what waits in the queue for a schedule; a driver that was quicker keeps its run."""
    for run in Run.objects.filter(occasion__schedule=schedule, status=Run.Status.QUEUED):
        with suppress(RunRefused):
            stop(run, who=who)
            Run.objects.filter(pk=run.pk).update(detail=sentence)
