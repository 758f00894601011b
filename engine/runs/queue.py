"""The queue that carries runs to workers: a row first, then a message with its number.

Row and message are written in one transaction, since django-q2 keeps its messages in the same
database. A message is a hint and no right: the lease alone decides who drives.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django_q.models import OrmQ
from django_q.tasks import async_task

from engine.build import check_ready
from engine.models import Run, RunControl, Ticket
from engine.runs.refusals import check_priced
from engine.runs.start import check_triggers

if TYPE_CHECKING:
    from engine.core.config import RunConfig
    from engine.models import Simulation

#: The queue, which is also the name of the clusters that serve it.
QUEUE = "runs"
TASK = "engine.tasks.drive_run"
#: django-q2's word for a task whose time is not bounded.
_UNBOUNDED = -1


def request(simulation: Simulation, config: RunConfig, *, who: str) -> Run:
    """Ask for a run that a worker is to drive; return its row, which is queued.

    It waits while another run of the simulation is live, and while too many runs go on. Raises
    `RunRefused` or `RefusedSetting` for one that could not begin whatever it waited for.
    """
    check_triggers()
    check_ready(config)
    check_priced(simulation, config)
    with transaction.atomic():
        run = Run.objects.create(
            simulation=simulation,
            configuration=asdict(config),
            started_by=who,
            code_version=settings.CODE_VERSION,
            seed=config.seed,
        )
        RunControl.objects.create(run=run)
        leave_to_workers(run)
    return run


def leave_to_workers(run: Run) -> None:
    """Give a run to the workers: its ticket and a message, both or none."""
    with transaction.atomic():
        Ticket.objects.update_or_create(
            run=run, defaults={"sent_at": timezone.now(), "waits_for": ""}
        )
        send(run.pk)


def send(run_id: int) -> None:
    """Put a message about a run into the queue."""
    async_task(TASK, run_id, cluster=QUEUE, timeout=_UNBOUNDED, task_name=f"run {run_id}")


def runs_in_queue() -> set[object]:
    """Return the runs about which a message waits that no worker has taken, or has lost."""
    waiting = OrmQ.objects.filter(key=QUEUE, lock__lte=timezone.now())
    return {argument for message in waiting for argument in message.args() or ()}
