"""A database that somebody else has locked: the run waits and loses nothing, and its loop lives."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from django.db import connection, connections

from engine import build
from engine.core.door import notices
from engine.management.commands import runsim as command
from engine.runs.progress import Silence
from engine.store.database import session
from tests.doors import ROOT, environment, runsim, wait_until
from tests.eager_run import keep_the_newest
from tests.faults.society import (
    see_it_stopped,
    see_laws_kept,
    talkative_world,
    wait_for_messages,
)
from tests.runtime.scripted_llm import ScriptedLlm, by_phase, eager

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from engine.loop.engine import Engine
    from engine.ports.clock import Clock

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(600)]

#: Run by another process: holds locks from the line that it prints to the line that it reads.
HOLD = """
import sys
import django
django.setup()
from django.db import connection, transaction
with transaction.atomic():
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(sys.argv[1])
    print("held", flush=True)
    sys.stdin.readline()
"""
#: On SQLite every writer locks the whole file.
LOCKS = (
    {
        "rows": "SELECT 1 FROM engine_runlease FOR UPDATE",
        "table": "LOCK TABLE engine_message IN ACCESS EXCLUSIVE MODE",
    }
    if connection.vendor == "postgresql"
    else {"file": ""}
)


@contextmanager
def locked(statement: str) -> Iterator[None]:
    """Let another process hold a lock meanwhile."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, statement],
        env=environment(DJANGO_SETTINGS_MODULE="simsite.settings"),
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        try:
            yield
        finally:
            holder.stdin.write("\n")
            holder.stdin.flush()
            assert holder.wait(20) == 0


@dataclass
class Heart(Silence):
    """Counts on the loop of a run how often it had its turn, ten times a second at most."""

    n_beats: int = 0
    engine: Engine | None = None
    _task: asyncio.Task[None] | None = field(default=None, repr=False)

    def started(self, engine: Engine) -> None:
        self.engine = engine
        self._task = asyncio.get_running_loop().create_task(self._beat())

    @property
    def is_stopping(self) -> bool:
        return self.engine is not None and self.engine.is_stopping

    def wait_for_beats(self, n_more: int) -> None:
        wanted = self.n_beats + n_more
        wait_until(lambda: self.n_beats >= wanted)

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(0.1)
            self.n_beats += 1


@pytest.fixture
def heart(monkeypatch: pytest.MonkeyPatch) -> Heart:
    """Let runs of this process talk without end, give up a lock soon, and have a heart."""
    heart = Heart()

    def eager_llm(_seed: int, clock: Clock, *, latency_seconds: float) -> ScriptedLlm:
        script = by_phase(eager, prune=keep_the_newest)
        return ScriptedLlm(clock=clock, script=script, latency=lambda _: 0.05)

    monkeypatch.setattr(notices, "SKIP_SECONDS", 0.05)
    monkeypatch.setattr(build, "OfflineLlm", eager_llm)
    monkeypatch.setattr(command, "progress_for", lambda _stream, **_: heart)
    monkeypatch.setattr(session, "LOCK_TIMEOUT", "200ms")
    if connection.vendor == "sqlite":
        monkeypatch.setitem(connection.settings_dict["OPTIONS"], "timeout", 0.2)
    return heart


@pytest.fixture
def refusals(monkeypatch: pytest.MonkeyPatch) -> list[Exception]:
    """Every failure that the store took for one that passes."""
    passes, passed = session.passes, list[Exception]()

    def noted(trouble: Exception) -> bool:
        passed.append(trouble)
        return passes(trouble)

    monkeypatch.setattr(session, "passes", noted)
    return passed


@pytest.mark.parametrize("what", LOCKS)
def test_run_waits_for_a_lock_with_a_live_loop_and_hears_a_signal(
    heart: Heart, refusals: list[Exception], tmp_path: Path, is_soak: bool, what: str
) -> None:
    talkative_world()

    def strike() -> None:
        try:
            wait_for_messages(6)
            with locked(LOCKS[what]):
                wait_until(lambda: len(refusals) >= 2)
                heart.wait_for_beats(100 if is_soak else 10)
            wait_for_messages(6)
            with locked(LOCKS[what]):
                n_refused = len(refusals)
                os.kill(os.getpid(), signal.SIGTERM)
                wait_until(lambda: heart.is_stopping and len(refusals) > n_refused)
                heart.wait_for_beats(2)
        except BaseException:
            for _ in range(2):
                os.kill(os.getpid(), signal.SIGTERM)
            raise
        finally:
            connections.close_all()

    striker = threading.Thread(target=strike)
    striker.start()
    left = runsim("--seed", "3", "--json")
    striker.join()
    see_it_stopped(left)
    see_laws_kept(tmp_path)
