"""A driver's death at an exact place, and what it knew then.

`Death` knows what the run is about; `lay_in_wait` puts it where a run comes by. Imported once
Django is set up.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from functools import wraps
from typing import TYPE_CHECKING, Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

from engine import build
from engine.loop.engine import Engine
from engine.models import Message, Turn
from engine.store.database import DjangoStore, bulk
from engine.store.database.writing import Writer
from tests.faults.last_words import LastWords, write

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from django.db.models import Model

    from engine.core.effects import TurnRecord
    from engine.core.group import Group
    from engine.loop.ending import Ending
    from engine.ports.llm import Llm, LlmAnswer, LlmRequest
    from engine.ports.store import Loaded
    from engine.store.database.bulk import Row

    Method = Callable[..., Any]

WRITER = "store-writer"
PULSE = "pulse"
#: Thread (none: any), part of a statement without its quotes, and the place where it has just been
#: done.
STATEMENTS = (
    ("store-world", "FROM engine_message", "load"),
    (PULSE, "UPDATE engine_runlease", "renewal"),
    ("", "UPDATE engine_run SET status = %s, end_reason", "concluded"),
)
#: The place where rows of a model have just been sent.
ROWS = {Message: "messages", Turn: "turns"}


class Death:
    """Comes at the first passage of `place` at or after commit number `commit_no`."""

    def __init__(self, place: str, commit_no: int, file: Path) -> None:
        self.engine: Engine | None = None
        self.n_calls = 0
        #: Turns of which something is stored, and not the end.
        self.unfinished: set[int] = set()
        self.is_storing = False
        self.sent_no = 0
        self.place = place
        self._commit_no = commit_no
        self._file = file

    @property
    def is_new(self) -> bool:
        """True until the first group: what is concluded then is the run of a dead driver."""
        return self.sent_no == 0

    def passes(self, place: str) -> None:
        """Die here, if it is the place and the time."""
        if place == self.place and self.sent_no >= self._commit_no:
            self.speak()
            os.kill(os.getpid(), signal.SIGKILL)

    def speak(self) -> None:
        """Leave the last words; while the loop goes on, the pulse cannot tell of its world."""
        engine = None if _thread() == PULSE else self.engine
        words = LastWords(
            place=self.place,
            commit_no=self.sent_no,
            n_calls=self.n_calls,
            world=None if engine is None else engine.world,
        )
        write(words, self._file)

    def is_stored(self, turns: list[TurnRecord]) -> None:
        """Note what a stored group says of turns."""
        self.unfinished |= {turn.number for turn in turns if turn.finished_at is None}
        self.unfinished -= {turn.number for turn in turns if turn.finished_at is not None}


class WatchedLlm:
    """The model, with its calls counted while they are awaited."""

    def __init__(self, llm: Llm, death: Death) -> None:
        self.free = llm.free
        self.upper_estimate = llm.upper_estimate
        self._llm = llm
        self._death = death

    async def complete(self, request: LlmRequest) -> LlmAnswer:
        """Answer as the model does; once this call waits, too, it may be the moment."""
        self._death.n_calls += 1
        asyncio.get_running_loop().call_soon(self._pass)
        try:
            return await self._llm.complete(request)
        finally:
            self._death.n_calls -= 1

    def _pass(self) -> None:
        if self._death.n_calls >= 2 and self._death.unfinished:
            self._death.passes("calls")


def lay_in_wait(death: Death) -> None:
    """Let a run of this process come by at every place."""
    _watch_statements(death)
    _watch_commits(death)
    _watch_store(death)
    _watch_engine(death)
    _watch_calls(death)


def _in_commit(death: Death) -> bool:
    return death.is_storing and _thread() == WRITER


def _thread() -> str:
    """Return the name of this thread, without the number that a pool gives it."""
    return threading.current_thread().name.partition("_")[0]


def _watch_statements(death: Death) -> None:
    def watch(
        execute: Callable[..., Any], sql: str, params: object, many: object, context: object
    ) -> Any:
        done = execute(sql, params, many, context)
        thread, plain = _thread(), sql.replace('"', "")
        if thread != WRITER:
            for where, statement, place in STATEMENTS:
                if where in {"", thread} and statement in plain:
                    death.passes("takeover" if place == "concluded" and death.is_new else place)
        return done

    def watch_new(connection: BaseDatabaseWrapper, **_: object) -> None:
        if watch not in connection.execute_wrappers:
            connection.execute_wrappers.append(watch)

    connection_created.connect(watch_new, weak=False)


def _watch_commits(death: Death) -> None:
    """Of a group's transaction: its rows, right before COMMIT, and when the database has said yes."""

    def write_watched(write: Method, writer: Writer, group: Group) -> None:
        death.sent_no, death.is_storing = group.number, True
        try:
            write(writer, group)
        finally:
            death.is_storing = False

    def pass_watched(pass_fence: Method, writer: Writer, group: Group) -> bool:
        is_new: bool = pass_fence(writer, group)
        death.passes("fence")
        return is_new

    def send_watched(send: Method, model: type[Model], rows: Sequence[Row], ending: str) -> None:
        send(model, rows, ending)
        if rows and model in ROWS and _in_commit(death):
            death.passes(ROWS[model])

    def commit_watched(commit: Method, connection: BaseDatabaseWrapper) -> None:
        if _in_commit(death):
            death.passes("commit")
        commit(connection)
        if _in_commit(death):
            death.passes("stored")

    _wrap(Writer, "write", write_watched)
    _wrap(Writer, "_pass_fence", pass_watched)
    _wrap(bulk, "_execute", send_watched)
    _wrap(BaseDatabaseWrapper, "_commit", commit_watched)


def _watch_store(death: Death) -> None:
    """When a world is about to be loaded, and when the loop knows that a group is stored."""

    async def load_watched(load: Method, store: DjangoStore) -> Loaded:
        death.passes("leased")
        loaded: Loaded = await load(store)
        return loaded

    async def commit_watched(commit: Method, store: DjangoStore, group: Group) -> None:
        await commit(store, group)
        death.is_stored(group.turns)
        death.passes("unapplied")

    _wrap(DjangoStore, "load", load_watched)
    _wrap(DjangoStore, "commit", commit_watched)


def _watch_engine(death: Death) -> None:
    """When a turn is over, and when the run is, its row not written."""

    async def run_watched(run: Method, engine: Engine) -> Ending:
        death.engine = engine
        ending: Ending = await run(engine)
        if death.place == "idle":
            death.speak()
        death.passes("end")
        return ending

    def turn_done_watched(turn_done: Method, engine: Engine, task: asyncio.Task[None]) -> None:
        turn_done(engine, task)
        death.passes("turn")

    _wrap(Engine, "run", run_watched)
    _wrap(Engine, "_turn_done", turn_done_watched)


def _watch_calls(death: Death) -> None:
    def watched(offline: Callable[..., Llm], *words: Any, **options: Any) -> WatchedLlm:
        return WatchedLlm(offline(*words, **options), death)

    _wrap(build, "OfflineLlm", watched)


def _wrap(owner: object, name: str, around: Method) -> None:
    """Put a function around another, which it gets before the arguments."""
    inner = getattr(owner, name)

    @wraps(inner, updated=())
    def outer(*words: Any, **options: Any) -> Any:
        return around(inner, *words, **options)

    setattr(owner, name, outer)
