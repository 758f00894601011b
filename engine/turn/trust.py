"""Trust in the lease: a driver that cannot be sure of it begins nothing that it could not take back.

What it stores is fenced; a selection, a call to the model and a message to the outside are not.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.ports.clock import Clock
    from engine.ports.store import Store


class Trust:
    """Shared by whoever begins something: the loop before a grant, a call before it leaves."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._heard = asyncio.Event()

    @property
    def holds(self) -> bool:
        """True while no other driver can have the lease."""
        return self._store.is_trusted

    def heard(self) -> None:
        """Let all who wait look again: the pulse has read the database."""
        self._heard.set()
        self._heard.clear()

    async def wait(self) -> None:
        """Return once the lease is trusted; the clock stands still until then."""
        while not self.holds:
            with self._clock.hold():
                await self._heard.wait()
