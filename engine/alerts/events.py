"""The events that people are told of, found in the rows; each with what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.db.models import Count, Min, Q

from engine.alerts.usual import is_quick, is_slow, usual_seconds
from engine.models import Alert, Occasion, Proposal, Run, RunLease, RunSchedule
from engine.store.database import read_lease

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

#: What ended longer ago than this is no news any more.
NEWS: Final = timedelta(days=1)
#: How long a run ended by now is compared with earlier ones.
JUST_ENDED: Final = timedelta(hours=1)
START_WITHIN: Final = timedelta(minutes=5)
REVIEW_WITHIN: Final = timedelta(days=7)
#: A lease is renewed long before it ends; nobody has looked after one that is so much older.
LEASES_WITHOUT_A_DRIVER: Final = 2
SENTENCE_CHARACTERS: Final = 400
DRIVEN: Final = (Run.Status.RUNNING, Run.Status.STOPPING)
PAUSES: Final[Mapping[str, tuple[str, str]]] = {
    Run.EndReason.MONEY_CAP: (
        "met a cap of money and is paused",
        "Raise the cap that it met and resume the run, or leave it paused.",
    ),
    Run.EndReason.CALL_CAP: (
        "met its cap of model calls and is paused",
        "Raise the cap on its page and resume the run, or leave it paused.",
    ),
    Run.EndReason.CIRCUIT_OPEN: (
        "is paused, because the model failed too often in a row",
        "Look at the state of the model's service, then resume the run.",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened once: its key is the same whoever finds it, and whenever."""

    kind: Alert.Kind
    key: str
    simulation_id: int | None
    run_id: int | None = None
    schedule_id: int | None = None
    sentence: str
    next_step: str


def failed(now: datetime) -> Iterator[Event]:
    """Runs that failed, or whose process died, within a day."""
    ends = Q(status__in=(Run.Status.FAILED, Run.Status.INTERRUPTED), finished_at__gte=now - NEWS)
    for run in Run.objects.filter(ends).select_related("simulation"):
        has_died = run.status == Run.Status.INTERRUPTED
        yield _of_run(
            Alert.Kind.FAILED,
            run,
            said="was interrupted" if has_died else "failed",
            detail=run.detail,
            next_step=(
                "Start the next run: it goes on from what was stored."
                if has_died
                else "Cure what the sentence says, then start a new run."
            ),
        )


def paused(now: datetime) -> Iterator[Event]:
    """Runs that paused by themselves. Each pause of a run is another event, known by its driver."""
    waits = Q(status=Run.Status.PAUSED, end_reason__in=PAUSES)
    for run in Run.objects.filter(waits).select_related("simulation__lease"):
        said, next_step = PAUSES[run.end_reason]
        token = run.simulation.lease.token
        yield _of_run(
            Alert.Kind.PAUSED, run, said=said, detail=run.detail, next_step=next_step, nth=token
        )


def stalled(now: datetime) -> Iterator[Event]:
    """Runs that should be driven, and whose driver has not been heard of for two leases."""
    heard_by = now - LEASES_WITHOUT_A_DRIVER * timedelta(seconds=settings.SIM_LEASE_SECONDS)
    leases = RunLease.objects.filter(run__status__in=DRIVEN, beat_at__lt=heard_by)
    for lease in leases.select_related("run__simulation"):
        if lease.run is None or not read_lease(lease.simulation_id).is_expired:
            continue
        yield _of_run(
            Alert.Kind.STALLED,
            lease.run,
            said="stands still",
            detail=f"Its driver ({lease.owner}) was last heard of {_clock(lease.beat_at)}.",
            next_step="Look whether that process and a worker run; the next start takes it over.",
            nth=lease.token,
        )


def late(now: datetime) -> Iterator[Event]:
    """Runs that were asked for more than five minutes ago, and have not begun."""
    waits = Q(status=Run.Status.QUEUED, created_at__lt=now - START_WITHIN)
    for run in Run.objects.filter(waits).select_related("simulation", "ticket"):
        ticket = getattr(run, "ticket", None)
        waits_for = "" if ticket is None else ticket.waits_for
        yield _of_run(
            Alert.Kind.LATE,
            run,
            said="has not started",
            detail=f"It was asked for {_clock(run.created_at)}. {waits_for}",
            next_step="Look whether a worker runs, and whether other runs fill all places.",
        )


def unseen(now: datetime) -> Iterator[Event]:
    """Times of schedules that are over since five minutes, and that no worker has looked at."""
    due = Q(enabled=True, next_at__lt=now - START_WITHIN)
    for schedule in RunSchedule.objects.filter(due):
        assert schedule.next_at is not None
        yield _of_schedule(
            schedule,
            schedule.next_at,
            said="No worker has looked at it since.",
            next_step="Look whether a worker of the queue runs is at work.",
        )


