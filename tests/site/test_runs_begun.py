"""How a run begins and cannot be left behind: refused whole, stopped at any moment, or failed."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest

from cohorts.triggers import missing_triggers
from engine.core.effects import Effect
from engine.core.errors import StoreError
from engine.models import Channel, Run, RunLease, Simulation, Turn
from engine.runs.progress import Silence
from engine.store.database import DjangoStore, read_lease
from tests.doors import Told, driver_elsewhere, make_world, runsim, signalled_run, told

if TYPE_CHECKING:
    from typing import Self

pytestmark = pytest.mark.django_db(transaction=True)

QUICK = ("--until-idle", "--seed", "1", "--clock", "virtual", "--json")

driving: Any = import_module("engine.runs.drive")


def play(*words: str) -> Told:
    return runsim(*QUICK, *words)


def is_free(simulation: Simulation) -> bool:
    lease = read_lease(simulation.pk)
    return lease.is_expired and lease.owner == ""


# --- stopped at any moment -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "moment", "reason"),
    [
        ("SIGTERM", "begin", "stopped"),
        ("SIGINT", "begun", "stopped"),
        ("SIGTERM", "build", "stopped"),
        ("SIGINT", "load", "stopped"),
        ("SIGTERM", "end", "idle"),
        ("SIGINT", "end", "idle"),
    ],
)
def test_signal_at_any_moment_leaves_a_row_that_says_how_it_ended(
    number: str, moment: str, reason: str
) -> None:
    simulation = make_world(agents=("ash", "elm"))
    with signalled_run(number, moment, *QUICK) as process:
        left = told(process)
    assert (left.code, left.summary["end_reason"]) == (0, reason), left.err
    run = Run.objects.get()
    assert (run.status == "stopped") == (reason == "stopped")
    assert run.finished_at is not None
    assert Turn.objects.exists() == (reason == "idle")
    assert is_free(simulation)


# --- failed, and says so -----------------------------------------------------------------------------


class Unwatchable(Silence):
    """A screen that cannot be drawn."""

    def __enter__(self) -> Self:
        raise OSError("no terminal")


@pytest.mark.parametrize("step", ["build", "progress_for"])
def test_fault_before_the_first_turn_fails_the_run_and_frees_the_lease(
    step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulation = make_world(agents=("ash", "elm"))

    def broken(**_: object) -> None:
        raise OSError("no terminal")

    if step == "build":
        monkeypatch.setattr(driving, "build", broken)
    else:
        command = import_module("engine.management.commands.runsim")
        monkeypatch.setattr(command, "progress_for", lambda *_, **__: Unwatchable())
    left = play()
    assert (left.code, left.summary["status"]) == (1, "failed")
    run = Run.objects.get()
    assert (run.end_reason, run.detail) == ("failed", "OSError: no terminal")
    assert is_free(simulation)


@pytest.mark.parametrize(
    ("step", "sentence"),
    [
        ("commit", "Nothing can be stored any more: the index is corrupt"),
        ("read_mail", "The database failed: the index is corrupt"),
    ],
    ids=["commit", "mail"],
)
def test_store_that_fails_at_the_start_fails_the_run_with_a_sentence(
    step: str, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulation = make_world(agents=("ash", "elm"))

    async def broken(*_: object) -> tuple[Effect, ...]:
        raise StoreError("the index is corrupt")

    monkeypatch.setattr(DjangoStore, step, broken)
    left = play()
    assert (left.code, left.summary["status"]) == (1, "failed")
    assert left.err.splitlines()[-1] == sentence
    assert Run.objects.get().detail == sentence
    assert is_free(simulation)


# --- refused whole -----------------------------------------------------------------------------------


def without_a_trigger(monkeypatch: pytest.MonkeyPatch) -> None:
    start = import_module("engine.runs.start")
    monkeypatch.setattr(start, "missing_triggers", lambda: ("a_trigger",))


def rows() -> tuple[list[str], list[str], int]:
    """Return what a refused start must not change: worlds, their channels, runs."""
    names = Simulation.objects.order_by("pk").values_list("name", flat=True)
    rooms = Channel.objects.order_by("pk").values_list("name", flat=True)
    return list(names), list(rooms), Run.objects.count()


@pytest.mark.parametrize("words", [("--channels", "yard"), ("--fresh",)], ids=["channel", "fresh"])
def test_start_beside_a_live_run_writes_nothing(words: tuple[str, ...]) -> None:
    make_world(agents=("ash", "elm"))
    assert play("--max-calls", "2").code == 4
    before = rows()
    left = play(*words)
    assert (left.code, rows()) == (3, before)
    assert "is paused (call_cap)" in left.err
    Run.objects.update(status="stopped")
    assert play(*words).code == 0
    assert rows() != before


@pytest.mark.parametrize(
    "words",
    [("--fresh",), ("--channels", "yard"), ("--simulation", "other")],
    ids=["fresh", "channel", "unknown"],
)
def test_start_without_a_trigger_writes_nothing(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    make_world(agents=("ash", "elm"))
    assert missing_triggers() == ()
    before = rows()
    without_a_trigger(monkeypatch)
    left = play(*words)
    assert (left.code, rows()) == (2, before)
    assert "The database lacks a_trigger" in left.err


# --- afresh after a death ----------------------------------------------------------------------------


def died() -> Run:
    """Return a run whose driver is gone, and whose lease has ended."""
    make_world(agents=("ash", "elm"))
    assert play("--max-turns", "3").code == 0
    Run.objects.update(status="running", end_reason="", finished_at=None, summary=None)
    return Run.objects.get()


def test_world_of_a_dead_run_is_begun_afresh() -> None:
    dead = died()
    token = RunLease.objects.get().token
    left = play("--fresh")
    assert (left.code, left.summary["simulation"]) == (0, "main")
    dead.refresh_from_db()
    assert (dead.status, dead.detail) == ("interrupted", "Its driver died.")
    assert dead.simulation.name == "main-1"
    # Whoever still drove it is fenced.
    assert RunLease.objects.get(simulation=dead.simulation_id).token == token + 1
    assert left.summary["run"] != dead.pk


def test_world_of_a_run_that_is_driven_is_not_begun_afresh() -> None:
    driven = died()
    with driver_elsewhere(driven):
        left = play("--fresh")
    assert left.code == 3
    assert f"Run {driven.pk} of main is running on elsewhere:7 (" in left.err
    assert rows() == (["main"], ["general"], 1)
