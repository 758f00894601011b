"""What people ask of a run, from any process."""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

from engine.export.summary import summarise
from engine.models import Run, RunControl
from engine.runs.refusals import RunRefused


def stop(run: Run, *, who: str) -> str:
    """Ask for a run's end; return in a sentence what comes of it.

    Turns in flight finish first. A run that is queued ends at once. Raises `RunRefused` for one
    that began meanwhile.
    """
    if run.status == Run.Status.QUEUED:
        return _stop_queued(run)
    RunControl.objects.filter(run=run).update(
        wish=RunControl.Wish.STOP, asked_by=who, asked_at=timezone.now()
    )
    return f"Run {run.pk} is asked: it stops when the turns in flight are over."


def _stop_queued(run: Run) -> str:
    with transaction.atomic():
        n_stopped = Run.objects.filter(pk=run.pk, status=Run.Status.QUEUED).update(
            status=Run.Status.STOPPED,
            end_reason=Run.EndReason.STOPPED,
            finished_at=timezone.now(),
        )
        if n_stopped:
            Run.objects.filter(pk=run.pk).update(summary=summarise(run.pk))
    if not n_stopped:
        raise RunRefused(f"Run {run.pk} began at this moment: try again.")
    return f"Run {run.pk} had not begun: it is stopped."
