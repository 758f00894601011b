"""Runs in real clusters of django-q2: whatever dies, and however often a message comes."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from django_q.models import OrmQ

from engine.models import Run, Turn
from engine.runs.queue import send
from engine.store.database import read_lease
from tests.clusters.cluster import (
    PATIENCE_SECONDS,
    broken_laws,
    clusters,
    driver_of,
    requested,
    society,
    wait_for_commits,
    wait_for_driver,
    wait_for_end,
)
from tests.doors import command, wait_until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(300)]

#: Both clusters are on one host here. A message whose worker died comes again after 8 s.
AROUND = {"SIM_MAX_RUNS_PER_HOST": "4", "SIM_LEASE_SECONDS": "15"}


def test_run_goes_on_whatever_dies_and_no_message_drives_it_twice(tmp_path: Path) -> None:
    simulation = society()
    run = requested(simulation)
    with clusters(2, **AROUND) as both:
        first = wait_for_driver(run)
        token = read_lease(simulation.pk).token
        for _ in range(3):
            send(run.pk)
        wait_until(lambda: OrmQ.objects.count() == 1, seconds=PATIENCE_SECONDS)
        wait_for_commits(run, 5)
        assert read_lease(simulation.pk).token == token

        os.kill(first, signal.SIGKILL)
        second = wait_for_driver(run, but=first)
        wait_for_commits(run, 5)

        host = next(one for one in both if one.has(second))
        host.kill()
        third = wait_for_driver(run, but=second)
        assert not host.has(third)
        wait_for_commits(run, 5)
        # The messages of the dead come once more, and find that there is nothing to do.
        wait_until(lambda: OrmQ.objects.count() == 1, seconds=PATIENCE_SECONDS)

        assert command("simctl", "stop", str(run.pk)).code == 0
        ended = wait_for_end(run)
        wait_until(lambda: not OrmQ.objects.exists(), seconds=PATIENCE_SECONDS)
    assert (ended.status, ended.end_reason, ended.takeovers) == ("stopped", "stopped", 2)
    assert Run.objects.count() == 1
    assert not Turn.objects.filter(outcome="running").exists()
    assert broken_laws(simulation, tmp_path / "export") == []


def test_no_more_runs_go_on_at_once_than_may_and_a_signal_stops_one() -> None:
    """Two clusters could drive both at once; whose message is taken first begins."""
    both = [requested(society(name)) for name in ("east", "west")]
    with clusters(2, **AROUND, SIM_MAX_RUNS="1"):
        wait_until(lambda: any(map(driver_of, both)), seconds=PATIENCE_SECONDS)
        first, second = sorted(both, key=lambda run: driver_of(run) is None)
        driver = wait_for_driver(first)
        wait_for_commits(first, 3)
        wait_until(
            lambda: "SIM_MAX_RUNS is 1" in command("simctl", "status", str(second.pk)).out,
            seconds=PATIENCE_SECONDS,
        )
        os.kill(driver, signal.SIGTERM)
        assert wait_for_end(first).end_reason == "stopped"
        wait_for_driver(second)
        wait_for_commits(second, 3)
        assert command("simctl", "stop", str(second.pk)).code == 0
        wait_for_end(second)
    first.refresh_from_db()
    second.refresh_from_db()
    assert first.finished_at is not None
    assert second.started_at is not None
    assert second.started_at >= first.finished_at
