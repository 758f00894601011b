"""PostgreSQL that goes away in the middle of a run, and comes back."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from engine.models import Run, RunLease
from tests.doors import faulty_run, told
from tests.faults.own_server import outage, own_server
from tests.faults.society import (
    SHORT_LEASE,
    see_laws_kept,
    see_the_next_go_on,
    talkative_world,
    wait_for_messages,
)

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(600)]


def test_run_outlasts_outages_and_one_that_is_to_stop_in_one_says_so(
    tmp_path: Path, is_soak: bool
) -> None:
    """The server is away longer than the lease lasts, once as by a crash, once in good order."""
    # A run waits for ten leases.
    lease_seconds, away_seconds = (4, 20) if is_soak else (2, 3)
    lease = SHORT_LEASE | {"SIM_LEASE_SECONDS": f"{lease_seconds}"}
    with own_server() as server:
        talkative_world()
        with faulty_run("none", "--seed", "3", "--json", **lease) as process:
            for mode in ("immediate", "fast"):
                wait_for_messages(6)
                with outage(server, mode, seconds=away_seconds):
                    assert process.poll() is None
            wait_for_messages(6)
            assert Run.objects.count() == RunLease.objects.get().token == 1
            with outage(server, "immediate", seconds=0):
                process.send_signal(signal.SIGTERM)
                left = told(process)
        assert left.code == 1
        assert "which could not be written" in left.err.splitlines()[-1]
        assert "Traceback" not in left.err, left.err
        see_the_next_go_on()
        assert [run.status for run in Run.objects.order_by("pk")] == ["interrupted", "completed"]
        see_laws_kept(tmp_path)
