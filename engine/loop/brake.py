"""The brake of a run: why nobody is selected any more, and how long turns in flight may finish."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from engine.loop.ending import OVERRIDING, Ending, EndReason

if TYPE_CHECKING:
    from collections.abc import Collection

    from engine.ports.clock import Clock


class Brake:
    """`ending` is set once somebody or something ends the run; `changed` then wakes the loop."""

    def __init__(self, changed: asyncio.Event, *, grace_seconds: float) -> None:
        self.ending: Ending | None = None
        self._changed = changed
        self._grace_seconds = grace_seconds
        self._hurry = asyncio.Event()

    @property
    def is_hurried(self) -> bool:
        """True once no turn is waited for any more: all are over, or were cancelled."""
        return self._hurry.is_set()

    def stop(self, reason: EndReason = EndReason.STOPPED, sentence: str = "") -> None:
        """Select nobody any more; asked again, cancel the turns in flight at once."""
        if self.ending is not None:
            self._hurry.set()
        else:
            self.ending = Ending(reason=reason, sentence=sentence)
        self._changed.set()

    def fail(self, sentence: str) -> None:
        """End the run now: nothing that goes on could succeed."""
        self._end_now(Ending(reason=EndReason.FAILED, sentence=sentence))

    def lose(self, sentence: str) -> None:
        """End the run now: another driver has the simulation."""
        self._end_now(Ending(reason=EndReason.INTERRUPTED, sentence=sentence))

    def _end_now(self, ending: Ending) -> None:
        """The first of these endings is the cause of those that follow it."""
        if self.ending is None or self.ending.reason not in OVERRIDING:
            self.ending = ending
        self._hurry.set()
        self._changed.set()

    def final(self, ending: Ending) -> Ending:
        """Return how the run ended: a failure while the last turns finished outweighs the rest."""
        later = self.ending
        return later if later is not None and later.reason in OVERRIDING else ending

    async def wait_for_turns(
        self, turns: Collection[asyncio.Task[None]], ending: Ending, *, clock: Clock
    ) -> None:
        """Let turns in flight finish within the grace, then cancel them.

        `turns` is the loop's own collection: finished ones leave it.
        """
        if ending.reason in OVERRIDING:
            self._hurry.set()
        hurry = asyncio.create_task(self._hurry.wait())
        grace = asyncio.create_task(clock.sleep(self._grace_seconds))
        try:
            while turns and not hurry.done() and not grace.done():
                await asyncio.wait({*turns, hurry, grace}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await cancel(hurry, grace)
        self._hurry.set()
        await cancel(*turns)


async def cancel(*tasks: asyncio.Task[None] | asyncio.Task[bool]) -> None:
    """Cancel tasks and wait until each is over, whatever it raises."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
