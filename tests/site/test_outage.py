"""A database that does not answer: waited for within bounds, told of in one sentence."""

from __future__ import annotations

import asyncio
import threading
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest
from django.db import OperationalError

from engine.core.errors import StoreError, Unanswered
from engine.core.logged import logged_about, what_is_logged_about
from engine.models import Run
from engine.ports.store import Wanted
from engine.runs.closing import insist
from engine.store.database import DjangoStore, Patience, threads
from engine.store.database.threads import DatabaseThread
from tests.doors import make_world, runsim

if TYPE_CHECKING:
    from engine.ports.store import Beat, Loaded

pytestmark = pytest.mark.django_db(transaction=True)

QUICK = ("--until-idle", "--seed", "1", "--clock", "virtual", "--json")

driving: Any = import_module("engine.runs.drive")


def locked(*_: object, **__: object) -> Any:
    raise OperationalError("database is locked")


# --- patience ---------------------------------------------------------------------------------------


def test_work_is_tried_again_until_it_is_known(caplog: pytest.LogCaptureFixture) -> None:
    tries = []

    def work() -> str:
        tries.append(1)
        return locked() if len(tries) < 3 else "done"

    assert Patience(60.0).until_known(work) == "done"
    assert len(tries) == 3
    told = [record.message for record in caplog.records]
    assert told == ["The database does not answer, and is tried again: database is locked"]


def test_patience_ends_by_itself_after_a_last_try() -> None:
    with pytest.raises(Unanswered, match=r"^The database did not answer for 0 s\.$"):
        Patience(0.0).until_known(locked)


def test_patience_that_is_ended_waits_for_nothing_more() -> None:
    patience = Patience(3600.0)
    patience.end()
    with pytest.raises(Unanswered, match=r"^The database did not answer\.$"):
        patience.until_known(locked)
    assert patience.until_known(lambda: "done") == "done"


def test_what_time_does_not_cure_is_not_waited_for() -> None:
    def full() -> None:
        raise OperationalError("database or disk is full")

    with pytest.raises(StoreError, match="disk is full"):
        Patience(3600.0).until_known(full)


# --- threads that can be left behind ----------------------------------------------------------------


def test_abandoned_thread_leaves_nobody_waiting() -> None:
    answered = threading.Event()

    async def ask() -> None:
        thread = DatabaseThread("slow")
        hanging = asyncio.create_task(thread.do(lambda: answered.wait(60)))
        queued = asyncio.create_task(thread.do(lambda: "never"))
        await asyncio.sleep(0)
        thread.abandon()
        for job in (hanging, queued, asyncio.create_task(thread.do(lambda: "late"))):
            with pytest.raises(Unanswered):
                await job
        thread.close()  # does not wait
        assert not answered.is_set()

    asyncio.run(ask())
    answered.set()


def test_who_is_cancelled_is_cancelled_and_not_told_of_a_database() -> None:
    answered = threading.Event()

    async def ask() -> None:
        thread = DatabaseThread("slow")
        job = asyncio.create_task(thread.do(lambda: answered.wait(60)))
        await asyncio.sleep(0)
        job.cancel()
        with pytest.raises(asyncio.CancelledError):
            await job
        answered.set()
        assert await thread.do(lambda: "next") == "next"
        thread.close()

    asyncio.run(ask())


def test_work_logs_about_what_its_caller_is_about() -> None:
    async def ask() -> None:
        thread = DatabaseThread("told")
        with logged_about(run=7):
            assert await thread.do(what_is_logged_about) == {"run": 7}
        assert await thread.do(what_is_logged_about) == {}
        thread.close()

    asyncio.run(ask())


def test_error_of_work_is_its_caller_s() -> None:
    async def ask() -> None:
        thread = DatabaseThread("broken")
        with pytest.raises(OperationalError, match="database is locked"):
            await thread.do(locked)
        thread.close()

    asyncio.run(ask())


