"""Errands: what the loop does beside the turns, owned so that none is lost or left running."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from engine.core.errors import Fenced, StoreLost

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

log = logging.getLogger(__name__)


class Errands:
    """Tasks that the run waits for at its end; one that fails, fails the run."""

    def __init__(self, changed: asyncio.Event, *, fail: Callable[[str], None]) -> None:
        self._changed = changed
        self._fail = fail
        self._tasks: set[asyncio.Task[Any]] = set()

    @property
    def is_idle(self) -> bool:
        return not self._tasks

    def begin(self, work: Coroutine[Any, Any, object]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._over)

    async def finish(self) -> None:
        """Wait for all errands, those begun meanwhile included."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def cancel(self) -> None:
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _over(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        self._changed.set()
        error = None if task.cancelled() else task.exception()
        # A lost lease is told by the committer itself.
        if error is None or isinstance(error, Fenced):
            return
        if not isinstance(error, StoreLost):
            log.error("An errand of the loop failed.", exc_info=error)
        self._fail(f"The run cannot go on: {error}")
