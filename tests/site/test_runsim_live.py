"""`runsim` while it runs: signals, wishes, other processes, and who drives."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import threading
from typing import TYPE_CHECKING

import pytest

from cohorts.operations import save_agent
from engine import inbox
from engine.models import (
    AgentState,
    Channel,
    LlmCall,
    Message,
    Run,
    RunControl,
    RunLease,
    Subscription,
    Thread,
    Turn,
)
from engine.store.database import read_lease, take_lease
from tests.doors import (
    MANAGE,
    environment,
    make_agent,
    make_world,
    managing,
    told,
    wait_until,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.django_db(transaction=True)

SLOW = ("runsim", "--skip-checks", "--seed", "1", "--json", "--latency", "0.3")


def is_busy() -> bool:
    """Tell whether a model is being asked, and something was stored."""
    return Turn.objects.filter(outcome="running").exists() or Message.objects.count() > 3


def nothing_is_left_running() -> bool:
    lease = read_lease(Run.objects.get().simulation_id)
    return lease.is_expired and not Turn.objects.filter(outcome="running").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_one_signal_lets_turns_finish_and_then_says_stopped(number: signal.Signals) -> None:
    make_world()
    with managing(*SLOW) as process:
        wait_until(is_busy)
        process.send_signal(number)
        wait_until(lambda: Run.objects.get().status != "running")
        left = told(process)
    assert (left.code, left.summary["status"], left.summary["end_reason"]) == (
        0,
        "stopped",
        "stopped",
    )
    assert Run.objects.get().finished_at is not None
    assert nothing_is_left_running()
    assert not Turn.objects.filter(outcome__in=["cancelled", "interrupted"]).exists()


def test_row_says_stopping_until_it_is_true_and_a_second_signal_cancels() -> None:
    make_world()
    with managing("runsim", "--skip-checks", "--json", "--latency", "1000") as process:
        # Joining a channel is what a turn does before it asks the model.
        wait_until(Subscription.objects.exists)
        process.send_signal(signal.SIGINT)
        wait_until(lambda: Run.objects.get().status == "stopping")
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        left = told(process)
    assert (left.code, left.summary["status"]) == (0, "stopped")
    assert nothing_is_left_running()
    assert Turn.objects.filter(outcome="cancelled").exists()


@pytest.fixture
def live() -> Iterator[subprocess.Popen[str]]:
    """A run in another process that has begun to talk."""
    make_world(cohorts={"north": ("ash", "elm")})
    with managing(*SLOW) as process:
        wait_until(is_busy)
        yield process


def test_wish_to_stop_is_obeyed(live: subprocess.Popen[str]) -> None:
    RunControl.objects.update(wish="stop")
    left = told(live)
    assert (left.code, left.summary["end_reason"]) == (0, "stopped")
    assert nothing_is_left_running()


def test_wish_to_pause_is_obeyed_and_the_run_goes_on_later(live: subprocess.Popen[str]) -> None:
    RunControl.objects.update(wish="pause")
    seen = set()
    while live.poll() is None:
        seen.add(Run.objects.get().status)
    left = told(live)
    assert (left.code, left.summary["end_reason"]) == (4, "pause_requested")
    assert "stopping" not in seen
    run = Run.objects.get()
    assert (run.status, run.finished_at) == ("paused", None)
    assert nothing_is_left_running()
    n_turns = Turn.objects.count()
    with managing("runsim", "--skip-checks", "--resume", "--json") as process:
        wait_until(lambda: Turn.objects.count() > n_turns)
        RunControl.objects.update(wish="stop")
        left = told(process)
    assert (left.code, left.summary["run"]) == (0, run.pk)


def test_drained_run_finishes_its_threads_and_opens_none(live: subprocess.Popen[str]) -> None:
    wait_until(lambda: Thread.objects.filter(partner__isnull=False).exists())
    RunControl.objects.update(wish="drain")
    left = told(live)
    assert (left.code, left.summary["end_reason"]) == (0, "stopped")
    assert left.summary["threads"]["open"] == 0
    assert not Thread.objects.filter(closed_seq=None).exists()


def test_cap_raised_while_the_run_lives_is_what_pauses_it() -> None:
    make_world()
    with managing(*SLOW, "--max-calls", "6", "--latency", "0.5") as process:
        wait_until(RunControl.objects.exists)
        RunControl.objects.update(max_calls=9)
        left = told(process)
    assert (left.code, left.summary["end_reason"]) == (4, "call_cap")
    assert LlmCall.objects.count() == 9


def test_people_write_review_and_edit_beside_a_live_run(live: subprocess.Popen[str]) -> None:
    channel = Channel.objects.get()
    message = inbox.write_message(channel=channel, person="Ada", text="Who knows about @Ash?")
    ash = make_agent("ash")
    ash.represents = "The Charcoal Guild"
    save_agent(ash, who="Ada")
    make_agent("yew")
    wait_until(lambda: Message.objects.filter(pk=message.pk, seq__isnull=False).exists())
    wait_until(lambda: Turn.objects.filter(agent=ash, agent_version=2).exists())
    wait_until(lambda: AgentState.objects.filter(agent__slug="yew").exists())
    wait_until(lambda: Message.objects.filter(root=message, author=ash).exists())
    RunControl.objects.update(wish="stop")
    assert told(live).code == 0
    assert not Run.objects.get().simulation.inbox.exists()


def test_driver_that_lost_its_lease_stores_nothing_more(live: subprocess.Popen[str]) -> None:
    run = Run.objects.get()
    lease = read_lease(run.simulation_id)
    token = take_lease(
        run.simulation_id, run.pk, known_token=lease.token, owner="elsewhere:7", seconds=60
    )
    assert token == lease.token + 1
    n_messages = Message.objects.count()
    commit_no = RunLease.objects.get().commit_no
    left = told(live)
    assert left.code == 1
    assert "Another driver has taken this simulation over" in left.err
    assert (Message.objects.count(), RunLease.objects.get().commit_no) == (n_messages, commit_no)
    run.refresh_from_db()
    assert (run.status, run.end_reason) == ("running", "")
    lease = read_lease(run.simulation_id)
    assert (lease.owner, lease.token, lease.is_expired) == ("elsewhere:7", token, False)


def test_of_two_starts_at_the_same_moment_one_drives_and_one_is_told() -> None:
    make_world()
    with managing(*SLOW) as one, managing(*SLOW) as other:
        wait_until(lambda: one.poll() is not None or other.poll() is not None)
        loser, winner = (one, other) if one.poll() is not None else (other, one)
        lost = told(loser)
        RunControl.objects.update(wish="stop")
        won = told(winner)
    run = Run.objects.get()
    assert (lost.code, won.code, lost.out) == (3, 0, "")
    assert lost.err.strip().endswith(" unless it renews it): stop it first.")
    assert f"Run {run.pk} of main is running on {os.uname().nodename}:{winner.pid}" in lost.err
    assert won.summary["run"] == run.pk


def test_progress_is_plain_when_piped_and_a_table_on_a_terminal() -> None:
    make_world(agents=("ash", "elm"))
    words = ("runsim", "--skip-checks", "--json", "--max-turns", "4", "--seed", "1")
    with managing(*words, "--fresh") as process:
        piped = told(process)
    assert (piped.code, "\x1b" in piped.err) == (0, False)
    assert piped.err.startswith("2 agents, 3 slots, policy open (in_force)")
    assert piped.out == json.dumps(piped.summary) + "\n"

    ours, theirs = pty.openpty()
    shown = bytearray()

    def read() -> None:
        try:
            while chunk := os.read(ours, 4096):
                shown.extend(chunk)
        except OSError:  # how Linux says that nobody writes there any more
            return

    reader = threading.Thread(target=read)
    reader.start()
    process = subprocess.Popen(
        [*MANAGE, *words, "--fresh"],
        env=environment(TERM="xterm", COLUMNS="100"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=theirs,
        text=True,
    )
    os.close(theirs)
    assert told(process).code == 0
    reader.join()
    os.close(ours)
    screen = shown.decode()
    for name in ("turns", "slots in use", "LLM calls", "threads", "proposals", "kept back", "time"):
        assert name in screen
    assert "\x1b[" in screen
