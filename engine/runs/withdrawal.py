"""Runs that a schedule has asked for and that nobody has begun are taken back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils import timezone

from engine.export.summary import summarise
from engine.models import Run

if TYPE_CHECKING:
    from engine.models import RunSchedule


def withdraw(schedule: RunSchedule, sentence: str) -> None:
    """Stop what waits in the queue for a schedule; a driver that was quicker has its run."""
    waiting = Run.objects.filter(occasion__schedule=schedule, status=Run.Status.QUEUED)
    for run in list(waiting):
        n_withdrawn = Run.objects.filter(pk=run.pk, status=Run.Status.QUEUED).update(
            status=Run.Status.STOPPED,
            end_reason=Run.EndReason.STOPPED,
            detail=sentence,
            finished_at=timezone.now(),
        )
        if n_withdrawn:
            Run.objects.filter(pk=run.pk).update(summary=summarise(run.pk))
