"""The liveness lock: who lives, who only hangs, and what a start makes of it."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from django.db import OperationalError, connection, transaction

from cohorts.audit import change
from engine.core.config import RunConfig
from engine.models import LlmCall, Message, Run, RunLease, Simulation, Turn
from engine.runs import RunIsLive, begin_named, start, world
from engine.store.database import is_driven, liveness, read_lease, take_liveness
from tests.doors import (
    driver_elsewhere,
    make_world,
    managing,
    noted_run,
    runsim,
    told,
    wait_until,
)

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path

    from cohorts.audit import Audit
    from engine.store.database import LeaseState, Liveness

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(300)]

QUICK = ("--until-idle", "--seed", "1", "--clock", "virtual", "--json")
SLOW = ("runsim", "--skip-checks", "--seed", "1", "--json", "--latency", "0.3")
#: Long enough that no test could wait for its end.
LONG_LEASE = {"SIM_LEASE_SECONDS": "600"}


@pytest.fixture
def taken() -> Iterator[dict[int, Liveness]]:
    """The locks of simulation 1 that this process holds, by token."""
    locks: dict[int, Liveness] = {}
    yield locks
    for lock in locks.values():
        lock.release()


def take(taken: dict[int, Liveness], token: int) -> None:
    lock = take_liveness(1, token)
    assert lock is not None
    taken[token] = lock


def lives(token: int) -> bool:
    return liveness.is_alive(1, token)


# --- the lock --------------------------------------------------------------------------------------


def test_lock_is_held_by_one_until_it_is_released(taken: dict[int, Liveness]) -> None:
    assert not lives(7)
    take(taken, 7)
    assert lives(7)
    assert take_liveness(1, 7) is None
    taken[7].release()
    wait_until(lambda: not lives(7))
    taken[7].release()
    take(taken, 7)


def test_lock_of_a_token_is_its_own(taken: dict[int, Liveness]) -> None:
    """A driver that hangs neither stops the next one nor passes for it."""
    take(taken, 7)
    take(taken, 8)
    taken[8].release()
    wait_until(lambda: not lives(8))
    assert lives(7)
    assert not liveness.is_alive(2, 7)


def test_two_who_ask_do_not_take_each_other_for_a_driver(taken: dict[int, Liveness]) -> None:
    take(taken, 7)
    assert [lives(7), lives(7), lives(8), lives(8)] == [True, True, False, False]


def test_driver_lives_as_long_as_its_lease(taken: dict[int, Liveness]) -> None:
    make_world(agents=("ash", "elm"))
    assert runsim("--clock", "virtual", "--until-idle", "--max-calls", "2").code == 4
    run = Run.objects.get()
    for seconds in (60.0, 0.0):
        with driver_elsewhere(run, seconds=seconds):
            assert is_driven(run.simulation_id, read_lease(run.simulation_id)) == (seconds > 0)
    assert not is_driven(run.simulation_id, read_lease(run.simulation_id))


def test_lock_is_taken_again_after_its_connection_was_lost(taken: dict[int, Liveness]) -> None:
    take(taken, 7)
    seen: list[bool] = []

    def beat() -> None:
        for _ in range(3):
            with taken[7].beating():
                connection.close()
                connection.ensure_connection()
            seen.append(lives(7))

    pulse = threading.Thread(target=beat)
    pulse.start()
    pulse.join()
    assert seen == [True, True, True]


# --- what a start makes of it ----------------------------------------------------------------------


def is_busy() -> bool:
    return Turn.objects.filter(outcome="running").exists() or Message.objects.count() > 3


@pytest.fixture
def live() -> Iterator[subprocess.Popen[str]]:
    """A run in another process that has begun to talk, with a lease that outlasts the test."""
    make_world()
    with managing(*SLOW, **LONG_LEASE) as process:
        wait_until(is_busy)
        yield process


def test_killed_run_is_taken_for_dead_at_once(live: subprocess.Popen[str]) -> None:
    live.kill()
    live.wait()
    dead = Run.objects.get()
    assert not read_lease(dead.simulation_id).is_expired
    token = RunLease.objects.get().token
    left = runsim("--seed", "1", "--max-turns", "1", "--json")
    assert left.code == 0
    dead.refresh_from_db()
    assert (dead.status, dead.detail) == ("interrupted", "Its driver died.")
    assert not Turn.objects.filter(outcome="running").exists()
    # One step fenced the dead driver, the other is the new run's own.
    assert RunLease.objects.get().token == token + 2


def test_new_token_lives_before_it_can_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a start in between would take the newborn driver for dead."""
    simulation = make_world(agents=("ash", "elm"))
    take_lease, seen = start.take, []

    def take_and_look(run: Run, lease: LeaseState) -> int:
        seen.append(liveness.is_alive(simulation.pk, lease.token + 1))
        return take_lease(run, lease)

    monkeypatch.setattr(start, "take", take_and_look)
    assert runsim(*QUICK).code == 0
    assert seen == [True]
    token = RunLease.objects.get().token
    wait_until(lambda: not liveness.is_alive(simulation.pk, token))


