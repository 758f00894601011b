"""`manage.py serve`: one parent, restarts with a growing pause, one Ctrl-C, no orphan."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from simsite.keeping import ended_in_words, next_pause
from simsite.management.commands.serve import CHILDREN
from tests.clusters.cluster import requested, wait_for_end
from tests.doors import MANAGE, PATIENCE_SECONDS, ROOT, environment, make_world, wait_until
from tests.postgres import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator

#: A child that says when it is ready, and when it is asked to stop.
GENTLE = """
import os, signal, sys, time
def end(*_):
    os.write(2, f"gentle end of {os.environ['CHILD']}\\n".encode())  # two lines never mix
    sys.exit(1)
signal.signal(signal.SIGINT, end)
print("ready", flush=True)
while True:
    time.sleep(0.05)  # a signal just before a longer wait would be noticed after it
"""
STUBBORN = """
import signal
signal.signal(signal.SIGINT, signal.SIG_IGN)
print("ready", flush=True)
signal.pause()
"""
#: One that would leave a process behind when it dies.
FORKS = """
import os, signal
if os.fork() == 0:
    print("left behind as process", os.getpid(), flush=True)
signal.pause()
"""
#: What starts a tethered process that forks and dies, so that only its fork can notice our end.
STARTS_FORKING = """
import os, subprocess, sys, signal
reading, writing = os.pipe()
code = f'''
import os, signal, threading
from simsite.tether import hold_on
hold_on({reading})
if os.fork() == 0:
    print("left behind as process", os.getpid(), flush=True)
    signal.pause()
os._exit(0)
'''
subprocess.Popen([sys.executable, "-c", code], pass_fds=[reading], start_new_session=True).wait()
signal.pause()
"""
#: Keeps pieces of code running as `serve` does its own commands.
KEEPS = """
import asyncio, os, signal, sys
from pathlib import Path
from simsite.keeping import Child, Keeper

HOLDS_ON = "from simsite.tether import hold_on; hold_on({})"
reading, writing = os.pipe()

async def main():
    keeper = Keeper(tether=reading, folder=Path.cwd(), say=lambda told: print(told, flush=True))
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, keeper.stop)
    starts = [HOLDS_ON.format(reading) + code for code in sys.argv[1:]]
    await keeper.keep([
        Child(name=f"child {n}", command=(sys.executable, "-c", code), environment={"CHILD": str(n)})
        for n, code in enumerate(starts)
    ])

asyncio.run(main())
"""


class Started:
    """A process and what it and its own say; None is said when none of them is left."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self._told: queue.Queue[str | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def line(self) -> str:
        told = self._told.get(timeout=PATIENCE_SECONDS)
        assert told is not None
        return told

    def line_with(self, word: str) -> str:
        """Return the next line with the word."""
        while word not in (told := self.line()):
            pass
        return told

    def rest(self) -> str:
        """Return what is said until the last process that could say something is gone."""
        lines = iter(lambda: self._told.get(timeout=PATIENCE_SECONDS), None)
        return "\n".join(lines)

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for told in lines:
                self._told.put(told.strip())
        self._told.put(None)


@contextmanager
def started(*command: str, **more: str) -> Iterator[Started]:
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=os.environ | more,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield Started(process)
    finally:
        process.kill()
        process.wait()


def pid_of(told: str) -> int:
    return int(told.removesuffix(".").split()[-1])


def end(pid: int) -> None:
    """End a process that should not be there any more."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def runs(pid: int) -> bool:
    """Tell whether a process goes on; one that is dead and not yet waited for does not."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return not status.rpartition(") ")[2].startswith("Z")


def answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/admin/login/") as answer:
            return bool(answer.status == 200)
    except urllib.error.URLError:
        return False


@contextmanager
def serving() -> Iterator[tuple[Started, int]]:
    """Serve this test's database; a process that outlives a failed test is ended."""
    port = free_port()
    with started(*MANAGE, "serve", f"127.0.0.1:{port}", **environment()) as serve:
        children = [pid_of(serve.line_with(f"{name} runs as process")) for name, *_ in CHILDREN]
        try:
            wait_until(lambda: answers(port), seconds=PATIENCE_SECONDS)
            yield serve, port
        finally:
            for child in children:
                end(child)


