"""The ear to the outside: what the pulse heard becomes a stop, a drain, a reload, a hand-in."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from engine.core.effects import AgentChanged, Committed, HandIn
from engine.core.errors import StoreError, StoreLost
from engine.loop.committer import newest_topology
from engine.loop.ending import EndReason
from engine.ports.store import Beat, Wish

if TYPE_CHECKING:
    from engine.loop.brake import Brake
    from engine.loop.committer import Committer
    from engine.loop.errands import Errands
    from engine.loop.watch import Watch
    from engine.ports.clock import Clock
    from engine.ports.store import Store

log = logging.getLogger(__name__)


class Outside:
    """People, other processes, the topology: read where the pulse says so, one reader at a time."""

    def __init__(
        self,
        *,
        store: Store,
        committer: Committer,
        watch: Watch,
        clock: Clock,
        brake: Brake,
        errands: Errands,
    ) -> None:
        self._store = store
        self._committer = committer
        self._watch = watch
        self._clock = clock
        self._brake = brake
        self._errands = errands
        self._mailbox = asyncio.Lock()
        self._is_reading = False
        self._is_reloading = False

    def heard(self, beat: Beat) -> None:
        """Act on what the pulse read."""
        if not beat.ours:
            self._brake.lose("Another driver has taken this simulation over.")
            return
        self._obey(beat.wish)
        self._raise_caps(beat)
        if beat.topology_version != self._committer.world.gate.version and not self._is_reloading:
            self._is_reloading = True
            self._errands.begin(self._reload_gate())
        if beat.has_mail and not self._is_reading:
            self._is_reading = True
            self._errands.begin(self._take_mail())

    async def read_mail(self) -> bool:
        """Take in what people left, each note once; tell whether any of it could be.

        A roster may change without the topology's version: then the gate is looked at again too.
        """
        async with self._mailbox:
            effects = await self._store.read_mail()
            if not effects:
                return False
            answer = await self._committer.hand_in(HandIn(effects=effects))
        if any(isinstance(effect, AgentChanged) for effect in effects):
            await self._adopt_newest()
        return any(isinstance(result, Committed) for result in answer.results)

    def _obey(self, wish: Wish) -> None:
        """A wish is repeated at every beat, and obeyed once."""
        rules = self._committer.rules
        if wish is Wish.STOP and self._brake.ending is None:
            self._brake.stop()
        elif wish is Wish.PAUSE and self._brake.ending is None:
            self._brake.stop(EndReason.PAUSE_REQUESTED)
        elif wish is Wish.DRAIN and not rules.draining:
            rules.draining = True
            self._watch.everybody(self._clock.now())

    def _raise_caps(self, beat: Beat) -> None:
        """Take over caps that a person has raised, and the money that runs share; None leaves the own."""
        budget = self._committer.rules.budget
        before = (budget.max_calls, budget.max_nano_usd, budget.day, budget.month)
        if beat.max_calls is not None:
            budget.max_calls = beat.max_calls
        if beat.max_nano_usd is not None:
            budget.max_nano_usd = beat.max_nano_usd
        if beat.day is not None:
            budget.day = beat.day
        if beat.month is not None:
            budget.month = beat.month
        if before != (budget.max_calls, budget.max_nano_usd, budget.day, budget.month):
            self._watch.budget_returned(self._clock.now())

    async def _reload_gate(self) -> None:
        try:
            await self._adopt_newest()
        finally:
            self._is_reloading = False

    async def _adopt_newest(self) -> None:
        """Adopt the topology of now; a failed reload keeps the last good one."""
        try:
            await self._committer.hand_in(await newest_topology(self._store))
        except StoreLost:
            raise
        except StoreError:
            log.exception("The topology could not be reloaded; the last good one stays in force.")

    async def _take_mail(self) -> None:
        try:
            await self.read_mail()
        finally:
            self._is_reading = False
