"""A thread that works for the event loop, with a connection of its own."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Executor, Future
from contextvars import copy_context
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from django.db import connections

from engine.core.errors import Unanswered

if TYPE_CHECKING:
    from collections.abc import Callable

#: At the end the work that a thread has begun is waited for this long, in seconds.
LAST_WORK_SECONDS = 2.0

Result = TypeVar("Result")
Parameters = ParamSpec("Parameters")


class DatabaseThread:
    """Does one piece of work after the other; `close` also closes its connection.

    A database may let it wait for ever: then the thread can be abandoned, or closed all the same,
    and ends with the process.
    """

    def __init__(self, name: str) -> None:
        self._worker = DatabaseWorker(name)
        self._jobs: set[asyncio.Future[Any]] = set()
        self._abandoned = threading.Event()

    async def do(self, work: Callable[[], Result]) -> Result:
        """Do the work in the order of asking; await its result."""
        if self._abandoned.is_set():
            raise Unanswered("The database did not answer.")
        # What it logs is about what the asker is about.
        job = asyncio.get_running_loop().run_in_executor(self._worker, copy_context().run, work)
        self._jobs.add(job)
        try:
            return await job
        except asyncio.CancelledError:
            if self._abandoned.is_set() and not _is_being_cancelled():
                raise Unanswered("The database did not answer.") from None
            raise
        finally:
            self._jobs.discard(job)

    def abandon(self) -> None:
        """Let nobody wait for the thread any more; to be called on the loop."""
        self._abandoned.set()
        for job in self._jobs:
            job.cancel()

    def close(self) -> None:
        """Let the thread finish what it was given, then end it; one that hangs is left behind."""
        self._worker.shutdown(wait=False)
        if not self._abandoned.is_set():
            self._worker.join(LAST_WORK_SECONDS)


def _is_being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


class DatabaseWorker(Executor):
    """An executor of one thread that, unlike those of the library, a process does not wait for.

    The thread closes its connections when it ends.
    """

    def __init__(self, name: str) -> None:
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self._thread.start()

    def submit(
        self,
        fn: Callable[Parameters, Result],
        /,
        *args: Parameters.args,
        **kwargs: Parameters.kwargs,
    ) -> Future[Result]:
        job: Future[Result] = Future()
        self._jobs.put(partial(_carry_out, job, partial(fn, *args, **kwargs)))
        return job

    def shutdown(
        self,
        wait: bool = True,  # noqa: FBT001, FBT002 (the library's signature)
        *,
        cancel_futures: bool = False,
    ) -> None:
        self._jobs.put(None)
        if wait:
            self.join()

    def join(self, seconds: float | None = None) -> None:
        """Wait until the thread has ended, at most so long."""
        self._thread.join(seconds)

    def _serve(self) -> None:
        try:
            while (job := self._jobs.get()) is not None:
                job()
                del job  # it would hold a group and its answer until the next one comes
        finally:
            connections.close_all()


def _carry_out(job: Future[Result], work: Callable[[], Result]) -> None:
    if not job.set_running_or_notify_cancel():
        return
    try:
        result = work()
    except BaseException as error:  # noqa: BLE001 (the caller's, whatever it is)
        job.set_exception(error)
    else:
        job.set_result(result)