def without_a_run(now: datetime) -> Iterator[Event]:
    """Times of schedules within a day at which no run could begin."""
    outcomes = (Occasion.Outcome.MISSED, Occasion.Outcome.REFUSED)
    lost = Q(outcome__in=outcomes, decided_at__gte=now - NEWS)
    for occasion in Occasion.objects.filter(lost).select_related("schedule"):
        yield _of_schedule(
            occasion.schedule,
            occasion.intended_at,
            said=occasion.reason,
            next_step="Cure what the sentence says, or switch the schedule off.",
        )


def unusual(now: datetime) -> Iterator[Event]:
    """Runs that take, or took, over twice their usual time, and such as ended far too fast."""
    is_news = Q(status__in=DRIVEN) | Q(
        status=Run.Status.COMPLETED, finished_at__gte=now - JUST_ENDED
    )
    runs = Run.objects.filter(is_news, started_at__isnull=False)
    for run in runs.select_related("simulation"):
        assert run.started_at is not None
        usual = usual_seconds(run)
        took = ((run.finished_at or now) - run.started_at).total_seconds()
        if is_slow(took, usual):
            yield _of_run(
                Alert.Kind.SLOW,
                run,
                said=f"took {_minutes(took)}, usually {_minutes(usual)}",
                next_step="Look at its turns and model calls: stop it if it goes in circles.",
            )
        elif run.finished_at is not None and is_quick(took, usual):
            yield _of_run(
                Alert.Kind.QUICK,
                run,
                said=f"ended after {took:.0f} s, usually {_minutes(usual)}",
                next_step="Look at its page, why it ended: agents, channels or cohorts may be gone.",
            )


def unreviewed(now: datetime) -> Iterator[Event]:
    """Simulations with proposals that have waited over a week; told again each week."""
    waits = Q(state=Proposal.State.PENDING, proposed_at__lt=now - REVIEW_WITHIN)
    year, week, _ = now.isocalendar()
    for row in (
        Proposal.objects.filter(waits)
        .order_by("simulation")
        .values("simulation", "simulation__name")
        .annotate(n=Count("id"), oldest=Min("proposed_at"))
    ):
        are = "proposal waits" if row["n"] == 1 else "proposals wait"
        yield Event(
            kind=Alert.Kind.UNREVIEWED,
            key=f"unreviewed {row['simulation']} {year}-{week}",
            simulation_id=row["simulation"],
            sentence=f"{row['n']} {are} in {row['simulation__name']}, the oldest since "
            f"{row['oldest']:%d %B}.",
            next_step="Review them: agents with unreviewed proposals write no new posts.",
        )


FINDERS: Final[tuple[Callable[[datetime], Iterator[Event]], ...]] = (
    failed,
    paused,
    stalled,
    late,
    unseen,
    without_a_run,
    unusual,
    unreviewed,
)


def _of_run(
    kind: Alert.Kind,
    run: Run,
    *,
    said: str,
    next_step: str,
    detail: str = "",
    nth: int | None = None,
) -> Event:
    """Return an event of a run; with `nth` the same kind may happen to it again."""
    key = f"{kind} {run.pk}" if nth is None else f"{kind} {run.pk} {nth}"
    sentence = f"Run {run.pk} of {run.simulation.name} {said}. {one_line(detail)}"
    return Event(
        kind=kind,
        key=key,
        simulation_id=run.simulation_id,
        run_id=run.pk,
        sentence=sentence.strip(),
        next_step=next_step,
    )


def _of_schedule(
    schedule: RunSchedule, intended_at: datetime, *, said: str, next_step: str
) -> Event:
    """Return the event that a time of a schedule gave no run, the same whoever finds it."""
    return Event(
        kind=Alert.Kind.LATE,
        key=f"late schedule {schedule.pk} {intended_at:%Y-%m-%dT%H:%M}",
        simulation_id=schedule.simulation_id,
        schedule_id=schedule.pk,
        sentence=f"The schedule {schedule.name} was to begin a run {_clock(intended_at)}. "
        f"{one_line(said)}",
        next_step=next_step,
    )


def one_line(text: str) -> str:
    """Return a text that may come from a model's service as one bounded line without controls."""
    words = "".join(char if char.isprintable() else " " for char in text).split()
    line = " ".join(words)
    return line if len(line) <= SENTENCE_CHARACTERS else f"{line[:SENTENCE_CHARACTERS]} …"


def _clock(at: datetime | None) -> str:
    return "never" if at is None else f"{at:%d %B %H:%M} UTC"


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.0f} min"
