"""A probe on the loop of a run: how late it comes to what is due, and how long it computes."""

from __future__ import annotations

import asyncio
import contextlib
import time
from types import TracebackType
from typing import TYPE_CHECKING

from benchmarks.parts.meter import Meter

if TYPE_CHECKING:
    from engine.loop.engine import Engine

PROBE_SECONDS = 0.005


class Probe(contextlib.AbstractContextManager[None]):
    """Observes a run; notes by how many seconds the loop was late each time, and how many it computed."""

    def __init__(self) -> None:
        self.lags: list[float] = []
        self.computed: list[float] = []
        self.meter: Meter | None = None
        self._task: asyncio.Task[None] | None = None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Nothing is left open: the task ends with the loop."""

    def started(self, engine: Engine) -> None:
        self.meter = engine.figures = Meter(n_slots=engine.config.concurrent_turns)
        self._task = asyncio.get_running_loop().create_task(self._look())

    def beat(self, engine: Engine) -> None:
        """Nothing to show."""

    async def _look(self) -> None:
        """Look from the first turn on: before it nobody is held up."""
        loop = asyncio.get_running_loop()
        while True:
            had_begun = self.meter is not None and self.meter.n_turns > 0
            due, computed = loop.time() + PROBE_SECONDS, time.thread_time()
            await asyncio.sleep(PROBE_SECONDS)
            if had_begun:
                self.lags.append(loop.time() - due)
                self.computed.append(time.thread_time() - computed)
