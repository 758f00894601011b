"""Faults inside a driver's process: each takes a number, and changes a part of the engine."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime, timedelta, tzinfo
from functools import wraps
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from django.db import connection
from django.db.backends.signals import connection_created
from django.utils import timezone

from engine.backends import clock
from engine.core.draft import Draft
from engine.core.world import World
from engine.loop import committer
from engine.store.database import DjangoStore, session
from engine.store.database.lease import boot_seconds
from engine.store.database.writing import Writer
from tests import eager_run
from tests.runtime.scripted_llm import ScriptedLlm

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.core.draft import Concern
    from engine.core.records import Root

#: Names the file whose appearance lets a held pulse go on.
RELEASE = "FAULT_RELEASE_FILE"
CALL = "a call begins at"


def before(owner: type, name: str, act: Callable[[int], None]) -> None:
    """Let `act` happen before each call of a method; it is told the number of the call, from 1."""
    method = getattr(owner, name)
    numbers = count(1)

    @wraps(method)
    def replaced(*args: Any, **options: Any) -> Any:
        act(next(numbers))
        return method(*args, **options)

    patch.object(owner, name, replaced).start()


def apply_fails_twice(number: float) -> None:
    """Let applying a stored group fail in its middle, at the n-th new root and at the next one."""
    absorb, publish, numbers = Draft.absorb, World.publish, count(1)

    def failing(world: World, root: Root) -> None:
        if next(numbers) in {number, number + 1}:
            raise ValueError("a fault of ours")
        publish(world, root)

    def replaced(draft: Draft) -> Concern:
        # A world that is built anew publishes its roots too: that must work.
        with patch.object(World, "publish", failing):
            return absorb(draft)

    patch.object(Draft, "absorb", replaced).start()


def rebuild_fails(_: float) -> None:
    """Let no world be built from the database again."""

    def broken(_loaded: object) -> World:
        raise ValueError("the world cannot be rebuilt")

    patch.object(committer, "world_from", broken).start()


def stop_in_commit(number: float) -> None:
    """Stop this process inside its n-th transaction; the server waits a second for it."""
    _stop_at(number, Writer, "_check_topology")


def stop_in_call(number: float) -> None:
    """Stop this process when its n-th call begins, others are in flight, and nothing is written."""
    writes = threading.Lock()
    for owner, name in ((Writer, "write"), (DjangoStore, "beat")):
        _do_under(writes, owner, name)
    _stop_at(number, ScriptedLlm, "complete", writes)


def _stop_at(
    number: float, owner: type, name: str, under: AbstractContextManager[object] | None = None
) -> None:
    """Stop the process exactly here: a signal to the thread that asks for it."""
    patch.object(session, "IDLE_IN_TRANSACTION", "1s").start()

    def stop(n: int) -> None:
        if n == number:
            with under or nullcontext():
                signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)

    before(owner, name, stop)


def _do_under(lock: threading.Lock, owner: type, name: str) -> None:
    method = getattr(owner, name)

    @wraps(method)
    def replaced(*args: Any, **options: Any) -> Any:
        with lock:
            return method(*args, **options)

    patch.object(owner, name, replaced).start()


def pulse_hangs(number: float) -> None:
    """Hold the pulse from its n-th beat on, until a file appears."""
    release = Path(os.environ.pop(RELEASE))

    def hold(n: int) -> None:
        while n >= number and not release.exists():
            time.sleep(0.02)

    before(DjangoStore, "beat", hold)


def pages_left(number: float) -> None:
    """Let SQLite's file grow by no more than so many pages."""

    def bound(connection: Any, **_: object) -> None:
        with connection.cursor() as cursor:
            n_pages = cursor.execute("PRAGMA page_count").fetchone()[0]
            cursor.execute(f"PRAGMA max_page_count = {int(n_pages + number)}")

    connection_created.connect(bound, weak=False)


def wall_clock_differs(seconds: float) -> None:
    """Set the wall clock of this host forward, or back, by so many seconds."""
    shift = timedelta(seconds=seconds)

    class Shifted(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Shifted:
            return super().now(tz) + shift

    wall_time = time.time
    patch.object(time, "time", lambda: wall_time() + seconds).start()
    patch.object(timezone, "datetime", Shifted).start()
    patch.object(clock, "datetime", Shifted).start()


def answers_take(seconds: float) -> None:
    """Let the model take so many seconds for an answer."""
    patch.object(eager_run, "ANSWER_SECONDS", seconds).start()


def calls_are_told(_: float) -> None:
    """Write a line to stderr for each call that begins: `CALL`, and seconds since boot."""

    def tell(_n: int) -> None:
        sys.stderr.write(f"{CALL} {boot_seconds()}\n")

    before(ScriptedLlm, "complete", tell)


def lock_is_waited_for(seconds: float) -> None:
    """Wait no longer than this for SQLite's lock."""
    connection.settings_dict["OPTIONS"]["timeout"] = seconds


FAULTS: dict[str, Callable[[float], None]] = {
    "apply": apply_fails_twice,
    "rebuild": rebuild_fails,
    "stop-in-commit": stop_in_commit,
    "stop-in-call": stop_in_call,
    "pulse": pulse_hangs,
    "pages": pages_left,
    "clock": wall_clock_differs,
    "answers": answers_take,
    "calls": calls_are_told,
    "busy": lock_is_waited_for,
}
