"""Runs that workers drive: requested, picked up, taken over; whatever messages come, once."""

from __future__ import annotations

import threading
from datetime import timedelta
from importlib import import_module
from typing import TYPE_CHECKING

import pytest
from django.db import OperationalError, connection, transaction
from django.utils import timezone
from django_q.models import OrmQ

from engine import runs
from engine.core.config import RunConfig
from engine.core.settings import RefusedSetting
from engine.loop.ending import Ending, EndReason
from engine.models import LlmCall, Run, RunControl, Simulation, Ticket, Turn
from engine.runs import queue, reaper
from engine.runs.end import end
from engine.runs.progress import Silence
from engine.store.database import one_start_at_once, read_lease, take_lease
from engine.tasks import drive_run
from tests.contract.test_money_waits import somebody_waits
from tests.doors import driver_elsewhere, make_agent, make_world, runsim, wait_until

if TYPE_CHECKING:
    from pytest_django.fixtures import Settings

#: `engine.runs` has a function of the same name.
pick_up = import_module("engine.runs.pick_up")

pytestmark = pytest.mark.django_db(transaction=True)

QUICK = RunConfig(until_idle=True, clock="virtual", seed=1)


def requested(name: str = "main", config: RunConfig = QUICK) -> Run:
    """Return a run of a simulation, made if need be, that waits for a worker."""
    simulation = Simulation.objects.filter(name=name).first()
    if simulation is None:
        simulation = make_world(name, agents=("ash", "elm"))
    return runs.request(simulation, config, who="Ada")


def died(run: Run, *, deaths: int = 1) -> int:
    """Let drivers begin with a run and die; the token of the last."""
    token = 0
    for _ in range(deaths):
        begun = runs.pick_up(run.pk)
        assert begun is not None
        begun.liveness.release()
        token = begun.token
    return token


def messages() -> list[object]:
    return [message.args()[0] for message in OrmQ.objects.order_by("pk")]


def status(run: Run) -> tuple[str, str, int]:
    run.refresh_from_db()
    return run.status, run.end_reason, run.takeovers


def waits_for(run: Run) -> str:
    return Ticket.objects.get(run=run).waits_for


def test_requested_run_is_a_row_and_a_message_with_its_number() -> None:
    run = requested()
    assert (run.status, run.started_by) == ("queued", "Ada")
    message = OrmQ.objects.get()
    assert (message.key, message.args(), message.kwargs()) == ("runs", (run.pk,), {})
    assert RunControl.objects.get(run=run).wish == "run"


def test_run_that_could_never_begin_is_not_requested() -> None:
    with pytest.raises(RefusedSetting, match="SIM_ANTHROPIC_API_KEY is not set"):
        requested(config=RunConfig(llm="anthropic", small_model="s", large_model="l"))
    assert (Run.objects.count(), OrmQ.objects.count()) == (0, 0)


def test_run_whose_message_cannot_be_sent_is_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: int) -> None:
        raise OSError("no room")

    monkeypatch.setattr(queue, "send", fails)
    with pytest.raises(OSError, match="no room"):
        requested()
    assert (Run.objects.count(), Ticket.objects.count()) == (0, 0)
    monkeypatch.undo()
    requested()
    assert (Run.objects.count(), Ticket.objects.count()) == (1, 1)


def test_message_drives_the_run_to_its_end_and_a_second_one_does_nothing() -> None:
    run = requested()
    assert drive_run(run.pk) == "idle"
    assert status(run) == ("completed", "idle", 0)
    n_turns = Turn.objects.count()
    assert n_turns > 0
    assert not Ticket.objects.exists()
    assert drive_run(run.pk) == "nothing to do"
    assert Turn.objects.count() == n_turns


def test_message_about_a_driven_run_or_none_does_nothing() -> None:
    run = requested()
    begun = runs.pick_up(run.pk)
    assert begun is not None
    assert drive_run(run.pk) == "nothing to do"
    assert status(run) == ("running", "", 0)
    assert drive_run(run.pk + 1) == "nothing to do"
    assert runs.drive(begun, Silence()).ending.reason == "idle"


def test_dead_drivers_run_goes_on_as_the_same_run_and_the_dead_one_stores_nothing() -> None:
    run = requested()
    token = died(run)
    Turn.objects.create(
        simulation=run.simulation,
        run=run,
        number=1,
        agent=make_agent("ash"),
        agent_version=1,
        selected_at=timezone.now(),
        waited_seconds=600.0,
        wait_bound_seconds=1200.0,
        outcome="running",
    )
    begun = runs.pick_up(run.pk)
    assert begun is not None
    assert Turn.objects.get(number=1).outcome == "interrupted"
    assert runs.drive(begun, Silence()).ending.reason == "idle"
    assert status(run) == ("completed", "idle", 1)
    assert Turn.objects.filter(run=run).count() > 1
    summary = Run.objects.get(pk=run.pk).summary or {}
    assert (summary["longest_wait_seconds"], summary["wait_bound_seconds"]) == (600.0, 1200.0)
    stopped = Ending(reason=EndReason.STOPPED)
    assert not end(run.pk, token=token, ending=stopped, figures=None, at=timezone.now())