def test_pause_grows_while_starts_fail_and_is_forgotten_after_a_steady_minute() -> None:
    pauses = [0.0]
    for _ in range(8):
        pauses.append(next_pause(pauses[-1], lived_seconds=0.5))

    assert pauses[1:] == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]
    assert next_pause(60.0, lived_seconds=60.0) == 1.0


def test_end_of_a_child_is_said_in_words() -> None:
    assert ended_in_words(3) == "ended with exit code 3"
    assert ended_in_words(-9) == "was killed by SIGKILL"


def test_child_that_dies_is_started_again_and_said_so() -> None:
    with started(sys.executable, "-c", KEEPS, GENTLE) as keeper:
        first = pid_of(keeper.line_with("child 0 runs"))
        keeper.line_with("ready")
        os.kill(first, signal.SIGKILL)
        told = keeper.line()
        second = pid_of(keeper.line_with("child 0 runs"))
        keeper.line_with("ready")
        keeper.process.send_signal(signal.SIGINT)
        assert keeper.rest() == "gentle end of 0"
        assert keeper.process.wait() == 0

    assert told == "child 0 was killed by SIGKILL; it is started again in 1 s."
    assert second != first


def test_what_a_dead_child_leaves_behind_is_ended_before_it_starts_again() -> None:
    with started(sys.executable, "-c", KEEPS, FORKS) as keeper:
        first = pid_of(keeper.line_with("child 0 runs"))
        left = pid_of(keeper.line_with("left behind"))
        os.kill(first, signal.SIGKILL)
        keeper.line_with("child 0 runs")

        wait_until(lambda: not runs(left), seconds=10)


def test_one_request_to_stop_ends_every_child() -> None:
    with started(sys.executable, "-c", KEEPS, GENTLE, GENTLE) as keeper:
        keeper.line_with("ready")
        keeper.line_with("ready")
        keeper.process.send_signal(signal.SIGINT)

        assert sorted(keeper.rest().splitlines()) == ["gentle end of 0", "gentle end of 1"]
        assert keeper.process.wait() == 0


def test_second_request_to_stop_kills_what_would_not() -> None:
    with started(sys.executable, "-c", KEEPS, STUBBORN, GENTLE) as keeper:
        keeper.line_with("ready")
        keeper.line_with("ready")
        keeper.process.send_signal(signal.SIGINT)
        keeper.line_with("gentle end")
        assert keeper.process.poll() is None
        keeper.process.send_signal(signal.SIGINT)

        assert keeper.rest() == ""
        assert keeper.process.wait() == 0


@pytest.mark.django_db(transaction=True)
def test_serve_serves_drives_runs_and_stops_by_one_signal() -> None:
    run = requested(make_world(agents=("ash", "elm")), until_idle=True)
    with serving() as (serve, port):
        assert wait_for_end(run).status == "completed"
        serve.process.send_signal(signal.SIGINT)

        assert "Traceback" not in serve.rest()
        assert serve.process.wait() == 0
        assert not answers(port)


@pytest.mark.django_db(transaction=True)
def test_killed_serve_leaves_no_orphan() -> None:
    with serving() as (serve, port):
        serve.process.kill()

        serve.rest()
        assert not answers(port)


def test_serve_asks_for_migrations_first(tmp_path: Path) -> None:
    empty = f"sqlite:///{tmp_path}/empty.sqlite3"
    with started(*MANAGE, "serve", DATABASE_URL=empty) as serve:
        assert "run `manage.py migrate`" in serve.line()
        assert serve.process.wait() == 1


def test_fork_of_a_tethered_process_ends_with_the_starter_too() -> None:
    with started(sys.executable, "-c", STARTS_FORKING) as starter:
        fork = pid_of(starter.line_with("left behind"))
        starter.process.kill()

        try:
            wait_until(lambda: not runs(fork), seconds=10)
        finally:
            end(fork)