@contextmanager
def change_that_fails_at_its_end(who: str) -> Iterator[Audit]:
    with change(who) as audit:
        yield audit
        raise_no_more()


def raise_no_more(*_: object) -> None:
    assert lives(1)
    raise OSError("no more")


@pytest.mark.parametrize(
    ("place", "name", "failing"),
    [
        (start, "first_moment", raise_no_more),
        (world, "change", change_that_fails_at_its_end),
    ],
    ids=["inside", "around"],
)
def test_lock_of_a_start_that_fails_is_given_back(
    place: object, name: str, failing: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when what fails is the transaction around it, after it had begun."""
    Simulation.objects.create(pk=1, name="main")
    monkeypatch.setattr(place, name, failing)
    with pytest.raises(OSError, match="no more"):
        begin_named("main", RunConfig(), who="Ada")
    assert not Run.objects.exists()
    wait_until(lambda: not lives(1))


def test_start_whose_token_somebody_is_about_to_take_is_refused(
    taken: dict[int, Liveness],
) -> None:
    Simulation.objects.create(pk=1, name="main")
    take(taken, 1)
    with pytest.raises(RunIsLive, match="began and ended at this moment: try again"):
        begin_named("main", RunConfig(), who="Ada")
    assert not Run.objects.exists()


# --- a driver that hangs ---------------------------------------------------------------------------


def freeze(process: subprocess.Popen[str]) -> None:
    """Stop a driver where it stands, but outside of a transaction."""
    while True:
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED)
        if can_write():
            return
        process.send_signal(signal.SIGCONT)
        os.waitid(os.P_PID, process.pid, os.WCONTINUED)
        time.sleep(0.01)  # so that it gets on


def can_write() -> bool:
    """Tell whether nobody holds the lease's row, which each group of a driver locks first."""
    if connection.vendor == "sqlite":
        file = sqlite3.connect(connection.settings_dict["NAME"], timeout=0.1)
        try:
            file.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return False
        finally:
            file.close()
        return True
    try:
        with transaction.atomic():
            return RunLease.objects.select_for_update(nowait=True).exists()
    except OperationalError:
        return False


def test_start_beside_a_driver_that_hangs_says_who_and_until_when(
    live: subprocess.Popen[str],
) -> None:
    freeze(live)
    run = Run.objects.get()
    refused = runsim("--seed", "1")
    assert refused.code == 3
    assert re.search(
        rf"Run {run.pk} of main is running on {os.uname().nodename}:{live.pid}"
        r" \(its lease ends in \d+ s unless it renews it\): stop it first\.$",
        refused.err.strip(),
    )
    assert Run.objects.count() == 1


def stored() -> tuple[int, int, int, int]:
    """Return what a late driver must not add to."""
    calls = LlmCall.objects.count()
    return Message.objects.count(), calls, Turn.objects.count(), RunLease.objects.get().commit_no


def test_driver_that_hung_for_longer_than_its_lease_begins_nothing_more(tmp_path: Path) -> None:
    make_world()
    noted = tmp_path / "calls"
    short = {"SIM_LEASE_SECONDS": "2", "SIM_LEASE_RENEW_SECONDS": "0.5"}
    with noted_run(str(noted), *SLOW[2:], **short) as process:
        wait_until(lambda: noted.exists() and is_busy())
        freeze(process)
        n_calls = noted.stat().st_size
        late = Run.objects.get()
        wait_until(lambda: read_lease(late.simulation_id).is_expired)
        # It hangs: not its life, but its lease is over.
        assert liveness.is_alive(late.simulation_id, RunLease.objects.get().token)
        assert runsim(*QUICK, "--max-turns", "1").code == 0
        before = stored()
        process.send_signal(signal.SIGCONT)
        left = told(process)
    assert left.code == 1
    assert "Another driver has taken this simulation over." in left.err
    assert "Traceback" not in left.err
    assert (stored(), noted.stat().st_size) == (before, n_calls)
    late.refresh_from_db()
    assert (late.status, late.detail) == ("interrupted", "Its driver died.")
    assert Run.objects.count() == 2


# --- a database that does not answer ---------------------------------------------------------------


@contextmanager
def held_up() -> Iterator[None]:
    """Let no driver write: its groups, its renewals and its end all wait for this row."""
    with transaction.atomic():
        RunLease.objects.select_for_update().get()
        yield


def test_second_signal_ends_a_driver_whose_database_does_not_answer() -> None:
    make_world()
    renewing = {"SIM_LEASE_RENEW_SECONDS": "0.5"}
    with managing(*SLOW, **LONG_LEASE | renewing) as process:
        wait_until(is_busy)
        with held_up():
            process.send_signal(signal.SIGTERM)
            process.send_signal(signal.SIGINT)
            left = told(process)
    run = Run.objects.get()
    assert left.code == 1
    assert left.err.strip().endswith(
        "which could not be written: the next start marks it interrupted."
    )
    assert f"Run {run.pk} is over (" in left.err
    assert "Traceback" not in left.err
    assert run.status in {"running", "stopping"}
    assert runsim(*QUICK, "--max-turns", "1").code == 0
    run.refresh_from_db()
    assert run.status == "interrupted"
