"""Threads in which nobody has spoken for the idle limit are closed by the system."""

from __future__ import annotations

from datetime import datetime, timedelta
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from engine.core.effects import Close
from engine.core.records import Outcome

if TYPE_CHECKING:
    from engine.core.records import Thread
    from engine.core.world import World


class IdleThreads:
    """A heap of the times at which open threads would be idle; old entries are dropped when met."""

    def __init__(self, limit_seconds: float) -> None:
        self._limit = timedelta(seconds=limit_seconds)
        self._due: list[tuple[datetime, int, int]] = []

    def watch(self, thread: Thread) -> None:
        """Count anew from a thread's last message."""
        heappush(self._due, (thread.owed_since + self._limit, thread.root, thread.cycle))

    def next_due(self) -> datetime | None:
        return self._due[0][0] if self._due else None

    def due(self, world: World, now: datetime) -> tuple[Close, ...]:
        """Return the closes, as timeout, that are due now."""
        closes = {}
        while self._due and self._due[0][0] <= now:
            _, root, cycle = heappop(self._due)
            thread = world.threads.get(root)
            if (
                thread is not None
                and thread.cycle == cycle
                and thread.owed_since + self._limit <= now
            ):
                closes[root] = Close(root=root, cycle=cycle, outcome=Outcome.TIMEOUT)
        return tuple(closes.values())
