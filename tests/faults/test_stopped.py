"""Drivers that are stopped for longer than their lease, at the worst places, and wake up late."""

from __future__ import annotations

import re
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from django.db import connection

from engine.models import LlmCall, Message, Run, Turn
from engine.store.database.lease import boot_seconds
from tests.doors import faulty_run, runsim, told, wait_until
from tests.faults.inside import CALL, RELEASE
from tests.faults.society import (
    SHORT_LEASE,
    is_stopped,
    lease_has_ended,
    see_it_stopped,
    see_laws_kept,
    stopped,
    talkative_world,
    wait_for_messages,
)

if TYPE_CHECKING:
    from tests.doors import Told

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(600)]


def calls_begun(left: Told) -> list[float]:
    """Return when a driver's calls began, in seconds since boot."""
    return [float(at) for at in re.findall(rf"^{CALL} (.*)$", left.err, re.MULTILINE)]


def rows_of(run: Run) -> tuple[int, int, int]:
    return (
        Message.objects.filter(run=run).count(),
        Turn.objects.filter(run=run).count(),
        LlmCall.objects.filter(run=run).count(),
    )


def take_over() -> Run:
    """Let another start take the simulation over; return the run that lost it."""
    n_messages = Message.objects.count()
    taken = runsim("--seed", "1", "--max-turns", "6", "--json")
    assert taken.code == 0, taken.err
    assert Message.objects.count() >= n_messages
    lost, new = Run.objects.order_by("pk")
    assert (lost.status, new.status) == ("interrupted", "completed")
    return lost


def see_it_lost(left: Told, lost: Run, rows: tuple[int, int, int]) -> None:
    """See that a driver which lost its lease said so, left, and changed nothing any more."""
    assert left.code == 1, left.err
    assert "Another driver has taken this simulation over" in left.err
    assert "Traceback" not in left.err
    assert rows_of(lost) == rows
    assert Run.objects.get(pk=lost.pk).status == "interrupted"


def test_driver_stopped_with_calls_in_flight_starts_none_when_it_wakes(tmp_path: Path) -> None:
    talkative_world()
    faults = "answers=0.5,stop-in-call=7,calls=1"
    with faulty_run(faults, "--seed", "3", "--json", **SHORT_LEASE) as process:
        wait_until(lambda: is_stopped(process))
        assert Turn.objects.filter(outcome="running").count() >= 2
        wait_until(lease_has_ended)
        lost = take_over()
        rows, woken_at = rows_of(lost), boot_seconds()
        process.send_signal(signal.SIGCONT)
        left = told(process)
    see_it_lost(left, lost, rows)
    assert len(calls_begun(left)) == 7
    assert max(calls_begun(left)) < woken_at
    see_laws_kept(tmp_path)


def test_driver_stopped_inside_a_transaction_is_taken_over_or_named(tmp_path: Path) -> None:
    """PostgreSQL frees what a stopped driver holds; on SQLite only its end does, and it is named."""
    talkative_world()
    with faulty_run("stop-in-commit=9,calls=1", "--seed", "3", "--json", **SHORT_LEASE) as process:
        wait_until(lambda: is_stopped(process))
        wait_until(lease_has_ended)
        if connection.vendor == "sqlite":
            with faulty_run("busy=0.5") as other:
                refused = told(other)
            assert refused.code == 3
            assert f":{process.pid}" in refused.err
            assert "Traceback" not in refused.err
            process.kill()
            process.wait()
            take_over()
        else:
            lost = take_over()
            rows, woken_at = rows_of(lost), boot_seconds()
            process.send_signal(signal.SIGCONT)
            left = told(process)
            see_it_lost(left, lost, rows)
            assert max(calls_begun(left)) < woken_at
    see_laws_kept(tmp_path)


def test_driver_whose_pulse_hangs_starts_no_call_after_its_lease(tmp_path: Path) -> None:
    talkative_world()
    release = tmp_path / "release"
    more = SHORT_LEASE | {RELEASE: str(release)}
    with faulty_run("pulse=8,calls=1", "--seed", "3", "--json", **more) as process:
        wait_for_messages(4)
        wait_until(lease_has_ended)
        ended_at = boot_seconds()
        lost = take_over()
        rows = rows_of(lost)
        release.touch()
        left = told(process)
    see_it_lost(left, lost, rows)
    assert len(calls_begun(left)) >= 2
    assert max(calls_begun(left)) < ended_at
    see_laws_kept(tmp_path / "export")


def test_driver_whose_pulse_hung_goes_on_when_nobody_came(tmp_path: Path) -> None:
    talkative_world()
    release = tmp_path / "release"
    more = SHORT_LEASE | {RELEASE: str(release)}
    with faulty_run("pulse=8", "--seed", "3", "--json", **more) as process:
        wait_for_messages(4)
        wait_until(lease_has_ended)
        release.touch()
        wait_for_messages(12)
        left = stopped(process)
    see_it_stopped(left)
    see_laws_kept(tmp_path / "export")
