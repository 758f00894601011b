"""The loop of a run: slots, grants, turns, and how it ends.

One semaphore for the life of the loop; the agent is chosen after the slot is granted, and a slot
that comes free is refilled at once. Everything else waits for events.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from engine.core.claims import Budget, Claims
from engine.core.effects import (
    Adopt,
    AgentChanged,
    Close,
    HandIn,
)
from engine.core.errors import Fenced, StoreError
from engine.core.records import Outcome, Status
from engine.core.scheduler import Grant, Place, Scheduler
from engine.core.standing import Rules, Standing, debts
from engine.loop.committer import Committer, newest_topology
from engine.loop.conduct import Conductor
from engine.loop.ending import OVERRIDING, Ending, EndReason
from engine.loop.figures import Figures
from engine.loop.idle_threads import IdleThreads
from engine.loop.rebuild import world_from
from engine.loop.tally import Tally
from engine.loop.watch import Watch
from engine.ports.store import Beat, Wish
from engine.turn.calls import Line

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable

    from engine.core.config import RunConfig
    from engine.core.draft import Concern
    from engine.core.group import Group
    from engine.core.records import AgentSpec
    from engine.core.world import World
    from engine.ports.clock import Clock
    from engine.ports.llm import Llm
    from engine.ports.store import Loaded, Store
    from engine.turn.log import TurnLog

log = logging.getLogger(__name__)


class Engine:
    """One run of one simulation. `run` drives it to its end; `heard`, `stop` may be called any time
    on the loop."""

    def __init__(
        self, *, loaded: Loaded, store: Store, llm: Llm, clock: Clock, config: RunConfig
    ) -> None:
        self.config = config
        self.clock = clock
        self.world: World = world_from(loaded)
        self.rules = Rules(config=config, claims=Claims(), budget=Budget(config, loaded.calls))
        self.scheduler = Scheduler(loaded.last_turn)
        self.figures = Figures(
            n_slots=config.concurrent_turns, max_turn_seconds=config.max_turn_seconds
        )
        self.tally = Tally()
        self.watch = Watch(self.world, self.rules, self.scheduler)
        self.line = Line(
            llm, budget=self.rules.budget, clock=clock, permits=config.max_llm_calls_in_flight
        )
        self.committer = Committer(
            self.world,
            store=store,
            rules=self.rules,
            clock=clock,
            scheduler=self.scheduler,
            wrote_at=loaded.wrote_at,
            on_applied=self._applied,
        )
        self._conduct = Conductor(
            world=self.world,
            rules=self.rules,
            store=store,
            line=self.line,
            clock=clock,
            door=self.committer,
            fail=self._fail,
        )
        self.turns: dict[asyncio.Task[None], Grant] = {}
        self._store = store
        self._first_turn = loaded.last_turn
        self._is_new = loaded.last_turn == 0 and loaded.last_seq == 0
        self._known = {agent for agent, _ in loaded.states}
        self._slots = asyncio.Semaphore(config.concurrent_turns)
        self._changed = asyncio.Event()
        self._hurry = asyncio.Event()
        self._errands: set[asyncio.Task[None]] = set()
        self._ending: Ending | None = None
        self._idle_threads = IdleThreads(config.thread_idle_seconds)
        self._mailbox = asyncio.Lock()
        self._mail_task: asyncio.Task[None] | None = None
        self._gate_task: asyncio.Task[None] | None = None
        self._ends_at: datetime | None = None

    # --- from the start to the end -----------------------------------------------------------------

    async def run(self) -> Ending:
        """Drive the run to its end and return how it ended; everything it began is over then."""
        committing = asyncio.create_task(self.committer.run(), name="committer")
        committing.add_done_callback(self._committer_over)
        try:
            await self._begin()
            ending = await self._select_until_end()
            await self._finish_turns(ending)
            await self._finish_errands()
        except Fenced as error:
            ending = Ending(reason=EndReason.INTERRUPTED, sentence=str(error))
        finally:
            await self._cancel(*self.turns, *self._errands)
            await self._cancel(committing)
        return self._final(ending)

    async def _begin(self) -> None:
        """Store the topology the run starts under, take in who is new, and judge everybody."""
        if self.config.max_minutes is not None:
            self._ends_at = self.clock.now() + timedelta(minutes=self.config.max_minutes)
        newcomers: tuple[AgentSpec, ...] = ()
        if not self._is_new:
            newcomers = tuple(s for s in self.world.agents.values() if s.id not in self._known)
        for spec in newcomers:
            del self.world.agents[spec.id]
        joined = (AgentChanged(note=None, agent=spec.id, spec=spec) for spec in newcomers)
        await self.committer.hand_in(HandIn(effects=(Adopt(gate=self.world.gate),)))
        await self.committer.hand_in(HandIn(effects=tuple(joined)))
        for thread in self.world.threads.values():
            self._idle_threads.watch(thread)
        await self._read_mail()
        self.watch.everybody(self.clock.now())

    async def _select_until_end(self) -> Ending:
        """Fill slots: first the slot, then the agent."""
        while True:
            ending = await self._slot()
            if ending is not None:
                return ending
            chosen = await self._next()
            if isinstance(chosen, Ending):
                self._slots.release()
                return chosen
            grant, found = chosen
            task = asyncio.create_task(self._turn(grant, found), name=f"turn {grant.number}")
            self.turns[task] = grant
            task.add_done_callback(self._turn_done)

    async def _slot(self) -> Ending | None:
        """Take a slot as soon as one is free; timers go on, and what ends the run outruns it."""
        while self._slots.locked():
            ending = self._reason_to_end_now()
            if ending is not None:
                return ending
            now = self.clock.now()
            self.watch.timers_fired(now)
            self._close_idle_threads(now)
            await self._wait(now)
        await self._slots.acquire()
        return None

    async def _next(self) -> tuple[Grant, Standing] | Ending:
        """Wait until somebody is eligible, or the run ends."""
        while True:
            ending = self._reason_to_end()
            if ending is not None:
                return ending
            now = self.clock.now()
            self.watch.timers_fired(now)
            self._close_idle_threads(now)
            chosen = self._grant(now)
            if chosen is not None:
                return chosen
            if self._is_quiet() and self.watch.spent_cap:
                return Ending(reason=EndReason(self.watch.spent_cap))
            if await self._is_idle():
                return Ending(reason=EndReason.IDLE)
            await self._wait(now)

    def _grant(self, now: datetime) -> tuple[Grant, Standing] | None:
        """Select the longest waiting agent that is still eligible."""
        while (agent := self.scheduler.next_ready()) is not None:
            found = self.watch.standing(agent, now)
            if not found.work:
                self.watch.settle(agent, found, now)
                continue
            grant = self.scheduler.grant(now)
            assert grant is not None
            self.watch.selected(agent, found)
            self.figures.granted(grant)
            self._sample(now, n_busy=len(self.turns) + 1)
            return grant, found
        return None

    async def _wait(self, now: datetime) -> None:
        """Wait for a change, or for the earliest timer."""
        times = [self.scheduler.next_due(), self._idle_threads.next_due(), self._ends_at]
        due_at = min((at for at in times if at is not None), default=None)
        seconds = None if due_at is None else max((due_at - now).total_seconds(), 0)
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            return
        self._changed.clear()

    # --- reasons to end ------------------------------------------------------------------------------

    def _reason_to_end(self) -> Ending | None:
        ending = self._reason_to_end_now()
        if ending is not None:
            return ending
        n_turns = self.scheduler.n_selections - self._first_turn
        if self.config.max_turns is not None and n_turns >= self.config.max_turns:
            return Ending(reason=EndReason.TURN_LIMIT)
        return self._spent_or_left()

    def _reason_to_end_now(self) -> Ending | None:
        """Return why not even the turns in flight are waited for, beyond their grace."""
        if self._ending is not None:
            return self._ending
        if self.line.circuit_is_open:
            return Ending(
                reason=EndReason.CIRCUIT_OPEN,
                sentence="The model failed too often in a row; look at its status, then resume.",
            )
        if self._ends_at is not None and self.clock.now() >= self._ends_at:
            return Ending(reason=EndReason.TIME_LIMIT)
        return None

    def _spent_or_left(self) -> Ending | None:
        """A spent cap pauses once no reservation is open; nobody in, or a drain done, ends."""
        if self.turns:
            return None
        spent = self.rules.budget.run_refusal()
        if spent is not None and not self.rules.budget.is_open:
            return Ending(reason=EndReason(spent.reason))
        if self.rules.draining and not self.world.threads:
            return Ending(reason=EndReason.STOPPED)
        places = (Place.IN_FLIGHT, Place.COOLING, Place.READY, Place.PARKED)
        if not any(True for _ in self.scheduler.agents(*places)) and not self._errands:
            if any(spec.status is Status.PAUSED for spec in self.world.agents.values()):
                return None  # a person may bring one back
            return Ending(reason=EndReason.NOBODY_LEFT)
        return None

    async def _is_idle(self) -> bool:
        """Tell whether only the calendar or a person can bring work, after a look at the inbox."""
        if not self.config.until_idle or not self._is_quiet():
            return False
        return not await self._read_mail() and self._is_quiet()

    def _is_quiet(self) -> bool:
        return (
            not self.turns
            and not self._errands
            and self.committer.is_idle
            and self.scheduler.n_ready == 0
            and not self.watch.has_timer_of_ours
        )

    @property
    def is_ending(self) -> bool:
        """True from the moment that nobody is selected any more."""
        return self._ending is not None

    def stop(self, reason: EndReason = EndReason.STOPPED, sentence: str = "") -> None:
        """Select nobody any more; asked again, cancel the turns in flight at once."""
        if self._ending is not None:
            self._hurry.set()
        else:
            self._ending = Ending(reason=reason, sentence=sentence)
        self._changed.set()

    def _fail(self, sentence: str) -> None:
        """End the run now: nothing that goes on could succeed."""
        self._ending = Ending(reason=EndReason.FAILED, sentence=sentence)
        self._hurry.set()
        self._changed.set()

    def _final(self, ending: Ending) -> Ending:
        """A failure while the last turns finished outweighs the reason to stop."""
        later = self._ending
        return later if later is not None and later.reason in OVERRIDING else ending

    def _committer_over(self, task: asyncio.Task[None]) -> None:
        """A committer that failed ends the run: fenced, or a fault of the database."""
        if task.cancelled():
            return
        error = task.exception()
        if isinstance(error, Fenced):
            self._ending = Ending(reason=EndReason.INTERRUPTED, sentence=str(error))
            self._hurry.set()
            self._changed.set()
        elif error is not None:
            log.error("The commit door failed.", exc_info=error)
            self._fail(f"Nothing can be stored any more: {error}")

    async def _finish_turns(self, ending: Ending) -> None:
        """Let turns in flight finish within the grace, then cancel them."""
        if ending.reason in {EndReason.FAILED, EndReason.INTERRUPTED}:
            self._hurry.set()
        hurry = asyncio.create_task(self._hurry.wait())
        grace_ends = asyncio.create_task(self.clock.sleep(self.config.stop_grace_seconds))
        try:
            while self.turns and not hurry.done() and not grace_ends.done():
                waits = {*self.turns, hurry, grace_ends}
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await self._cancel(hurry, grace_ends)
        await self._cancel(*self.turns)

    async def _finish_errands(self) -> None:
        while self._errands:
            await asyncio.wait(self._errands)

    async def _cancel(self, *tasks: asyncio.Task[None] | asyncio.Task[bool]) -> None:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # --- a turn ------------------------------------------------------------------------------------

    async def _turn(self, grant: Grant, found: Standing) -> None:
        """Run one turn to its end, whatever it raises; only the end of the run stops here."""
        turn = self._conduct.begin(grant)
        retry_at: datetime | None = None
        try:
            retry_at = await self._conduct.carry_out(turn, found.work)
        finally:
            self._turn_over(turn.log, retry_at)

    def _turn_over(self, turn: TurnLog, retry_at: datetime | None) -> None:
        """Give back what the turn held, and judge its agent."""
        agent, now = turn.record.agent, self.clock.now()
        empty = turn.record.n_committed == 0 and turn.record.n_llm_calls == 0
        self.figures.n_empty_turns += empty
        if self.rules.claims.release_all(agent):
            self.watch.seats_returned(agent, now)
        self.watch.turn_over(agent, now, empty=empty, retry_at=retry_at)
        self._close_for_the_benched((agent,))
        self.watch.budget_returned(now)

    def _turn_done(self, task: asyncio.Task[None]) -> None:
        del self.turns[task]
        self._slots.release()
        self._sample(self.clock.now(), n_busy=len(self.turns))
        self._changed.set()
        if not task.cancelled() and (error := task.exception()) is not None:
            log.debug("A turn ended with the run.", exc_info=error)

    def _sample(self, now: datetime, *, n_busy: int) -> None:
        self.figures.sample(now, n_busy=n_busy, n_ready=self.scheduler.n_ready)

    # --- what happens meanwhile ----------------------------------------------------------------------

    def _applied(self, concern: Concern, group: Group) -> None:
        now = self.clock.now()
        self.tally.add(group)
        self.watch.concerned(concern, now)
        for thread in concern.threads:
            self._idle_threads.watch(thread)
        self._close_for_the_benched(concern.agents)
        self._sample(now, n_busy=len(self.turns))
        self._changed.set()

    def heard(self, beat: Beat) -> None:
        """Act on what the pulse read."""
        if not beat.ours:
            self.stop(EndReason.INTERRUPTED, "Another driver has taken this simulation over.")
            self._hurry.set()
            return
        if beat.wish is Wish.STOP and self._ending is None:
            self.stop()
        elif beat.wish is Wish.PAUSE and self._ending is None:
            self.stop(EndReason.PAUSE_REQUESTED)
        elif beat.wish is Wish.DRAIN and not self.rules.draining:
            self.rules.draining = True
            self.watch.everybody(self.clock.now())
        self._raise_caps(beat)
        if beat.topology_version != self.world.gate.version and self._gate_task is None:
            self._gate_task = self._errand(self._reload_gate())
        if beat.has_mail and self._mail_task is None:
            self._mail_task = self._errand(self._take_mail())
        self._changed.set()

    def _raise_caps(self, beat: Beat) -> None:
        """Take over caps that a person has raised; None leaves the run's own."""
        budget = self.rules.budget
        before = (budget.max_calls, budget.max_nano_usd)
        if beat.max_calls is not None:
            budget.max_calls = beat.max_calls
        if beat.max_nano_usd is not None:
            budget.max_nano_usd = beat.max_nano_usd
        if before != (budget.max_calls, budget.max_nano_usd):
            self.watch.budget_returned(self.clock.now())

    async def _reload_gate(self) -> None:
        """Adopt the topology of now; a failed reload keeps the last good one."""
        try:
            await self.committer.hand_in(await newest_topology(self._store))
        except StoreError:
            log.exception("The topology could not be reloaded; the last good one stays in force.")
        finally:
            self._gate_task = None

    async def _take_mail(self) -> None:
        try:
            await self._read_mail()
        finally:
            self._mail_task = None

    async def _read_mail(self) -> bool:
        """Take in what people left, each note once; tell whether there was anything."""
        async with self._mailbox:
            effects = await self._store.read_mail()
            if effects:
                await self.committer.hand_in(HandIn(effects=effects))
        return bool(effects)

    def _close_idle_threads(self, now: datetime) -> None:
        closes = self._idle_threads.due(self.world, now)
        if closes:
            self._errand(self._hand_in(HandIn(effects=closes)))

    def _close_for_the_benched(self, agents: Iterable[int]) -> None:
        """Close, as lost, what an agent owes whose own cap is spent for this run."""
        closes = []
        for agent in agents:
            if self.watch.whys.get(agent) == "own_call_cap":
                closes += [
                    Close(root=thread.root, cycle=thread.cycle, outcome=Outcome.LOST)
                    for thread in debts(self.world, agent)
                ]
        if closes:
            self._errand(self._hand_in(HandIn(effects=tuple(closes))))

    async def _hand_in(self, hand_in: HandIn) -> None:
        await self.committer.hand_in(hand_in)

    def _errand(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        """Run something beside the turns; the run ends only when it is done."""
        task = asyncio.create_task(work)
        self._errands.add(task)
        task.add_done_callback(self._errand_done)
        return task

    def _errand_done(self, task: asyncio.Task[None]) -> None:
        self._errands.discard(task)
        self._changed.set()
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, Fenced):
            log.error("An errand of the loop failed.", exc_info=error)
            self._fail(f"The run cannot go on: {error}")
