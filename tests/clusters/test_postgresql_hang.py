"""A driver that hangs is taken over when its lease ends, and can store nothing when it is back."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest
from django_q.models import OrmQ

from tests.clusters.cluster import (
    PATIENCE_SECONDS,
    broken_laws,
    clusters,
    requested,
    society,
    wait_for_commits,
    wait_for_driver,
    wait_for_end,
)
from tests.doors import command, wait_until

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(300)]


def test_driver_that_hangs_is_taken_over_and_is_fenced(tmp_path: Path) -> None:
    simulation = society()
    run = requested(simulation)
    with clusters(2, SIM_MAX_RUNS_PER_HOST="4", SIM_LEASE_SECONDS="9", SIM_LEASE_RENEW_SECONDS="2"):
        hung = wait_for_driver(run)
        wait_for_commits(run, 5)
        os.kill(hung, signal.SIGSTOP)
        try:
            wait_for_driver(run, but=hung)
            wait_for_commits(run, 5)
        finally:
            os.kill(hung, signal.SIGCONT)
        wait_for_commits(run, 5)
        assert command("simctl", "stop", str(run.pk)).code == 0
        ended = wait_for_end(run)
        # It renews its message until it has noticed.
        wait_until(lambda: not OrmQ.objects.exists(), seconds=PATIENCE_SECONDS)
    assert (ended.status, ended.end_reason) == ("stopped", "stopped")
    assert ended.takeovers >= 1
    assert broken_laws(simulation, tmp_path / "export") == []
