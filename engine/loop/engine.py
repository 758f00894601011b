"""The loop of a run: slots, grants, turns, and how it ends.

One semaphore for the life of the loop; the agent is chosen after the slot is granted, and a slot
that comes free is refilled at once. Everything else waits for events.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import nullcontext
from datetime import datetime
from typing import TYPE_CHECKING

from engine.core.budget import Budget
from engine.core.claims import Claims
from engine.core.effects import (
    Adopt,
    AgentChanged,
    Close,
    HandIn,
)
from engine.core.errors import Fenced, StoreError, StoreLost
from engine.core.logged import logged_about
from engine.core.participation import Rules, debts
from engine.core.records import Outcome, Status
from engine.core.scheduler import Grant, Scheduler
from engine.core.standing import Standing
from engine.loop.brake import Brake, cancel
from engine.loop.committer import Committer
from engine.loop.conduct import Conductor
from engine.loop.ending import Ending, EndReason
from engine.loop.errands import Errands
from engine.loop.figures import Figures
from engine.loop.idle_threads import IdleThreads
from engine.loop.limits import BENCHED, Limits
from engine.loop.outside import Outside
from engine.loop.rebuild import world_from
from engine.loop.tally import Tally
from engine.loop.watch import JUDGED_AT_ONCE, Watch
from engine.turn.line import Line
from engine.turn.trust import Trust

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.core.config import RunConfig
    from engine.core.draft import Concern
    from engine.core.group import Group
    from engine.core.records import AgentSpec
    from engine.core.world import World
    from engine.ports.clock import Clock
    from engine.ports.llm import Llm
    from engine.ports.store import Beat, Loaded, Store
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
        self.watch = Watch(self.world, self.rules, self.scheduler)
        self.tally = Tally()
        self.figures = Figures(n_slots=config.concurrent_turns)
        self.turns: dict[asyncio.Task[None], Grant] = {}
        self._known = {agent for agent, _ in loaded.states}
        self._slots = asyncio.Semaphore(config.concurrent_turns)
        self._changed = asyncio.Event()
        self._idle_threads = IdleThreads(config.thread_idle_seconds)
        self._brake = Brake(self._changed, grace_seconds=config.stop_grace_seconds)
        self._errands = Errands(self._changed, fail=self._brake.fail)
        self._equip(store, llm, loaded.wrote_at)

    def _equip(self, store: Store, llm: Llm, wrote_at: datetime | None) -> None:
        """Make what works on the world: the door, the turns' conductor, the ear to the outside."""
        self.trust = Trust(store, self.clock)
        self.line = Line(
            llm,
            budget=self.rules.budget,
            clock=self.clock,
            permits=self.config.max_llm_calls_in_flight,
            trust=self.trust,
            store=store,
        )
        self._limits = Limits(self.world, self.rules, self.scheduler, self.line)
        self.committer = Committer(
            self.world,
            store=store,
            rules=self.rules,
            clock=self.clock,
            scheduler=self.scheduler,
            wrote_at=wrote_at,
            on_applied=self._applied,
        )
        self._conduct = Conductor(
            world=self.world,
            rules=self.rules,
            store=store,
            line=self.line,
            clock=self.clock,
            door=self.committer,
            fail=self._brake.fail,
        )
        self.outside = Outside(
            store=store,
            committer=self.committer,
            watch=self.watch,
            clock=self.clock,
            brake=self._brake,
            errands=self._errands,
        )

    @property
    def is_hurried(self) -> bool:
        """True once no turn is waited for any more."""
        return self._brake.is_hurried

    @property
    def is_stopping(self) -> bool:
        """True once the run was asked to stop, and not only to pause: no more turns, to its end."""
        ending = self._brake.ending
        return ending is not None and ending.reason is EndReason.STOPPED

    def heard(self, beat: Beat) -> None:
        """Act on what the pulse read."""
        self.trust.heard()
        self.outside.heard(beat)
        self._changed.set()

    def give_up(self, sentence: str) -> None:
        """End the run now, as failed: the database does not answer."""
        self._brake.fail(sentence)

    def stop(self, reason: EndReason = EndReason.STOPPED, sentence: str = "") -> None:
        """Select nobody any more; asked again, cancel the turns in flight at once."""
        self._brake.stop(reason, sentence)

    # --- from the start to the end -----------------------------------------------------------------

    async def run(self) -> Ending:
        """Drive the run to its end and return how it ended; everything it began is over then."""
        committing = asyncio.create_task(self.committer.run(), name="committer")
        committing.add_done_callback(self._committer_over)
        try:
            await self._begin()
            ending = await self._select_until_end()
            await self._brake.wait_for_turns(self.turns, ending, clock=self.clock)
            await self._errands.finish()
        except Fenced as error:
            ending = Ending(reason=EndReason.INTERRUPTED, sentence=str(error))
        except StoreLost as error:
            ending = Ending(reason=EndReason.FAILED, sentence=str(error))
        except StoreError as error:
            log.exception("The run cannot go on.")
            sentence = f"The database failed: {error}"
            ending = Ending(reason=EndReason.FAILED, sentence=sentence)
        finally:
            await cancel(*self.turns)
            await self._errands.cancel()
            await cancel(committing)
        return self._brake.final(ending)

    async def _begin(self) -> None:
        """Store the topology the run starts under, take in who is new, and judge everybody."""
        self._limits.begin(self.clock.now())
        changed = tuple(
            AgentChanged(note=None, agent=spec.id, spec=spec) for spec in self._changed_meanwhile()
        )
        # In one group: a message that is taken in now must not slip behind a newcomer's cursor.
        await self.committer.hand_in(HandIn(effects=(Adopt(gate=self.world.gate), *changed)))
        for thread in self.world.threads.values():
            self._idle_threads.watch(thread)
        await self.outside.read_mail()
        self.watch.everybody(self.clock.now())
        self._close_for_the_benched(self.world.agents)

    def _changed_meanwhile(self) -> list[AgentSpec]:
        """Return the agents that are new to the simulation, and that came or went between runs."""
        return [
            spec
            for spec in self.world.agents.values()
            if spec.id not in self._known
            or self.world.state(spec.id).away == (spec.status is Status.ACTIVE)
        ]

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
            if self.scheduler.n_ready and self.trust.holds:
                await asyncio.sleep(0)
                continue
            capped = self.watch.spent_cap
            if self._is_quiet() and (spent := self._limits.spent(capped, now)):
                return spent
            if not capped and await self._is_idle():
                return Ending(reason=EndReason.IDLE)
            await self._wait(now)

    def _grant(self, now: datetime) -> tuple[Grant, Standing] | None:
        """Select the longest waiting agent that is still eligible, or look at so many in vain.

        Nobody is selected while the lease is not trusted.
        """
        for _ in range(JUDGED_AT_ONCE):
            agent = self.scheduler.next_ready() if self.trust.holds else None
            if agent is None:
                return None
            found = self.watch.standing(agent, now)
            if not found.work:
                self.watch.settle(agent, found, now)
                self._close_for_the_benched((agent,))
                continue
            grant = self.scheduler.grant(now)
            assert grant is not None
            self.watch.selected(agent, found)
            self.figures.granted()
            self._sample(now, n_busy=len(self.turns) + 1)
            return grant, found
        return None

    async def _wait(self, now: datetime) -> None:
        """Wait for a change, or for the earliest timer; without trust, time may stand still."""
        times = [self.scheduler.next_due(), self._idle_threads.next_due(), self._limits.ends_at]
        due_at = min((at for at in times if at is not None), default=None)
        seconds = None if due_at is None else max((due_at - now).total_seconds(), 0)
        holding = nullcontext() if self.trust.holds else self.clock.hold()
        try:
            with holding:
                async with asyncio.timeout(seconds):
                    await self._changed.wait()
        except TimeoutError:
            return
        self._changed.clear()

    # --- reasons to end ------------------------------------------------------------------------------

    def _reason_to_end(self) -> Ending | None:
        ending = self._reason_to_end_now() or self._limits.reached()
        if ending is not None or self.turns:
            return ending
        return self._limits.nothing_goes_on(self.clock.now(), others_come=not self._errands.is_idle)

    def _reason_to_end_now(self) -> Ending | None:
        """Return why not even the turns in flight are waited for, beyond their grace."""
        return self._brake.ending or self._limits.reached_now(self.clock.now())

    async def _is_idle(self) -> bool:
        """Tell whether only the calendar or a person can bring work, after a look at the inbox."""
        if not self.config.until_idle or not self._is_quiet():
            return False
        return not await self.outside.read_mail() and self._is_quiet()

    def _is_quiet(self) -> bool:
        return (
            not self.turns
            and self._errands.is_idle
            and self.committer.is_idle
            and self.scheduler.n_ready == 0
            and not self.watch.has_timer_of_ours
        )

    # --- a turn ------------------------------------------------------------------------------------

    async def _turn(self, grant: Grant, found: Standing) -> None:
        """Run one turn to its end, whatever it raises; only the end of the run stops here."""
        turn = self._conduct.begin(grant)
        retry_at: datetime | None = None
        try:
            with logged_about(turn=grant.number, agent=turn.scene.spec.slug):
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
        self.watch.budget_returned(now)
        self._close_for_the_benched((agent,))

    def _turn_done(self, task: asyncio.Task[None]) -> None:
        self.line.doing.pop(self.turns.pop(task).number, None)
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

    def _close_idle_threads(self, now: datetime) -> None:
        self._hand_in_aside(self._idle_threads.due(self.world, now))

    def _close_for_the_benched(self, agents: Iterable[int]) -> None:
        """Close, as lost, what those owe whose own cap is spent for this run."""
        closes = []
        for agent in agents:
            if self.watch.whys.get(agent) in BENCHED:
                closes += [
                    Close(root=thread.root, cycle=thread.cycle, outcome=Outcome.LOST)
                    for thread in debts(self.world, agent)
                ]
        self._hand_in_aside(tuple(closes))

    def _hand_in_aside(self, effects: tuple[Close, ...]) -> None:
        if effects:
            self._errands.begin(self.committer.hand_in(HandIn(effects=effects)))

    def _committer_over(self, task: asyncio.Task[None]) -> None:
        """A committer that failed ends the run: fenced, or a fault of the database."""
        error = None if task.cancelled() else task.exception()
        if isinstance(error, Fenced):
            self._brake.lose(str(error))
        elif isinstance(error, StoreLost):
            self._brake.fail(str(error))
        elif error is not None:
            log.error("The commit door failed.", exc_info=error)
            self._brake.fail(f"Nothing can be stored any more: {error}")
