"""Sends what should be driven and is not: runs whose driver died, and messages that were lost.

Any number of processes may look at the same time; one of them sends.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from engine.models import Run, Ticket
from engine.runs.end import DRIVEN
from engine.runs.pick_up import in_the_way
from engine.runs.queue import runs_in_queue, send
from engine.runs.room import no_room
from engine.store.database import is_driven, read_lease

if TYPE_CHECKING:
    from datetime import datetime

#: A worker that took a message has a driver this soon; then the message counts as lost.
RESEND_AFTER = timedelta(seconds=10)


def send_overdue() -> int:
    """Send a message for each run that a worker could drive now and about which none is on its way.

    Returns how many were sent. A run that has to wait learns for what.
    """
    now = timezone.now()
    due = Ticket.objects.filter(Q(sent_at=None) | Q(sent_at__lt=now - RESEND_AFTER))
    undriven = [
        ticket
        for ticket in due.select_related("run__simulation").order_by("run")
        if not _is_driven(ticket.run)
    ]
    if not undriven:
        return 0
    in_queue = runs_in_queue()
    return sum(_send(ticket, now) for ticket in undriven if ticket.run_id not in in_queue)


def _is_driven(run: Run) -> bool:
    """Tell whether the run has a driver; one that is queued or paused never has."""
    if run.status not in DRIVEN:
        return False
    return is_driven(run.simulation_id, read_lease(run.simulation_id))


def _send(ticket: Ticket, now: datetime) -> bool:
    """Send a message about a run, unless it has to wait, or somebody else just did."""
    run = ticket.run
    sentence = in_the_way(run) if run.status == Run.Status.QUEUED else ""
    sentence = sentence or no_room(run.simulation)
    if sentence:
        if sentence != ticket.waits_for:
            Ticket.objects.filter(run=run).update(waits_for=sentence)
        return False
    with transaction.atomic():
        if not Ticket.objects.filter(run=run, sent_at=ticket.sent_at).update(sent_at=now):
            return False
        send(run.pk)
    return True
