"""The sign of life of workers: who shows that it does its work, and who is stuck.

A worker is what serves one queue on one host. It beats each time it looks for work, as long as what
it took before was begun: one that holds work and does not do it falls silent.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from engine.models import WorkerBeat

if TYPE_CHECKING:
    from datetime import datetime


def worker_of(queue: str, *, host: str = "") -> str:
    """Return the name of the worker of a queue, on this host unless another is named."""
    return f"{host or socket.gethostname()} {queue}"


def beat(worker: str, now: datetime) -> None:
    """Note that a worker of this name does its work."""
    WorkerBeat.objects.update_or_create(worker=worker, defaults={"at": now})


def silent_seconds(worker: str, now: datetime) -> float | None:
    """Return how long a worker has been silent; None if it was never heard of."""
    heard_at = WorkerBeat.objects.filter(pk=worker).values_list("at", flat=True).first()
    return None if heard_at is None else (now - heard_at).total_seconds()
