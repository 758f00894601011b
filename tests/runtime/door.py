"""The commit door alone: a committer over a memory store, with effects handed in by the test.

    async with open_door(society) as door:
        root = await door.seq(Post(agent=1, channel=1, text="hello"))
        answer = await door.turn(2, Reply(agent=2, root=root, text="yes", answers_ordinal=1))

Every hand-in of an agent is a turn of its own, numbered in order. At first all agents join all
channels that they may be in.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from engine.backends.clock import VirtualClock
from engine.core.budget import Budget
from engine.core.claims import Claims
from engine.core.config import RunConfig
from engine.core.effects import (
    Answer,
    Committed,
    Effect,
    HandIn,
    Join,
    MoveKind,
    Post,
    Rejected,
    Reply,
    TurnOutcome,
    TurnRecord,
)
from engine.core.errors import StoreError
from engine.core.group import Group
from engine.core.participation import Rules
from engine.core.scheduler import Scheduler
from engine.loop.committer import Committer
from engine.loop.rebuild import same_world, world_from
from engine.store.memory import MemoryStore, Tables

if TYPE_CHECKING:
    from engine.core.draft import Concern
    from engine.core.world import World
    from tests.runtime.society import Society

BeforeCommit = Callable[[Group], Awaitable[None]]


@dataclass(slots=True, kw_only=True)
class Door:
    """A door that stands open; `concerns` are those of the applied groups, in order."""

    society: Society
    store: MemoryStore
    committer: Committer
    rules: Rules
    clock: VirtualClock
    concerns: list[Concern] = field(default_factory=list)
    n_turns: int = 0

    @property
    def world(self) -> World:
        return self.committer.world

    @property
    def tables(self) -> Tables:
        return self.society.tables

    def record(self, agent: int) -> TurnRecord:
        """Return the row of a new turn of an agent."""
        self.n_turns += 1
        return TurnRecord(
            number=self.n_turns,
            agent=agent,
            agent_version=1,
            selected_at=self.clock.now(),
            waited_seconds=0.0,
            wait_bound_seconds=60.0,
        )

    async def turn(
        self, agent: int, *effects: Effect, ends: TurnOutcome | None = TurnOutcome.WORKED
    ) -> Answer:
        """Hand in what one turn of an agent planned."""
        record = self.record(agent)
        return await self.committer.hand_in(HandIn(effects=effects, turn=record, ends=ends))

    async def seq(self, effect: Post | Reply) -> int:
        """Hand in one effect that makes a message, as a turn of its agent; return its `seq`."""
        (result,) = (await self.turn(effect.agent, effect)).results
        assert isinstance(result, Committed), result
        assert result.seq is not None
        return result.seq

    async def tell(self, *effects: Effect) -> Answer:
        """Hand in what the pulse or a person brings."""
        return await self.committer.hand_in(HandIn(effects=effects))

    async def take_mail(self) -> Answer:
        """Take in what people left."""
        return await self.tell(*await self.store.read_mail())

    async def differing(self) -> list[str]:
        """Return the tables in which the world differs from one rebuilt from the store."""
        return same_world(self.world, world_from(await self.store.load()))


def post(
    agent: int, text: str = "a post about goats", *, channel: int = 1, tag: int | None = None
) -> Post:
    """Return a new root."""
    return Post(agent=agent, channel=channel, text=text, tag=tag)


def reply(
    agent: int,
    root: int,
    ordinal: int = 1,
    text: str = "yes",
    move: MoveKind = MoveKind.CONTINUE,
) -> Reply:
    """Return an answer composed on a view that ended at `ordinal`."""
    return Reply(agent=agent, root=root, text=text, answers_ordinal=ordinal, move=move)


def reasons(answer: Answer) -> list[str]:
    """Return per effect why it was refused, empty where it stands."""
    return [one.reason if isinstance(one, Rejected) else "" for one in answer.results]


@asynccontextmanager
async def open_door(
    society: Society, *, before_commit: BeforeCommit | None = None, **settings: Any
) -> AsyncIterator[Door]:
    """Open the door over a society on the virtual clock, and close it at the end."""
    clock = VirtualClock(society.starts_at)
    config = RunConfig(**{"policy": str(society.policy)} | settings)
    store = MemoryStore(society.tables, before_commit=before_commit)
    loaded = await store.load()
    rules = Rules(config=config, claims=Claims(), budget=Budget(config))
    concerns: list[Concern] = []
    committer = Committer(
        world_from(loaded),
        store=store,
        rules=rules,
        clock=clock,
        scheduler=Scheduler(loaded.last_turn),
        wrote_at=loaded.wrote_at,
        on_applied=lambda concern, _: concerns.append(concern),
    )
    door = Door(
        society=society,
        store=store,
        committer=committer,
        rules=rules,
        clock=clock,
        concerns=concerns,
        n_turns=loaded.last_turn,
    )
    task = asyncio.create_task(committer.run())
    try:
        rooms = tuple(door.tables.channels)
        await door.tell(*(Join(agent=agent, channels=rooms) for agent in door.tables.agents))
        yield door
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError, StoreError):
            await task
