"""Permits for calls in flight, served in the order of the turns that ask."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class Permits:
    """A semaphore whose next permit goes to the earliest turn, and within it to the first call."""

    def __init__(self, n_permits: int) -> None:
        self._n_free = n_permits
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._arrivals = count()

    @asynccontextmanager
    async def hold(self, turn: int) -> AsyncIterator[None]:
        """Hold one permit; `turn` is the number of the selection that asks."""
        await self._take(turn)
        try:
            yield
        finally:
            self._n_free += 1
            self._serve()

    async def _take(self, turn: int) -> None:
        permit = asyncio.get_running_loop().create_future()
        heappush(self._waiting, (turn, next(self._arrivals), permit))
        self._serve()
        try:
            await permit
        except asyncio.CancelledError:
            # Served and cancelled at the same moment: the permit goes to the next.
            if permit.done() and not permit.cancelled():
                self._n_free += 1
                self._serve()
            raise

    def _serve(self) -> None:
        while self._n_free and self._waiting:
            _, _, permit = heappop(self._waiting)
            if not permit.done():
                self._n_free -= 1
                permit.set_result(None)
