"""A cluster of django-q2 whose workers wait for ever: what it holds goes to another one.

How it comes to that has nothing to do with the database, so this is seen on one.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress

import pytest
from django.db.models import Q
from django.db.models.functions import Now
from django_q.models import OrmQ

from engine.runs.queue import send
from tests.clusters.cluster import (
    PATIENCE_SECONDS,
    Cluster,
    clusters,
    requested,
    society,
    start,
    wait_for_driver,
    wait_for_end,
)
from tests.doors import command, wait_until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(300)]


def test_cluster_that_is_stuck_keeps_no_run_from_another() -> None:
    """Workers that die while they wait for a message leave those that come after them waiting."""
    around = {
        "SIM_MAX_RUNS_PER_HOST": "4",
        "SIM_LEASE_SECONDS": "6",
        "SIM_LEASE_RENEW_SECONDS": "2",
    }
    with clusters(1, **around) as found:
        make_stuck(found[0], n_workers=4)
        run = requested(society())
        found.append(start(**around))
        assert found[1].has(wait_for_driver(run))
        assert command("simctl", "stop", str(run.pk)).code == 0
        assert wait_for_end(run).takeovers == 0


def make_stuck(cluster: Cluster, *, n_workers: int) -> None:
    """Kill idle workers until none of those that follow begins with a message.

    Before its workers a cluster starts two processes that look after them, and after them two more.
    """
    wait_until(lambda: len(cluster.processes()) == n_workers + 4, seconds=PATIENCE_SECONDS)
    pids = cluster.processes()
    others = {*pids[:2], *pids[-2:]}
    while begins_with_a_message():
        for worker in set(cluster.processes()) - others:
            with suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)


def begins_with_a_message() -> bool:
    """Send a message about no run, and tell whether a worker has taken care of it."""
    send(0)
    rows = OrmQ.objects.all()
    for_later = Q(lock__gt=Now())
    wait_until(lambda: rows.filter(for_later).exists() or not rows.exists())
    wait_until(lambda: not rows.filter(for_later).exists())
    return not rows.exists()
