"""What people ask of a run, from any process: stop, drain, pause, go on.

A driver hears it at its next beat; of a run that nobody drives it is done here and now.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction
from django.utils import timezone

from engine.export.summary import summarise
from engine.loop.ending import Ending, EndReason
from engine.models import Run, RunControl, Ticket
from engine.models.runs import LIVE
from engine.runs.end import end_undriven
from engine.runs.queue import leave_to_workers
from engine.runs.refusals import RunRefused, check_priced, quicker_sentence
from engine.runs.start import lease_of_now, with_raised_caps
from engine.store.database import is_driven

if TYPE_CHECKING:
    from engine.store.database import LeaseState

Wish = RunControl.Wish

_STOPPED = Ending(reason=EndReason.STOPPED)


def stop(run: Run, *, who: str) -> str:
    """Ask for a run's end; return in a sentence what comes of it.

    Turns in flight finish first. A run that is queued or paused ends at once, one whose driver died
    is marked interrupted. Raises `RunRefused` for one that is over.
    """
    if run.status == Run.Status.QUEUED:
        return _stop_queued(run)
    if run.status == Run.Status.PAUSED:
        return _stop_paused(run, who)
    return _ask(run, Wish.STOP, who, "it stops when the turns in flight are over")


def drain(run: Run, *, who: str) -> str:
    """Ask a run to start nothing new, and to stop when no thread is open any more."""
    return _ask(run, Wish.DRAIN, who, "it starts nothing new, and stops when no thread is open")


def pause(run: Run, *, who: str) -> str:
    """Ask a run to pause when its turns in flight are over; one that was to go on does not."""
    if run.status == Run.Status.PAUSED and Ticket.objects.filter(run=run).exists():
        _note(run, Wish.PAUSE, who)
        Ticket.objects.filter(run=run, run__status=Run.Status.PAUSED).delete()
        return f"Run {run.pk} stays paused."
    return _ask(run, Wish.PAUSE, who, "it pauses when the turns in flight are over")


def resume_by_worker(run: Run, *, who: str) -> str:
    """Leave a paused run to a worker, which goes on with it as soon as it can.

    A raised cap, and what it has left of its limits, hold. Raises `RunRefused` unless it is paused.
    """
    if run.status != Run.Status.PAUSED:
        raise RunRefused(f"Run {run.pk} is {run.status}: only a paused run can go on.")
    check_priced(run.simulation, with_raised_caps(run))
    with transaction.atomic():
        _note(run, Wish.RUN, who)
        leave_to_workers(run)
    return f"Run {run.pk} goes on as soon as a worker has it."


def _ask(run: Run, wish: Wish, who: str, then: str) -> str:
    """Note a wish for the driver of a run, or end a run whose driver is dead."""
    if run.status in {Run.Status.QUEUED, Run.Status.PAUSED}:
        raise RunRefused(f"Run {run.pk} is {run.status}: it can be stopped, and nothing else.")
    if run.status not in LIVE:
        raise RunRefused(f"Run {run.pk} is {run.status} already.")
    if run.status == Run.Status.STOPPING and wish != Wish.STOP:
        raise RunRefused(f"Run {run.pk} is stopping already.")
    lease = lease_of_now(run.simulation)
    if wish == Wish.STOP and not is_driven(run.simulation_id, lease):
        return _end_now(run, lease)
    _note(run, wish, who)
    return f"Run {run.pk} is asked: {then}."


def _end_now(run: Run, lease: LeaseState) -> str:
    if not end_undriven(run, lease):
        raise RunRefused(quicker_sentence(run.simulation))
    return f"Run {run.pk} had lost its driver: it is marked interrupted."


def _stop_paused(run: Run, who: str) -> str:
    lease = lease_of_now(run.simulation)
    if not end_undriven(run, lease, _STOPPED, was=(Run.Status.PAUSED,)):
        raise RunRefused(quicker_sentence(run.simulation))
    _note(run, Wish.STOP, who)
    return f"Run {run.pk} was paused: it is stopped."


def _stop_queued(run: Run) -> str:
    with transaction.atomic():
        n_stopped = Run.objects.filter(pk=run.pk, status=Run.Status.QUEUED).update(
            status=Run.Status.STOPPED, end_reason=EndReason.STOPPED, finished_at=timezone.now()
        )
        if n_stopped:
            Ticket.objects.filter(run=run).delete()
            Run.objects.filter(pk=run.pk).update(summary=summarise(run.pk))
    if not n_stopped:
        raise RunRefused(f"Run {run.pk} began at this moment: try again.")
    return f"Run {run.pk} had not begun: it is stopped."


def _note(run: Run, wish: Wish, who: str) -> None:
    RunControl.objects.filter(run=run).update(wish=wish, asked_by=who, asked_at=timezone.now())
