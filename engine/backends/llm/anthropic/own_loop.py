"""An event loop in a thread of its own, for work that would hold up the loop of a run.

The client computes for some milliseconds at every call; fifty answers that arrive together would
keep a run from everything else for a quarter of a second (docs/performance.md). In a thread it
shares the processor with the run instead.
"""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine

Result = TypeVar("Result")

#: What was given up has so many seconds to end: a run that is stopped for the second time waits.
LAST_SECONDS = 2.0


class OwnLoop:
    """Runs coroutines elsewhere; whoever awaits one and is cancelled cancels it."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()

    async def do(self, work: Coroutine[Any, Any, Result]) -> Result:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    async def close(self) -> None:
        """End the loop and its thread; what was given up, and is not over yet, is waited for."""
        await self.do(_end_all())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _end_all() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        if not task.cancelling():  # what is giving up already is not to be disturbed
            task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=LAST_SECONDS)