def test_closed_thread_that_hangs_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    answered = threading.Event()
    monkeypatch.setattr(threads, "LAST_WORK_SECONDS", 0.01)

    async def leave() -> None:
        thread = DatabaseThread("slow")
        job = asyncio.create_task(thread.do(lambda: answered.wait(10)))
        await asyncio.sleep(0)
        job.cancel()
        thread.close()

    asyncio.run(leave())
    left = [one for one in threading.enumerate() if one.name == "slow"]
    answered.set()
    assert left


def test_closed_store_tries_nothing_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asked for the texts is gone, and the run must not outlast its signals."""
    tried = threading.Event()

    def fail(*_: object) -> None:
        tried.set()
        locked()

    monkeypatch.setattr("engine.store.database.store.read_texts", fail)
    monkeypatch.setattr(threads, "LAST_WORK_SECONDS", 20.0)
    store = DjangoStore(simulation_id=1, run_id=1, token=1, policy="open", patience_seconds=3600)

    async def leave() -> None:
        asking = asyncio.create_task(store.read(Wanted(agent=1)))
        await asyncio.to_thread(tried.wait)
        asking.cancel()

    asyncio.run(leave())
    store.close()
    assert not {"store-texts", "store-writer", "store-world"} & {
        one.name for one in threading.enumerate()
    }


# --- the last write ---------------------------------------------------------------------------------


def test_last_write_that_hangs_is_left_behind() -> None:
    answered = threading.Event()
    with pytest.raises(Unanswered):
        insist(lambda: answered.wait(60), seconds=lambda: 0.2)
    answered.set()


def test_last_write_is_waited_for_less_once_a_signal_comes() -> None:
    answered = threading.Event()
    bounds = iter([3600.0, 3600.0, 0.0])
    with pytest.raises(Unanswered):
        insist(lambda: answered.wait(60), seconds=lambda: next(bounds))
    answered.set()


@pytest.mark.parametrize("trouble", ["database is locked", "database or disk is full"])
def test_run_whose_end_cannot_be_written_says_so_and_exits_with_1(
    trouble: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_world(agents=("ash", "elm"))

    def broken(*_: object, **__: object) -> None:
        raise OperationalError(trouble)

    with monkeypatch.context() as patched:
        patched.setattr(driving, "end", broken)
        patched.setattr(driving, "PATIENCE_LEASES", 0)
        left = runsim(*QUICK)
    run = Run.objects.get()
    assert (left.code, left.out, run.status) == (1, "", "running")
    assert left.err.strip().endswith(
        f"Run {run.pk} is over (idle), which could not be written: "
        "the next start marks it interrupted."
    )
    assert runsim(*QUICK).code == 0
    run.refresh_from_db()
    assert run.status == "interrupted"


# --- a whole run --------------------------------------------------------------------------------------


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Count silence fast, and give up soon."""
    monkeypatch.setattr("django.conf.settings.SIM_PULSE_SECONDS", 0.05)
    monkeypatch.setattr(driving, "PATIENCE_LEASES", 0.04)


def test_run_gives_a_silent_database_up_with_a_sentence(
    impatient: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    make_world(agents=("ash", "elm"))

    def silent(*_: object) -> Beat:
        raise Unanswered("connection refused")

    monkeypatch.setattr(DjangoStore, "beat", silent)
    left = runsim("--seed", "1", "--json", "--latency", "0.05")
    run = Run.objects.get()
    assert (left.code, run.status) == (1, "failed")
    assert run.detail == "The database did not answer for 1 s."
    assert "Traceback" not in caplog.text


def test_run_whose_world_cannot_be_read_gives_up_with_a_sentence(
    impatient: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The pulse beats from before the world is loaded."""
    make_world(agents=("ash", "elm"))
    answered = threading.Event()

    async def hang(store: DjangoStore) -> Loaded:
        await store._world_thread.do(lambda: answered.wait(60))
        raise AssertionError("it was given up before")

    def silent(*_: object) -> Beat:
        raise Unanswered("connection refused")

    monkeypatch.setattr(DjangoStore, "beat", silent)
    monkeypatch.setattr(DjangoStore, "load", hang)
    left = runsim(*QUICK)
    answered.set()
    run = Run.objects.get()
    assert (left.code, run.status, run.detail) == (1, "failed", "The database did not answer.")
    assert "Traceback" not in caplog.text
