"""What people ask of runs from a terminal, and what they are told of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from django.utils import timezone
from django_q.models import OrmQ

from engine import runs
from engine.core.config import RunConfig
from engine.loop.ending import Ending, EndReason
from engine.models import Run, RunControl, RunLease, Ticket
from engine.runs import controls
from engine.runs.end import end, mark_stopping
from engine.runs.progress import Silence
from engine.store.database import give_back_lease, read_lease
from engine.tasks import drive_run
from tests.doors import command, driver_elsewhere, make_world

if TYPE_CHECKING:
    from engine.runs import Begun

pytestmark = pytest.mark.django_db(transaction=True)

#: It goes on until somebody asks it not to.
ENDLESS = RunConfig(seed=1)
WRONG_USE = 2


@pytest.fixture
def run() -> Run:
    """A run that waits for a worker."""
    return runs.request(make_world(agents=("ash", "elm")), ENDLESS, who="Ada")


def begun(run: Run) -> Begun:
    found = runs.pick_up(run.pk)
    assert found is not None
    return found


def paused(run: Run) -> Run:
    """Let the run pause as soon as its driver hears of it."""
    RunControl.objects.filter(run=run).update(wish="pause")
    assert drive_run(run.pk) == "pause_requested"
    OrmQ.objects.all().delete()
    return run


def said(word: str, run: Run) -> str:
    told = command("simctl", word, str(run.pk))
    assert told.code == 0, told.err
    return told.out.strip()


def refused(word: str, run: Run) -> str:
    told = command("simctl", word, str(run.pk))
    assert told.code == WRONG_USE
    return told.err.strip()


def status(run: Run) -> tuple[str, str]:
    run.refresh_from_db()
    return run.status, run.end_reason


def wish(run: Run) -> tuple[str, bool]:
    control = RunControl.objects.get(run=run)
    return control.wish, bool(control.asked_by) and control.asked_at is not None


def state(run: Run) -> tuple[str, str]:
    found = runs.state_of(Run.objects.select_related("simulation").get(pk=run.pk))
    return found.state, found.sentence


@pytest.mark.parametrize(
    ("word", "then", "end_reason"),
    [
        ("stop", "it stops when the turns in flight are over", "stopped"),
        ("pause", "it pauses when the turns in flight are over", "pause_requested"),
        ("drain", "it starts nothing new, and stops when no thread is open", "stopped"),
    ],
)
def test_driver_hears_what_is_asked(run: Run, word: str, then: str, end_reason: str) -> None:
    driver = begun(run)
    assert said(word, run) == f"Run {run.pk} is asked: {then}."
    assert wish(run) == (word, True)
    assert runs.drive(driver, Silence()).ending.reason == end_reason


def test_queued_run_is_stopped_at_once(run: Run) -> None:
    assert said("stop", run) == f"Run {run.pk} had not begun: it is stopped."
    assert status(run) == ("stopped", "stopped")
    assert run.finished_at is not None
    assert run.summary is not None
    assert run.summary["turns"] == 0
    assert drive_run(run.pk) == "nothing to do"
    assert refused("stop", run).endswith(f"Run {run.pk} is stopped already.")


def test_queued_run_that_begins_at_this_moment_is_not_stopped_unheard(run: Run) -> None:
    late = Run.objects.get(pk=run.pk)
    begun(run).liveness.release()
    with pytest.raises(runs.RunRefused, match="began at this moment: try again"):
        runs.stop(late, who="Ada")
    assert status(run) == ("running", "")


def test_paused_run_is_stopped_and_its_driver_fenced(run: Run) -> None:
    paused(run)
    token = read_lease(run.simulation_id).token
    assert said("stop", run) == f"Run {run.pk} was paused: it is stopped."
    assert status(run) == ("stopped", "stopped")
    assert read_lease(run.simulation_id).token == token + 1


def test_paused_run_goes_on_in_a_worker(run: Run) -> None:
    paused(run)
    assert said("resume", run) == f"Run {run.pk} goes on as soon as a worker has it."
    assert OrmQ.objects.get().args() == (run.pk,)
    assert wish(run) == ("run", True)
    assert "It goes on as soon as a worker has it." in state(run)[1]
    driver = begun(run)
    assert status(run)[0] == "running"
    assert refused("resume", run).endswith("is running: only a paused run can go on.")
    driver.liveness.release()


def test_paused_run_is_left_alone_by_messages_that_come_late(run: Run) -> None:
    paused(run)
    assert runs.send_overdue() == 0
    assert drive_run(run.pk) == "nothing to do"
    assert status(run)[0] == "paused"


def test_paused_run_that_was_to_go_on_stays_paused(run: Run) -> None:
    paused(run)
    said("resume", run)
    assert said("pause", run) == f"Run {run.pk} stays paused."
    assert drive_run(run.pk) == "nothing to do"
    assert status(run)[0] == "paused"
    assert refused("pause", run).endswith("is paused: it can be stopped, and nothing else.")


def test_run_that_somebody_else_goes_on_with_is_not_stopped_as_paused(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    paused(run)
    late = read_lease(run.simulation_id)
    begun_again = runs.resume(run.simulation)
    monkeypatch.setattr(controls, "lease_of_now", lambda _: late)
    run.refresh_from_db()
    run.status = "paused"
    with pytest.raises(runs.RunRefused, match="is running"):
        runs.stop(run, who="Ada")
    begun_again.liveness.release()


def test_run_of_a_dead_driver_is_ended_by_a_stop(run: Run) -> None:
    begun(run).liveness.release()
    assert said("stop", run) == f"Run {run.pk} had lost its driver: it is marked interrupted."
    assert status(run) == ("interrupted", "interrupted")
    assert not Ticket.objects.exists()


def test_dead_run_that_somebody_takes_over_at_this_moment_is_not_ended(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun(run).liveness.release()
    late = read_lease(run.simulation_id)
    again = begun(run)
    monkeypatch.setattr(controls, "lease_of_now", lambda _: late)
    monkeypatch.setattr(controls, "is_driven", lambda *_: False)
    with pytest.raises(runs.RunRefused, match="is running"):
        runs.stop(Run.objects.get(pk=run.pk), who="Ada")
    again.liveness.release()


def test_stop_that_comes_while_a_run_pauses_is_not_forgotten(run: Run) -> None:
    driver = begun(run)
    said("stop", run)
    pause = Ending(reason=EndReason.PAUSE_REQUESTED)
    assert end(run.pk, token=driver.token, ending=pause, figures=None, at=timezone.now())
    driver.liveness.release()
    assert status(run) == ("stopped", "stopped")


def test_stopping_run_is_asked_for_nothing_else(run: Run) -> None:
    driver = begun(run)
    mark_stopping(run.pk, token=driver.token, n_turns=3)
    assert refused("drain", run).endswith(f"Run {run.pk} is stopping already.")
    assert said("stop", run).startswith(f"Run {run.pk} is asked")
    driver.liveness.release()


@pytest.mark.parametrize(
    ("word", "status_after", "end_reason"),
    [("stop", "stopped", "stopped"), ("pause", "paused", "pause_requested")],
)
def test_what_was_asked_of_a_driver_that_died_is_done_by_the_next(
    run: Run, word: str, status_after: str, end_reason: str
) -> None:
    driver = begun(run)
    said(word, run)
    driver.liveness.release()
    assert drive_run(run.pk) == "nothing to do"
    assert status(run) == (status_after, end_reason)
    assert not Ticket.objects.exists()


def test_queued_run_can_only_be_stopped(run: Run) -> None:
    assert refused("pause", run).endswith("is queued: it can be stopped, and nothing else.")


def test_nobody_asks_anything_of_a_run_that_is_not_there() -> None:
    told = command("simctl", "stop", "7")
    assert (told.code, told.err.strip()) == (WRONG_USE, "CommandError: There is no run 7.")


# --- what is shown -------------------------------------------------------------------------------


def test_queued_run_says_what_it_waits_for(run: Run) -> None:
    assert state(run) == ("queued", "It waits for a worker.")
    Ticket.objects.update(waits_for="Another goes first.")
    assert state(run) == ("queued", "Another goes first.")


def test_running_run_is_proven_by_heartbeat_and_lock(run: Run) -> None:
    with driver_elsewhere(run, seconds=30):
        Run.objects.update(status="running")
        assert state(run) == ("running", "It is driven.")
        RunControl.objects.update(wish="drain")
        assert state(run) == ("running", "It is driven; it drains: nothing new is started.")
        told = command("simctl", "status").out
        assert told.startswith(f"Run {run.pk} of main: running on elsewhere:7 (last beat 0 s ago).")


def test_driver_that_lives_and_is_silent_stalls(run: Run) -> None:
    with driver_elsewhere(run, seconds=10):
        Run.objects.update(status="running")
        assert state(run)[0] == "stalled"
        assert "has been silent for 20 s; after 30 s another one may" in state(run)[1]


def test_run_whose_driver_died_is_dead_whatever_its_lease_says(run: Run) -> None:
    begun(run).liveness.release()
    assert not read_lease(run.simulation_id).is_expired
    assert state(run) == ("dead", "Its driver died; a worker goes on with it.")
    Ticket.objects.all().delete()
    assert state(run) == ("dead", "Its driver died; the next `runsim` marks it interrupted.")


@pytest.mark.parametrize(
    ("n_turns", "sentence"),
    [
        (2, "It stops when 2 turns in flight are over."),
        (1, "It stops when 1 turn in flight is over."),
    ],
)
def test_stopping_run_counts_its_turns_down(run: Run, n_turns: int, sentence: str) -> None:
    driver = begun(run)
    mark_stopping(run.pk, token=driver.token, n_turns=n_turns)
    assert state(run) == ("stopping", sentence)
    told = json.loads(command("simctl", "status", str(run.pk), "--json").out)
    assert (told["state"], told["n_turns"], told["run"]) == ("stopping", n_turns, run.pk)
    driver.liveness.release()


def test_stopping_run_that_has_counted_nothing_yet_says_so(run: Run) -> None:
    driver = begun(run)
    Run.objects.update(status="stopping")
    assert state(run) == ("stopping", "It stops when turns in flight are over.")
    driver.liveness.release()


def test_run_that_is_paused_or_over_says_why(run: Run) -> None:
    paused(run)
    assert state(run) == ("paused", "It is paused (pause_requested).")
    said("stop", run)
    assert state(run) == ("stopped", "It is over: stopped.")
    assert command("simctl", "status").out == "No run is queued or live.\n"
    Run.objects.update(takeovers=2)
    told = command("simctl", "status", str(run.pk)).out
    assert told == f"Run {run.pk} of main: stopped. It is over: stopped. Taken over 2 times.\n"


def test_late_beat_writes_over_no_counters(run: Run) -> None:
    driver = begun(run)
    mark_stopping(run.pk, token=driver.token + 1, n_turns=9)
    assert RunLease.objects.get().counters == {}
    give_back_lease(run.simulation_id, token=driver.token)
    mark_stopping(run.pk, token=driver.token, n_turns=9)
    assert RunLease.objects.get().counters == {}
    driver.liveness.release()