def test_take_over_goes_by_what_the_run_has_left() -> None:
    run = requested(config=RunConfig(max_turns=5, max_minutes=10.0, max_calls=9, clock="virtual"))
    died(run)
    RunControl.objects.filter(run=run).update(max_calls=20)
    ash = make_agent("ash")
    LlmCall.objects.create(
        run=run,
        turn=1,
        number=1,
        agent=ash,
        agent_version=1,
        phase="post",
        model="m",
        prompt_version="",
        attempt=1,
        started_at=timezone.now(),
        latency_seconds=1.0,
        cost_nano_usd=7,
    )
    Run.objects.update(started_at=timezone.now() - timedelta(minutes=4))
    begun = runs.pick_up(run.pk)
    assert begun is not None
    begun.liveness.release()
    assert (begun.config.max_turns, begun.config.max_calls) == (5, 20)
    assert begun.config.max_minutes == pytest.approx(6.0, abs=0.5)
    assert [(one.agent, one.n_calls, one.nano_usd) for one in begun.spent] == [(ash.pk, 1, 7)]
    Run.objects.update(started_at=timezone.now() - timedelta(minutes=40))
    begun = runs.pick_up(run.pk)
    assert begun is not None
    begun.liveness.release()
    assert begun.config.max_minutes == 0.001


def test_run_that_loses_one_driver_too_many_is_interrupted() -> None:
    run = requested()
    died(run, deaths=4)
    assert status(run) == ("running", "", 3)
    assert drive_run(run.pk) == "nothing to do"
    assert status(run) == ("interrupted", "interrupted", 3)
    assert not Ticket.objects.exists()


def test_run_whose_driver_died_stopping_is_stopped() -> None:
    run = requested()
    died(run)
    Run.objects.update(status="stopping")
    assert drive_run(run.pk) == "nothing to do"
    assert status(run) == ("stopped", "stopped", 0)


def test_terminal_ends_a_dead_run_and_begins_a_new_one() -> None:
    run = requested()
    died(run)
    assert runsim("--clock", "virtual", "--until-idle", "--quiet").code == 0
    assert status(run) == ("interrupted", "interrupted", 0)
    assert drive_run(run.pk) == "nothing to do"


def test_queued_run_waits_for_the_one_before_it() -> None:
    first, second = requested(), requested()
    assert drive_run(second.pk) == "nothing to do"
    assert runs.send_overdue() == 0
    assert waits_for(second) == f"Run {first.pk} of main is queued before it."
    with driver_elsewhere(first):
        Run.objects.filter(pk=first.pk).update(status="running")
        assert drive_run(second.pk) == "nothing to do"
        OrmQ.objects.all().delete()
        assert runs.send_overdue() == 0
        said = f"Run {first.pk} of main is running: it begins when that has ended."
        assert waits_for(second) == said
    Run.objects.filter(pk=first.pk).update(status="stopped", end_reason="stopped")
    Ticket.objects.filter(run=first).delete()
    assert runs.send_overdue() == 1
    assert messages() == [second.pk]
    assert drive_run(second.pk) == "idle"


def test_queued_run_waits_for_no_dead_run_of_a_terminal() -> None:
    run = requested()
    dead = Run.objects.create(simulation=run.simulation, status="running")
    assert drive_run(run.pk) == "idle"
    assert status(dead) == ("interrupted", "interrupted", 0)


def test_message_is_sent_once_for_each_death() -> None:
    run = requested()
    OrmQ.objects.all().delete()
    begun = runs.pick_up(run.pk)
    assert begun is not None
    assert runs.send_overdue() == 0
    begun.liveness.release()
    assert runs.send_overdue() == 1
    assert messages() == [run.pk]
    assert runs.send_overdue() == 0
    OrmQ.objects.update(lock=timezone.now() + timedelta(minutes=1))  # a worker has it
    died(run)
    assert runs.send_overdue() == 1
    assert messages() == [run.pk, run.pk]


def test_lost_message_is_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    run = requested()
    OrmQ.objects.all().delete()
    assert runs.send_overdue() == 0
    monkeypatch.setattr(reaper, "RESEND_AFTER", timedelta(0))
    assert runs.send_overdue() == 1
    assert messages() == [run.pk]
    assert runs.send_overdue() == 0  # one waits


def test_of_two_who_look_at_once_one_sends(monkeypatch: pytest.MonkeyPatch) -> None:
    run = requested()
    OrmQ.objects.all().delete()
    monkeypatch.setattr(reaper, "RESEND_AFTER", timedelta(0))

    def looked_meanwhile() -> set[object]:
        monkeypatch.undo()
        Ticket.objects.update(sent_at=timezone.now())
        return set()

    monkeypatch.setattr(reaper, "runs_in_queue", looked_meanwhile)
    assert runs.send_overdue() == 0
    assert queue.runs_in_queue() == set()
    Ticket.objects.update(sent_at=None)
    assert runs.send_overdue() == 1
    assert queue.runs_in_queue() == {run.pk}


