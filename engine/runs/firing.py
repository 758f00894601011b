"""Schedules are followed: whoever beats calls `fire_due`, and each due time gets one run, or a reason.

Any number of processes may call it at the same moment. A schedule that cannot be followed says so
and holds nobody up: each is followed in a transaction of its own, and a row that somebody holds is
left to him.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.db import transaction

from engine.core.days import local_day
from engine.core.prices import in_usd
from engine.core.settings import RefusedSetting
from engine.core.timetable import Due, due_times, newest_due
from engine.models import Occasion, Run, RunSchedule
from engine.models.runs import LIVE
from engine.runs.controls import stop
from engine.runs.queue import request
from engine.runs.refusals import RunRefused, check_priced
from engine.runs.schedules import config_of, next_due, timetable_of
from engine.store.database import month_money

if TYPE_CHECKING:
    from datetime import datetime


log = logging.getLogger(__name__)

#: A time that nobody has seen for so long is missed.
LATE: Final = timedelta(minutes=5)
_WAITS: Final = (Run.Status.QUEUED, *LIVE)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Decision:
    outcome: Occasion.Outcome
    reason: str = ""
    run: Run | None = None


def fire_due(now: datetime) -> list[Occasion]:
    """Follow every schedule that is due at this moment; return what was decided, in their order.

    Of several times that went by unseen only the newest counts.
    """
    due = RunSchedule.objects.filter(enabled=True, next_at__lte=now).order_by("next_at", "pk")
    found = (_follow_alone(pk, now) for pk in list(due.values_list("pk", flat=True)))
    return [occasion for occasion in found if occasion is not None]


def fire_now(schedule: RunSchedule, *, who: str, now: datetime) -> Occasion:
    """Ask for the run of a schedule outside of its times, by the same rules; return what came of it.

    Of two who ask at once, or one who clicks twice, one gets a run: the other's waits in the way.
    """
    with transaction.atomic():
        locked = RunSchedule.objects.select_for_update(of=("self",)).get(pk=schedule.pk)
        decision = _decide(locked, Due(at=now, wall=now), now)
        asked = f"Asked for by {who}."
        return Occasion.objects.create(
            schedule=locked,
            intended_at=now,
            decided_at=now,
            outcome=decision.outcome,
            reason=f"{asked} {decision.reason}".strip(),
            run=decision.run,
        )


def _follow_alone(pk: int, now: datetime) -> Occasion | None:
    """Follow one schedule; whatever is wrong with it is written down at it."""
    try:
        with transaction.atomic():
            return _follow(pk, now)
    except RefusedSetting as refusal:
        RunSchedule.objects.filter(pk=pk).update(problem=str(refusal), next_at=None)
    except Exception as error:  # one schedule's fault must not be the others'
        problem = f"It could not be followed, and is tried again: {error}"
        if RunSchedule.objects.filter(pk=pk).exclude(problem=problem).update(problem=problem):
            log.exception("Schedule %s could not be followed", pk)
    return None


def _follow(pk: int, now: datetime) -> Occasion | None:
    rows = RunSchedule.objects.select_for_update(skip_locked=True, of=("self",))
    schedule = rows.filter(pk=pk, enabled=True, next_at__lte=now).first()
    if schedule is None:
        return None  # somebody else has it, or had it
    timetable = timetable_of(schedule)
    due = newest_due(timetable, after=schedule.settled_until, until=now)
    occasion = None if due is None else _decided(schedule, due, now)
    following = next_due(schedule, after=now)
    is_refused = occasion is not None and occasion.outcome == Occasion.Outcome.REFUSED
    RunSchedule.objects.filter(pk=pk).update(
        settled_until=now,
        next_at=None if following is None else following.at,
        problem=occasion.reason if occasion is not None and is_refused else "",
    )
    return occasion


def _decided(schedule: RunSchedule, due: Due, now: datetime) -> Occasion | None:
    """Take an occasion, which only one can, and decide what comes of it."""
    first = next(due_times(timetable_of(schedule), after=schedule.settled_until))
    occasion, is_ours = Occasion.objects.get_or_create(
        schedule=schedule,
        intended_at=due.at,
        defaults={
            "decided_at": now,
            "outcome": Occasion.Outcome.MISSED,
            "missed_since": first.at if first.at < due.at else None,
        },
    )
    if not is_ours:
        return None
    decision = _decide(schedule, due, now)
    occasion.outcome, occasion.reason = decision.outcome, decision.reason
    occasion.run = decision.run
    occasion.save(update_fields=["outcome", "reason", "run"])
    return occasion


def _decide(schedule: RunSchedule, due: Due, now: datetime) -> _Decision:
    if now - due.at > LATE and schedule.missed == RunSchedule.Missed.SKIP:
        return _Decision(
            outcome=Occasion.Outcome.MISSED,
            reason="No cluster was there to begin it within five minutes of its time.",
        )
    try:
        with transaction.atomic():
            config = config_of(schedule)
            sentence = _in_the_way(schedule) or _no_money(schedule, now)
            if sentence:
                return _Decision(outcome=Occasion.Outcome.SKIPPED, reason=sentence)
            assert schedule.simulation is not None
            if schedule.month_nano_usd is not None:
                check_priced(
                    schedule.simulation, replace(config, max_nano_usd=schedule.month_nano_usd)
                )
            run = request(schedule.simulation, config, who=_who(schedule))
    except (RunRefused, RefusedSetting) as refusal:
        return _Decision(outcome=Occasion.Outcome.REFUSED, reason=str(refusal))
    return _Decision(outcome=Occasion.Outcome.RUN, run=run)


def _who(schedule: RunSchedule) -> str:
    return f"schedule {schedule.name} of {schedule.owner}"[:150]


def _in_the_way(schedule: RunSchedule) -> str:
    """Return why a run must not be asked for now, by the overlap policy; "" if it may."""
    there = Run.objects.filter(simulation=schedule.simulation, status__in=_WAITS).order_by("pk")
    own = there.filter(occasion__schedule=schedule)
    if schedule.overlap == RunSchedule.Overlap.SKIP:
        old = there.first()
        return "" if old is None else f"Run {old.pk} of {old.simulation} is {old.status}."
    waiting = own.filter(status=Run.Status.QUEUED).first()
    if waiting is not None:
        return f"Run {waiting.pk} of this schedule waits already."
    if schedule.overlap == RunSchedule.Overlap.STOP:
        for run in own:
            with suppress(RunRefused):  # it is over by now
                stop(run, who=_who(schedule))
    return ""


def _no_money(schedule: RunSchedule, now: datetime) -> str:
    """Return that the money of the month is spent, or ""."""
    if schedule.month_nano_usd is None:
        return ""
    month = month_money(schedule.pk, local_day(now, settings.TIME_ZONE))
    if month.has_room_for(0):
        return ""
    return (
        f"Its runs have spent or promised {in_usd(month.spent + month.reserved)} of the "
        f"{in_usd(schedule.month_nano_usd)} that they may in {month.month:%Y-%m}."
    )
