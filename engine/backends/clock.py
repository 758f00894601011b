"""Two clocks: the real one, and a virtual one whose event loop passes waits at no cost.

With `asyncio.Runner(loop_factory=VirtualLoop)` every timer of asyncio (sleep, timeout, call_at)
counts virtual seconds. Time stands still while anything can go on, also while a job of an
executor or other outside work is pending; otherwise it jumps to the earliest timer.
"""

from __future__ import annotations

import asyncio
import selectors
import time
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, TypeVar, TypeVarTuple, Unpack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_Result = TypeVar("_Result")
_Args = TypeVarTuple("_Args")


class RealClock:
    """Wall time at its start plus what has passed since; a clock set back is not felt.

    It begins at `starts_at` if the wall clock of this host is behind that.
    """

    def __init__(self, starts_at: datetime | None = None) -> None:
        now = datetime.now(UTC)
        self._start = now if starts_at is None else max(now, starts_at.astimezone(UTC))
        self._origin = time.monotonic()

    def now(self) -> datetime:
        """Return the time now, in UTC."""
        return self._start + timedelta(seconds=time.monotonic() - self._origin)

    async def sleep(self, seconds: float) -> None:
        """Wait for real seconds."""
        await asyncio.sleep(seconds)

    def hold(self) -> AbstractContextManager[None]:
        """Do nothing: real time goes on."""
        return nullcontext()


class VirtualClock:
    """`start` plus the time of the loop it is used in; one clock lives with one loop.

    Before that loop runs it stands at `start`; other threads read the loop's time too.
    """

    def __init__(self, start: datetime) -> None:
        self._start = start.astimezone(UTC)
        self._loop: asyncio.AbstractEventLoop | None = None

    def now(self) -> datetime:
        """Return the virtual time now, in UTC."""
        if self._loop is None:
            with suppress(RuntimeError):
                self._loop = asyncio.get_running_loop()
        elapsed_seconds = 0.0 if self._loop is None else self._loop.time()
        return self._start + timedelta(seconds=elapsed_seconds)

    async def sleep(self, seconds: float) -> None:
        """Wait for virtual seconds."""
        await asyncio.sleep(seconds)

    def hold(self) -> AbstractContextManager[None]:
        """Keep the time of the virtual loop still."""
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        return loop.hold()


class _JumpingSelector(selectors.DefaultSelector):
    """The seam: asyncio waits for its next timer inside `select`, and only when all is idle."""

    def __init__(self, is_held: Callable[[], bool], jump: Callable[[float], None]) -> None:
        super().__init__()
        self._is_held = is_held
        self._jump = jump

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Return what is ready; instead of waiting for a timer, jump to it."""
        if timeout is None or timeout <= 0:
            return super().select(timeout)
        if self._is_held():
            return super().select(None)
        events = super().select(0)
        if not events:
            self._jump(timeout)
        return events


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time begins at 0 and moves only when nothing else can."""

    def __init__(self) -> None:
        self._elapsed_seconds = 0.0
        self._n_outside = 0
        super().__init__(_JumpingSelector(lambda: self._n_outside > 0, self._jump))
        self._pool = ThreadPoolExecutor(thread_name_prefix="virtual-loop")
        self.set_default_executor(self._pool)

    def time(self) -> float:
        """Return the virtual seconds since the loop was made."""
        return self._elapsed_seconds

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Keep time still while the loop waits for something outside of it (a socket, a thread)."""
        self._n_outside += 1
        try:
            yield
        finally:
            self._n_outside -= 1

    def run_in_executor(
        self,
        executor: Executor | None,
        func: Callable[[Unpack[_Args]], _Result],
        *args: *_Args,
    ) -> asyncio.Future[_Result]:
        """Run `func` in a thread; time stands still until it has ended, cancelled or not."""
        job = (executor or self._pool).submit(func, *args)
        self._n_outside += 1
        answer = asyncio.wrap_future(job, loop=self)
        # After wrap_future: its callback runs first, so the answer is in before time moves again.
        job.add_done_callback(self._job_ended)
        return answer

    def _job_ended(self, _job: Future[_Result]) -> None:
        with suppress(RuntimeError):  # the loop was closed before its job ended
            self.call_soon_threadsafe(self._release)

    def _release(self) -> None:
        self._n_outside -= 1

    def _jump(self, seconds: float) -> None:
        self._elapsed_seconds += seconds
