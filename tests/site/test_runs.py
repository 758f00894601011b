"""Driving a run from code: moments in which a stop, a fault or nobody's terminal is met."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection

from engine import runs
from engine.core.settings import configuration
from engine.loop.ending import EndReason
from engine.models import Run, Turn
from engine.runs.progress import Silence
from engine.store.database import DjangoStore
from tests.doors import make_world, runsim

if TYPE_CHECKING:
    from engine.core.config import RunConfig
    from engine.ports.store import Loaded

pytestmark = pytest.mark.django_db(transaction=True)

driving: Any = import_module("engine.runs.drive")


def config(**asked: Any) -> RunConfig:
    return configuration({}, **{"clock": "virtual", "seed": 1, "until_idle": True} | asked)


def test_run_is_driven_from_a_thread_that_hears_no_signals() -> None:
    simulation = make_world(agents=("ash", "elm"))
    ended: list[runs.Driven] = []

    def drive() -> None:
        begun = runs.begin(simulation, config(), who="a worker")
        ended.append(runs.drive(begun, Silence()))
        connection.close()

    worker = threading.Thread(target=drive)
    worker.start()
    worker.join()
    run = Run.objects.get()
    assert [one.ending.reason for one in ended] == [EndReason.IDLE]
    assert (run.pk, run.status, run.started_by) == (ended[0].run_id, "completed", "a worker")


def test_signal_while_the_world_is_loaded_stops_before_the_first_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make_world(agents=("ash", "elm"))
    load = DjangoStore.load

    async def load_and_be_stopped(store: DjangoStore) -> Loaded:
        loaded = await load(store)
        os.kill(os.getpid(), signal.SIGTERM)
        for _ in range(5):  # turns of the loop, in which the signal is heard
            await asyncio.sleep(0)
        return loaded

    monkeypatch.setattr(DjangoStore, "load", load_and_be_stopped)
    told = runsim("--until-idle", "--json")
    assert (told.code, told.summary["end_reason"], told.summary["turns"]) == (0, "stopped", 0)
    assert not Turn.objects.exists()


def test_interrupt_before_anything_listens_leaves_a_stopped_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make_world(agents=("ash", "elm"))

    async def be_interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(driving._Driver, "run", be_interrupted)
    told = runsim("--until-idle", "--json")
    assert (told.code, told.summary["status"]) == (0, "stopped")
    assert told.summary["slot_utilisation"] is None


def test_driver_that_finds_its_lease_gone_at_the_end_says_interrupted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make_world(agents=("ash", "elm"))
    monkeypatch.setattr(driving, "end", lambda *_, **__: False)
    told = runsim("--until-idle", "--clock", "virtual", "--json")
    assert told.code == 1
    assert "Another driver has taken this simulation over." in told.err
    assert told.summary["status"] == "running"


def test_run_begins_no_earlier_than_the_one_before_it_finished() -> None:
    """The first one's last hours pass without a commit, on a clock that runs ahead."""
    make_world(agents=("ash", "elm"))
    assert runsim("--clock", "virtual", "--seed", "1", "--max-minutes", "600").code == 0
    assert runsim("--clock", "virtual", "--seed", "1", "--until-idle").code == 0
    first, second = Run.objects.order_by("pk")
    assert first.finished_at is not None
    assert second.started_at is not None
    assert second.started_at >= first.finished_at


def test_lines_of_progress_are_written_from_time_to_time(monkeypatch: pytest.MonkeyPatch) -> None:
    make_world(agents=("ash", "elm"))
    monkeypatch.setattr("engine.runs.progress.LINE_EVERY_SECONDS", 0.0)
    monkeypatch.setattr("django.conf.settings.SIM_PULSE_SECONDS", 0.02)
    told = runsim("--until-idle", "--latency", "0.05", "--seed", "1")
    assert told.code == 0
    first, *lines = told.err.splitlines()
    assert first.startswith("2 agents, 3 slots")
    assert lines
    assert "slots in use " in lines[-1]
    assert "; kept back by the gate 0; time " in lines[-1]
