"""A run ends: its row says so only when it is true, and only its own driver may say it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction
from django.utils import timezone

from engine.export.summary import summarise
from engine.loop.ending import Ending, EndReason
from engine.models import Run, RunLease, Turn
from engine.models.runs import LIVE
from engine.store.database import LeaseState, give_back_lease, take_lease

if TYPE_CHECKING:
    from datetime import datetime

    from engine.loop.figures import Figures

_PAUSES = frozenset(
    {
        EndReason.MONEY_CAP,
        EndReason.CALL_CAP,
        EndReason.CIRCUIT_OPEN,
        EndReason.PAUSE_REQUESTED,
    }
)


def status_after(reason: EndReason) -> Run.Status:
    """Return the state that a run is in after it ended, or paused, for this reason."""
    if reason in _PAUSES:
        return Run.Status.PAUSED
    match reason:
        case EndReason.STOPPED:
            return Run.Status.STOPPED
        case EndReason.FAILED:
            return Run.Status.FAILED
        case EndReason.INTERRUPTED:
            return Run.Status.INTERRUPTED
    return Run.Status.COMPLETED


def end(run_id: int, *, token: int, ending: Ending, figures: Figures, at: datetime) -> None:
    """Write how a run ended, `at` the time of its own clock, and give its lease back.

    A driver that lost the lease writes nothing.
    """
    status = status_after(ending.reason)
    with transaction.atomic():
        lease = RunLease.objects.select_for_update().filter(run_id=run_id, token=token).first()
        if lease is None:
            return
        _close_what_runs(run_id)
        _keep_figures(lease, figures)
        Run.objects.filter(pk=run_id, status__in=LIVE).update(
            status=status,
            end_reason=ending.reason,
            detail=ending.sentence,
            finished_at=None if status == Run.Status.PAUSED else at,
        )
        Run.objects.filter(pk=run_id).update(summary=summarise(run_id))
    give_back_lease(lease.simulation_id, token=token)


def mark_stopping(run_id: int) -> None:
    """Say that a run is on its way to its end: no new turns, those in flight finish."""
    Run.objects.filter(pk=run_id, status=Run.Status.RUNNING).update(status=Run.Status.STOPPING)


def interrupt(run: Run, lease: LeaseState) -> bool:
    """Fence a dead run's driver and mark the run interrupted; False if somebody was quicker."""
    token = take_lease(run.simulation_id, None, known_token=lease.token, owner="", seconds=0.0)
    if token is None:
        return False
    with transaction.atomic():
        _close_what_runs(run.pk)
        Run.objects.filter(pk=run.pk, status__in=LIVE).update(
            status=Run.Status.INTERRUPTED,
            end_reason=Run.EndReason.INTERRUPTED,
            detail="Its driver died.",
            finished_at=timezone.now(),
        )
        Run.objects.filter(pk=run.pk).update(summary=summarise(run.pk))
    return True


def _close_what_runs(run_id: int) -> None:
    """Mark turns that will never end; calls that died in flight stay booked at their estimate."""
    Turn.objects.filter(run_id=run_id, outcome="running").update(outcome="interrupted")


def _keep_figures(lease: RunLease, figures: Figures) -> None:
    lease.counters = figures.as_counters()
    lease.save(update_fields=["counters"])
