"""What SQLite has of its own: lock files beside the database, and a file that somebody locks."""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from django.db import OperationalError, connection, connections, transaction

from engine.models import Run, RunLease, Simulation
from engine.runs import refusals
from engine.store.database import liveness, take_liveness
from tests.doors import Told, driver_elsewhere, make_world, runsim

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.django_db(transaction=True)

QUICK = ("--until-idle", "--seed", "1", "--clock", "virtual", "--json")


def lock_files() -> list[str]:
    """Return what stands beside the database for drivers, by simulation and token."""
    return sorted(file.name.partition(".driver-")[2] for file in _files())


def _files() -> Iterator[Path]:
    database = Path(connection.settings_dict["NAME"])
    return database.parent.glob(f"{database.name}.driver-*")


@pytest.fixture(autouse=True)
def _nothing_left_by_others() -> None:
    """A driver that another test has killed leaves its file until the next start of its simulation."""
    for file in _files():
        file.unlink()


def test_lock_file_goes_with_its_driver() -> None:
    lock = take_liveness(3, 7)
    assert lock is not None
    assert lock_files() == ["3-7"]
    lock.release()
    assert lock_files() == []


def test_file_of_a_dead_driver_is_removed_by_the_next(tmp_path: Path) -> None:
    hung = take_liveness(3, 5)
    assert hung is not None
    for token in (4, 6, 9):
        liveness._file(3, token).touch()
    liveness._file(31, 4).touch()
    assert not liveness.is_alive(3, 6)
    lock = take_liveness(3, 7)
    assert lock is not None
    # Nobody removes what a living one holds, what is another simulation's, or what may yet come.
    assert lock_files() == ["3-5", "3-7", "3-9", "31-4"]
    lock.release()
    hung.release()
    for file in (liveness._file(3, 9), liveness._file(31, 4)):
        file.unlink()


def test_question_makes_no_file() -> None:
    assert not liveness.is_alive(3, 7)
    assert lock_files() == []


def test_file_that_its_last_holder_removed_in_between_is_made_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lock_it = liveness._lock
    removed: list[int] = []

    def remove_first(handle: int, kind: int) -> bool:
        if not removed:
            removed.append(handle)
            liveness._file(3, 7).unlink()
        return lock_it(handle, kind)

    monkeypatch.setattr(liveness, "_lock", remove_first)
    lock = take_liveness(3, 7)
    assert lock is not None
    assert len(removed) == 1
    assert (lock_files(), liveness.is_alive(3, 7)) == (["3-7"], True)
    lock.release()


def test_file_that_cannot_be_read_proves_no_death(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise PermissionError

    with monkeypatch.context() as patched:
        patched.setattr("os.open", refuse)
        assert liveness.is_alive(3, 7)
    assert not liveness.is_alive(3, 7)


def test_life_is_not_inherited_by_programs_that_a_driver_starts() -> None:
    lock = take_liveness(3, 7)
    assert isinstance(lock, liveness._FileLiveness)
    assert lock._handle is not None
    assert not os.get_inheritable(lock._handle)
    lock.release()


def test_locks_of_a_database_in_memory_are_its_process_s_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = "file:memorydb_default?mode=memory&cache=shared"
    monkeypatch.setitem(connection.settings_dict, "NAME", name)
    assert liveness._file(3, 7).name == f"sim-{os.getpid()}.driver-3-7"
    lock = take_liveness(3, 7)
    assert lock is not None
    assert liveness.is_alive(3, 7)
    lock.release()
    assert not liveness.is_alive(3, 7)


def test_run_leaves_no_lock_file() -> None:
    make_world(agents=("ash", "elm"))
    assert runsim(*QUICK).code == 0
    assert runsim(*QUICK, "--fresh").code == 0
    assert lock_files() == []


# --- a file that is locked -------------------------------------------------------------------------


@contextmanager
def locked() -> Iterator[None]:
    """Let another connection hold the file in a transaction, and nobody wait for it."""
    holds, over = threading.Event(), threading.Event()

    def hold() -> None:
        with transaction.atomic():
            holds.set()
            over.wait(60)
        connections.close_all()

    holder = threading.Thread(target=hold)
    holder.start()
    assert holds.wait(60)
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA busy_timeout = 10")
    try:
        yield
    finally:
        over.set()
        holder.join()
        connection.close()


def start_beside_a_locked_file(*words: str) -> Told:
    with locked():
        return runsim(*QUICK, *words)


@pytest.mark.parametrize("words", [(), ("--resume",)], ids=["start", "resume"])
def test_start_beside_a_driver_that_hangs_in_a_transaction_names_it(words: tuple[str, ...]) -> None:
    make_world(agents=("ash", "elm"))
    assert runsim(*QUICK, "--max-calls", "2").code == 4
    run = Run.objects.get()
    status = "paused" if words else "running"
    with driver_elsewhere(run):
        Run.objects.update(status=status)
        with locked():
            left = runsim(*words) if words else runsim(*QUICK)
    assert left.code == 3
    assert left.err.strip().endswith(
        "The database file is locked, perhaps by a driver that hangs: "
        f"run {run.pk} of main on elsewhere:7. If it does, end that process and start again."
    )
    assert Run.objects.count() == 1


def test_start_beside_a_file_that_nobody_known_locks_says_so() -> None:
    make_world(agents=("ash", "elm"))
    left = start_beside_a_locked_file()
    assert (left.code, Run.objects.count()) == (2, 0)
    assert left.err.strip().endswith(
        "Another process has locked the database file: end it, or wait, and start again."
    )


def test_other_troubles_of_a_database_are_not_taken_for_a_lock() -> None:
    with pytest.raises(OperationalError, match="no such table"), refusals.naming_who_locks():
        raise OperationalError("no such table: engine_run")


# --- rows apart --------------------------------------------------------------------------------------


def test_full_save_of_a_run_touches_neither_lease_nor_control() -> None:
    make_world(agents=("ash", "elm"))
    assert runsim(*QUICK, "--max-calls", "2").code == 4
    seen_long_ago = Run.objects.select_related("simulation", "control").get()
    with driver_elsewhere(seen_long_ago) as token:
        type(seen_long_ago.control).objects.update(wish="drain", max_calls=99)
        lease = RunLease.objects.values().get()
        control = type(seen_long_ago.control).objects.values().get()
        seen_long_ago.detail = "Edited by hand."
        seen_long_ago.save()
        seen_long_ago.simulation.save()
        assert RunLease.objects.values().get() == lease
        assert type(seen_long_ago.control).objects.values().get() == control
    assert lease["token"] == token
    assert Run.objects.get().detail == "Edited by hand."
    assert Simulation.objects.count() == 1
