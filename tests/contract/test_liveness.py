"""The liveness lock: who lives, who only hangs, and what a start makes of it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
from django.db import connection

from engine.models import Message, Run, RunLease, Turn
from engine.store.database import is_driven, liveness, read_lease, take_liveness
from tests.doors import driver_elsewhere, make_world, managing, runsim, wait_until

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator

    from engine.store.database import Liveness

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(300)]

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
