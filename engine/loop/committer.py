"""The commit door's owner: the one task that prepares, stores and applies.

Turns, the pulse and people's messages hand in and wait for the answer; none of them awaits the
database. A hand-in that was taken is carried to its end, whatever becomes of who waits for it; one
that was not is withdrawn when its waiter is cancelled.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

from engine.core.door.aftermath import aftermath
from engine.core.door.hand_in import prepare
from engine.core.draft import Concern, Draft
from engine.core.effects import (
    Adopt,
    AgentChanged,
    Answer,
    Effect,
    HandIn,
    Rejected,
    Remember,
    Result,
    TurnRecord,
)
from engine.core.errors import RowRefused, StoreError, StoreLost, TopologyMoved
from engine.core.group import Group
from engine.loop.rebuild import world_from

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from engine.core.participation import Rules
    from engine.core.scheduler import Scheduler
    from engine.core.world import World
    from engine.ports.clock import Clock
    from engine.ports.store import Store

log = logging.getLogger(__name__)

#: A group takes at most this many hand-ins.
GROUP_SIZE = 200
#: A group that starts interactions is checked again under a new topology this often.
TOPOLOGY_ROUNDS = 3
#: What would be wrong with the store if more rounds were needed.
UNSETTLED = "a group that starts nothing cannot be refused for the topology"
#: Roots that nobody uses are forgotten when there are twice as many as after the last time.
TRIM_FROM = 1024


@dataclass(slots=True, eq=False)
class _Entry:
    hand_in: HandIn
    answer: asyncio.Future[Answer]


class Committer:
    """Owns the world: `run` is its task, `hand_in` the door.

    `on_applied` is told, on the loop and before any answer is given, whom a group concerned and
    what it stored.
    """

    def __init__(
        self,
        world: World,
        *,
        store: Store,
        rules: Rules,
        clock: Clock,
        scheduler: Scheduler,
        wrote_at: datetime | None,
        on_applied: Callable[[Concern, Group], None],
    ) -> None:
        self.world = world
        self.rules = rules
        self._store = store
        self._clock = clock
        self._scheduler = scheduler
        self._wrote_at = wrote_at
        self._on_applied = on_applied
        self._waiting: deque[_Entry] = deque()
        self._wake = asyncio.Event()
        self._taken: list[_Entry] = []
        self._failure: BaseException | None = None
        self._trim_at = max(TRIM_FROM, 2 * len(world.roots))

    async def hand_in(
        self, hand_in: HandIn, told: Callable[[Answer], None] = lambda _: None
    ) -> Answer:
        """Hand in and wait for the answer; `told` hears it first, also when the waiter is cancelled.

        A cancelled waiter waits on if its hand-in was taken, and is cancelled then. Raises what
        ended the committer (`StoreLost`, a database error) if nothing can be stored any more.
        """
        if self._failure is not None:
            raise self._failure
        entry = _Entry(hand_in, asyncio.get_running_loop().create_future())
        self._waiting.append(entry)
        self._wake.set()
        cancelled: asyncio.CancelledError | None = None
        while not entry.answer.done():
            try:
                await asyncio.shield(entry.answer)
            except asyncio.CancelledError as error:
                if entry in self._waiting:
                    self._waiting.remove(entry)
                    raise
                cancelled = error
        answer = entry.answer.result()
        told(answer)
        if cancelled is not None:
            raise cancelled
        return answer

    @property
    def is_idle(self) -> bool:
        """True while nothing waits and whatever was taken has its answer."""
        return not self._waiting and all(entry.answer.done() for entry in self._taken)

    async def run(self) -> None:
        """Commit one group after the other, as soon as the last is stored, until cancelled."""
        try:
            while True:
                await self._wake.wait()
                await self.step()
        except BaseException as error:
            self._fail(error)
            raise

    async def step(self) -> bool:
        """Commit what waits now, at most `GROUP_SIZE`; tell whether there was anything."""
        entries = self._take()
        if not self._waiting:
            self._wake.clear()
        if not entries:
            return False
        self._taken = entries
        try:
            # Shielded: a cancelled committer finishes the group that it has begun.
            await asyncio.shield(asyncio.ensure_future(self._commit(entries)))
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            for entry in entries:
                if not entry.answer.done():
                    entry.answer.set_exception(error)
                    entry.answer.exception()  # a waiter may be gone; the failure is told by run()
            raise
        finally:
            self._taken = []
        return True

    def _take(self) -> list[_Entry]:
        """Take what waits, in order; a new topology makes a group of its own."""
        taken: list[_Entry] = []
        while self._waiting and len(taken) < GROUP_SIZE:
            if _adopts(self._waiting[0]) and taken:
                break
            entry = self._waiting.popleft()
            taken.append(entry)
            if _adopts(entry):
                break
        return taken

    async def _commit(self, entries: list[_Entry]) -> None:
        for n_rounds in range(TOPOLOGY_ROUNDS + 1):
            draft = self._draft(may_start=n_rounds < TOPOLOGY_ROUNDS)
            answers = [prepare(draft, entry.hand_in) for entry in entries]
            try:
                await self._store_and_apply(draft)
            except TopologyMoved:
                await self._adopt_newest()
                continue
            except RowRefused as error:
                log.warning("A group was refused, its effects are sent one by one: %s", error)
                await self._one_by_one(entries)
                return
            for entry, answer in zip(entries, answers, strict=True):
                _give(entry, answer)
            return
        raise AssertionError(UNSETTLED)

    def _draft(self, *, may_start: bool = True) -> Draft:
        now = self._clock.now()
        self._wrote_at = now if self._wrote_at is None else max(now, self._wrote_at)
        group = Group(number=self.world.commit_no + 1, at=self._wrote_at)
        draft = Draft(
            self.world,
            rules=self.rules,
            group=group,
            n_selections=self._scheduler.n_selections,
        )
        draft.may_start = may_start
        return draft

    async def _store_and_apply(self, draft: Draft) -> None:
        await self._store.commit(draft.finish())
        try:
            concern = draft.absorb()
        except Exception:
            log.exception("Applying a stored group failed; the world is rebuilt from the database.")
            concern = await self._rebuild()
        self._on_applied(concern, draft.group)
        if len(self.world.roots) > self._trim_at:
            self.world.trim()
            self._trim_at = max(TRIM_FROM, 2 * len(self.world.roots))

    async def _rebuild(self) -> Concern:
        """Replace the world, in place, by one that is built from the database."""
        fresh = world_from(await self._store.load())
        for table in fields(fresh):
            setattr(self.world, table.name, getattr(fresh, table.name))
        return Concern(everybody=True)

    async def _adopt_newest(self) -> None:
        """Bring the topology that is in force now into the world, in a commit of its own.

        If that fails, what waits to be checked again is: under the last good gate, until it may
        start nothing any more.
        """
        try:
            draft = self._draft()
            prepare(draft, await newest_topology(self._store))
            await self._store_and_apply(draft)
        except StoreLost:
            raise
        except StoreError:
            log.exception("The newest topology could not be adopted.")

    async def _one_by_one(self, entries: list[_Entry]) -> None:
        """Send each effect of a refused group alone; the one that fails again is rejected."""
        for entry in entries:
            _give(entry, await self._each_alone(entry.hand_in))

    async def _each_alone(self, hand_in: HandIn) -> Answer:
        results: list[Result] = []
        turn = hand_in.turn
        n_messages = 0
        for effect in hand_in.effects:
            alone = HandIn(effects=(effect,), turn=turn)
            try:
                answer, n_messages = await self._alone(alone, n_messages)
            except RowRefused as error:
                refused = _refused(effect, error)
                results.append(refused)
                turn = await self._instead(effect, _counted(turn, refused.reason), n_messages)
            else:
                results.extend(answer.results)
                turn = answer.turn
        rest = replace(hand_in, effects=(), turn=turn)
        answer, _ = await self._alone(rest, n_messages)
        return Answer(results=tuple(results), turn=answer.turn)

    async def _instead(
        self, effect: Effect, turn: TurnRecord | None, n_messages: int
    ) -> TurnRecord | None:
        """Commit what follows when the database refused an effect; return the turn's row after it."""
        effects = aftermath(self.world, effect)
        if not effects:
            return turn
        try:
            answer, _ = await self._alone(HandIn(effects=effects, turn=turn), n_messages)
        except RowRefused:
            log.exception("What follows a refused effect was refused too.")
            return turn
        return answer.turn

    async def _alone(self, hand_in: HandIn, n_messages: int) -> tuple[Answer, int]:
        """Commit one hand-in by itself; return its answer and the messages stored so far."""
        for n_rounds in range(TOPOLOGY_ROUNDS + 1):
            draft = self._draft(may_start=n_rounds < TOPOLOGY_ROUNDS)
            answer = prepare(draft, hand_in, n_messages_before=n_messages)
            try:
                await self._store_and_apply(draft)
            except TopologyMoved:
                await self._adopt_newest()
            else:
                return answer, draft.n_messages_of_hand_in
        raise AssertionError(UNSETTLED)

    def _fail(self, error: BaseException) -> None:
        """Let everybody who waits, and everybody who comes, know that nothing is stored any more."""
        self._failure = error
        while self._waiting:
            entry = self._waiting.popleft()
            if not entry.answer.done():
                entry.answer.set_exception(error)
                entry.answer.exception()


