"""PostgreSQL that goes away in the middle of a run, and comes back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from engine.models import Run, RunLease
from tests.doors import faulty_run
from tests.faults.own_server import outage, own_server
from tests.faults.society import (
    SHORT_LEASE,
    see_it_stopped,
    see_laws_kept,
    stopped,
    talkative_world,
    wait_for_messages,
)

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(600)]


def test_run_goes_on_by_itself_after_outages_longer_than_its_lease(
    tmp_path: Path, is_soak: bool
) -> None:
    """The server is away longer than the lease lasts, once as by a crash, once in good order."""
    with own_server() as server:
        talkative_world()
        with faulty_run("none", "--seed", "3", "--json", **SHORT_LEASE) as process:
            for mode in ("immediate", "fast"):
                wait_for_messages(12)
                with outage(server, mode, seconds=20 if is_soak else 3):
                    assert process.poll() is None
                assert process.poll() is None
            wait_for_messages(12)
            left = stopped(process)
        see_it_stopped(left)
        assert Run.objects.count() == RunLease.objects.get().token == 1
        see_laws_kept(tmp_path)