def test_as_many_runs_go_on_as_may(settings: Settings) -> None:
    settings.SIM_MAX_RUNS = 1
    other, run = requested("other"), requested()
    OrmQ.objects.all().delete()
    with driver_elsewhere(other):
        Run.objects.filter(pk=other.pk).update(status="running")
        assert drive_run(run.pk) == "nothing to do"
        said = "As many runs go on as may (SIM_MAX_RUNS is 1): it begins when one of them ends."
        assert (status(run)[0], waits_for(run)) == ("queued", said)
        assert runs.send_overdue() == 0
    Run.objects.filter(pk=other.pk).update(status="stopped", end_reason="stopped")
    Ticket.objects.filter(run=other).delete()
    other.simulation.lease.delete()
    assert runs.send_overdue() == 1
    assert drive_run(run.pk) == "idle"


def test_as_many_runs_go_on_as_may_on_this_host(settings: Settings) -> None:
    """A run of another host is not counted."""
    settings.SIM_MAX_RUNS_PER_HOST = 1
    far, near, run = requested("far"), requested("near"), requested()
    with driver_elsewhere(far):
        Run.objects.filter(pk=far.pk).update(status="running")
        begun = runs.pick_up(near.pk)
        assert begun is not None
        assert drive_run(run.pk) == "nothing to do"
        assert waits_for(run) == (
            "As many runs go on as may on a host (SIM_MAX_RUNS_PER_HOST is 1): it begins when one "
            "of them ends."
        )
        assert runs.drive(begun, Silence()).ending.reason == "idle"
        assert drive_run(run.pk) == "idle"


def test_two_who_start_at_once_count_one_after_the_other(settings: Settings) -> None:
    """The other's start is not committed yet when ours looks; it is waited for."""
    settings.SIM_MAX_RUNS = 1
    other, run = requested("other"), requested()
    known = read_lease(other.simulation_id).token
    with transaction.atomic():
        one_start_at_once()
        starting = threading.Thread(target=pick_up_and_close, args=(run,))
        starting.start()
        wait_until(somebody_waits)
        assert take_lease(
            other.simulation_id, other.pk, known_token=known, owner="elsewhere:7", seconds=60
        )
    starting.join()
    assert status(run)[0] == "queued"
    assert "SIM_MAX_RUNS is 1" in waits_for(run)


def pick_up_and_close(run: Run) -> None:
    """Pick a run up on a thread of its own."""
    try:
        begun = runs.pick_up(run.pk)
        if begun is not None:
            begun.liveness.release()
    finally:
        connection.close()


def test_run_that_cannot_begin_any_more_fails_with_the_sentence() -> None:
    run = requested()
    Run.objects.update(configuration=run.configuration | {"llm": "replay:99"})
    assert drive_run(run.pk) == "nothing to do"
    assert status(run)[:2] == ("failed", "failed")
    assert run.detail.startswith("Run 99 asked no model")
    assert not Ticket.objects.exists()


def test_run_that_nobody_can_begin_fails_and_comes_no_more(
    caplog: pytest.LogCaptureFixture,
) -> None:
    run = requested()
    Run.objects.update(configuration={"of": "another release"})
    assert drive_run(run.pk) == "nothing to do"
    assert status(run)[0] == "failed"
    assert run.detail.startswith("TypeError: ")
    assert f"Run {run.pk} could not be picked up." in caplog.text
    assert not Ticket.objects.exists()


def test_run_is_kept_while_the_database_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    run = requested()

    def away(_: Run) -> None:
        raise OperationalError("the server is away")

    monkeypatch.setattr(pick_up, "_pick_up", away)
    with pytest.raises(OperationalError):
        drive_run(run.pk)
    assert status(run)[0] == "queued"
    monkeypatch.undo()
    assert drive_run(run.pk) == "idle"


def test_dead_run_that_this_host_cannot_drive_stays_for_another() -> None:
    run = requested()
    died(run)
    Run.objects.update(configuration=run.configuration | {"llm": "replay:99"})
    assert drive_run(run.pk) == "nothing to do"
    assert status(run) == ("running", "", 0)
    assert waits_for(run).startswith("Run 99 asked no model")


def test_of_two_workers_that_begin_with_a_run_at_once_one_has_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It was queued when this one looked, and is not when it writes."""
    run = requested()
    late = Run.objects.get(pk=run.pk)
    Run.objects.update(takeovers=1)
    with pytest.raises(runs.RunIsLive):
        pick_up._begin_queued(late)
    assert read_lease(run.simulation_id).token == 0
    monkeypatch.setattr(pick_up, "_pick_up", lambda _: pick_up._begin_queued(late))
    assert runs.pick_up(run.pk) is None
    assert Ticket.objects.get(run=run).sent_at is None
    monkeypatch.undo()
    assert drive_run(run.pk) == "idle"