async def newest_topology(store: Store) -> HandIn:
    """Return the topology that is in force now, with the agents as that topology knows them.

    An agent's status moves the version, so both come into the world at once: an agent that was
    paused starts nothing under the version that paused it. The version is read first.
    """
    gate = await store.load_gate()
    mail = await store.read_mail()
    changed = (effect for effect in mail if isinstance(effect, AgentChanged))
    return HandIn(effects=(*changed, Adopt(gate=gate)))


def _adopts(entry: _Entry) -> bool:
    return any(isinstance(effect, Adopt) for effect in entry.hand_in.effects)


def _give(entry: _Entry, answer: Answer) -> None:
    if not entry.answer.done():
        entry.answer.set_result(answer)


def _refused(effect: Effect, error: RowRefused) -> Rejected:
    """Tell what to answer to an effect that the database refused alone.

    A memory's version is taken when a person has edited it and the note is not read yet: that is
    no fault, and done again.
    """
    if isinstance(effect, Remember):
        return Rejected(reason="changed_meanwhile")
    log.error("The database refused an effect: %s", type(effect).__name__, exc_info=error)
    return Rejected(reason="storage")


def _counted(turn: TurnRecord | None, reason: str) -> TurnRecord | None:
    """Return the turn with one more effect that the database refused."""
    if turn is None:
        return None
    reasons = dict(turn.rejected)
    reasons[reason] = reasons.get(reason, 0) + 1
    return replace(turn, rejected=tuple(sorted(reasons.items())))
