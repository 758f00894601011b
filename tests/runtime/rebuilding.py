"""One body for the law of rebuilding, over any store: at every commit of a random run the world
that is built from the store equals the live one.

A `Ground` is a store with the people's side of it. The run is disturbed at random by messages,
reviews, edits of agents, channels and memories, and changes of cohorts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from random import Random
from typing import Protocol

from engine.backends.clock import VirtualClock
from engine.core.config import RunConfig
from engine.core.effects import CallRecord, Effect, TakeIn, TurnRecord, Verdict
from engine.core.errors import TransientLlmError, UnusableAnswer
from engine.core.gate import Gate
from engine.core.group import Group
from engine.core.money import Caps, NoMoney
from engine.core.records import Channel, Memory, Status, Talk, Visibility
from engine.core.world import World
from engine.loop.engine import Engine
from engine.loop.rebuild import same_world, world_from
from engine.ports.llm import (
    AnswerPost,
    Chosen,
    Decision,
    LlmRequest,
    Move,
    NewRoot,
    PostContext,
    PruneContext,
    RememberContext,
    Remembered,
    ReplyContext,
    ScanContext,
    SkipPost,
    Written,
)
from engine.ports.store import Beat, Loaded, Store, StoredMessage, Texts, ToldTalk, Wanted
from engine.store.memory import MemoryStore
from tests.runtime.scripted_llm import ScriptedLlm, unlike_any_other
from tests.runtime.society import START, Society, make_agent, make_society

SETTINGS = RunConfig(
    concurrent_turns=3,
    active_thread_threshold=2,
    thread_messages=6,
    daily_posts=6,
    unreviewed_proposals=3,
    thread_idle_seconds=90,
    pair_rest_seconds=5,
    max_turns=150,
    max_minutes=30,
)


class Ground(Protocol):
    """What a random run stands on. Each act leaves its note as the site would."""

    store: Store

    def write(self, dice: Random) -> None: ...
    def review(self, dice: Random) -> None: ...
    def edit_agent(self, dice: Random) -> None: ...
    def edit_channel(self, dice: Random) -> None: ...
    def edit_memory(self, dice: Random) -> None: ...
    def change_cohorts(self, dice: Random) -> None: ...


# --- the run ---------------------------------------------------------------------------------------


@dataclass(slots=True)
class CheckedStore:
    """A store that compares, before a group is stored, the live world with a rebuilt one.

    There is nothing to compare while the inbox holds notes or a topology waits to be adopted.
    """

    inner: Store
    world: World | None = None
    n_checked: int = 0
    differing: dict[int, list[str]] = field(default_factory=dict)

    @property
    def is_trusted(self) -> bool:
        return self.inner.is_trusted

    async def commit(self, group: Group) -> None:
        await self._check()
        await self.inner.commit(group)

    async def _check(self) -> None:
        assert self.world is not None
        loaded = await self.inner.load()
        mail = await self.inner.read_mail()
        if loaded.gate.version != self.world.gate.version:
            return
        if any(not isinstance(effect, TakeIn) for effect in mail):
            return
        self.n_checked += 1
        found = same_world(self.world, world_from(loaded)) + stale_caches(self.world)
        if found:
            self.differing[self.world.commit_no] = found

    async def load(self) -> Loaded:
        return await self.inner.load()

    async def load_gate(self) -> Gate:
        return await self.inner.load_gate()

    async def reserve(self, call: CallRecord, *, turn: TurnRecord, caps: Caps) -> NoMoney | None:
        return await self.inner.reserve(call, turn=turn, caps=caps)

    def settle(self, call: CallRecord) -> None:
        self.inner.settle(call)

    async def read_mail(self) -> tuple[Effect, ...]:
        return await self.inner.read_mail()

    async def read(self, wanted: Wanted) -> Texts:
        return await self.inner.read(wanted)

    async def search(
        self, words: tuple[str, ...], *, channels: tuple[int, ...], most: int
    ) -> tuple[StoredMessage, ...]:
        return await self.inner.search(words, channels=channels, most=most)

    async def told_talks(self, talks: tuple[Talk, ...], *, agent: int) -> tuple[ToldTalk, ...]:
        return await self.inner.told_talks(talks, agent=agent)

    def beat(self) -> Beat:
        return self.inner.beat()


#: Caches that are filled as they are asked for.
LAZY = {"skimmed", "wanted"}


def stale_caches(world: World) -> list[str]:
    """Return the caches that differ from those made anew; empty entries do not count."""
    fresh = replace(world)
    fresh.rebuild_caches()
    found = []
    for table in fields(World):
        if table.compare or table.name in LAZY:
            continue
        ours, theirs = getattr(world, table.name), getattr(fresh, table.name)
        if not isinstance(ours, dict):
            assert ours >= theirs  # a root may have gone from memory
            continue
        if {k: v for k, v in ours.items() if v} != {k: v for k, v in theirs.items() if v}:
            found.append(table.name)
    skimmed = replace(world, skimmed=dict(world.skimmed))
    if any(
        skimmed.unread(agent, most=99) != fresh.unread(agent, most=99) for agent in world.agents
    ):
        found.append("skimmed")
    if any(channels != fresh.wants(agent) for agent, channels in world.wanted.items()):
        found.append("wanted")
    return found


async def random_run(ground: Ground, seed: int, settings: RunConfig = SETTINGS) -> CheckedStore:
    """Drive one disturbed run to its end and return what its checks found."""
    dice = Random(seed)
    clock = VirtualClock(START)
    llm = ScriptedLlm(clock=clock, script=whims(seed), latency=lambda _: dice.uniform(0, 5))
    checked = CheckedStore(ground.store)
    engine = Engine(
        loaded=await ground.store.load(),
        store=checked,
        llm=llm,
        clock=clock,
        config=replace(settings, seed=seed),
    )
    checked.world = engine.world
    disturbing = asyncio.create_task(_disturb(ground, engine, dice))
    try:
        await engine.run()
    finally:
        disturbing.cancel()
        with suppress(asyncio.CancelledError):
            await disturbing
    return checked


async def _disturb(ground: Ground, engine: Engine, dice: Random) -> None:
    acts: tuple[Callable[[Random], None], ...] = (
        ground.write,
        ground.write,
        ground.review,
        ground.review,
        ground.edit_agent,
        ground.edit_channel,
        ground.edit_memory,
        ground.change_cohorts,
    )
    while True:
        await engine.clock.sleep(dice.uniform(0, 4))
        dice.choice(acts)(dice)
        if dice.random() < 0.9:
            engine.heard(ground.store.beat())


def whims(seed: int) -> Callable[[LlmRequest], Decision]:
    """Return a script that does anything a model may do, by chance, failures included."""

    def script(request: LlmRequest) -> Decision:
        key = (seed, request.agent, request.turn, request.phase, request.thread, request.attempt)
        dice = Random(repr(key))
        luck = dice.random()
        if luck < 0.04:
            raise UnusableAnswer("empty")
        if luck < 0.08:
            raise TransientLlmError("busy", retry_after_seconds=dice.choice([1.0, 9.0]))
        return _whim(request, dice)

    return script


def _whim(request: LlmRequest, dice: Random) -> Decision:
    text = unlike_any_other(request)
    if dice.random() < 0.4:
        text = f"{text}, @Bot{dice.randint(1, 9)}"
    match request.context:
        case ScanContext() | PruneContext() as context:
            return Chosen(seqs=tuple(p.seq for p in context.posts if dice.random() < 0.7))
        case ReplyContext() as context:
            likely = [move for move in context.moves if move is not Move.DECLINE]
            moves = likely if likely and dice.random() < 0.9 else context.moves
            return Written(move=dice.choice(moves), text=text)
        case RememberContext():
            return Remembered(text=text)
        case PostContext() as context:
            if context.bank and dice.random() < 0.7:
                return AnswerPost(seq=dice.choice(context.bank).entry.seq, text=text)
            if context.channels and dice.random() < 0.8:
                tags = [None, *(partner.slug for partner in context.partners)]
                room = dice.choice(context.channels).name
                return NewRoot(channel=room, text=text, tag=dice.choice(tags))
            return SkipPost(reason="a whim")


# --- the ground in memory --------------------------------------------------------------------------


@dataclass(slots=True)
class MemoryGround:
    """A society of six in memory, with a private channel of three."""

    society: Society
    store: Store

    def write(self, dice: Random) -> None:
        """Write a root or an answer, with or without a name in it."""
        roots = [
            seq for seq, row in self.society.tables.messages.items() if row.message.root is None
        ]
        root = dice.choice([None, *roots])
        channel = (
            dice.choice(list(self.society.tables.channels))
            if root is None
            else self.society.tables.messages[root].message.channel
        )
        call = f"@Bot{dice.randint(1, 7)} " * dice.randint(0, 2)
        text = f"{call}what of number {dice.random()}?"
        self.society.people.write_message(channel=channel, root=root, text=text, at=START)

    def review(self, dice: Random) -> None:
        """Review a proposal that waits, if there is one."""
        proposals = self.society.tables.proposals
        waiting = [key for key, row in proposals.items() if row.verdict is None]
        if waiting:
            root, cycle = dice.choice(waiting)
            verdict = dice.choice(list(Verdict))
            self.society.people.review(
                root=root, cycle=cycle, verdict=verdict, at=START, note="think of the goats"
            )

    def edit_agent(self, dice: Random) -> None:
        """Pause, wake, retire, rename or limit an agent, or let one join."""
        agents = self.society.tables.agents
        if dice.random() < 0.2:
            self.society.save_agent(make_agent(max(agents) + 1))
            return
        spec = agents[dice.choice(list(agents))]
        spec = replace(spec, version=spec.version + 1)
        statuses = [Status.ACTIVE] * 6 + [Status.PAUSED] * 3 + [Status.RETIRED]
        status = dice.choice(statuses)
        edits = (
            replace(spec, status=status),
            replace(spec, bot_name=f"Bot{spec.id}x{spec.version}"),
            replace(spec, max_calls=dice.choice([None, 3]), daily_posts=dice.choice([None, 1, 9])),
            replace(spec, public_profile="All is new, and of bees."),
        )
        self.society.save_agent(dice.choice(edits))

    def edit_channel(self, dice: Random) -> None:
        """Give a channel another topic, or make a new one."""
        channels = self.society.tables.channels
        number = dice.choice([*channels, max(channels) + 1])
        known = channels.get(number)
        visibility = Visibility.PUBLIC if known is None else known.visibility
        topic = f"{dice.choice(['bees', 'things', 'kinds'])} {dice.random()}"
        room = Channel(id=number, name=f"room-{number}", topic=topic, visibility=visibility)
        self.society.people.save_channel(room)

    def edit_memory(self, dice: Random) -> None:
        """Write another text into a memory of which there is one, or into an empty one."""
        agent = dice.choice(list(self.society.tables.agents))
        known: list[Memory] = [m for m in self.society.tables.memories.values() if m.agent == agent]
        channel = dice.choice([None, *(memory.channel for memory in known)])
        self.society.people.edit_memory(agent=agent, channel=channel, text="so it was")

    def change_cohorts(self, dice: Random) -> None:
        """Shuffle the cohorts, the members of the private channel, or the policy."""
        agents = list(self.society.tables.agents)
        policies = ["open", "open", "isolated", "off"]
        self.society.change_topology(
            cohorts={
                name: tuple(dice.sample(agents, dice.randint(0, 4))) for name in ("east", "west")
            },
            members={2: tuple(dice.sample(agents, 3))},
            policy=dice.choice(policies),
        )


def memory_ground() -> MemoryGround:
    """Return a fresh society in memory."""
    society = make_society(
        6, cohorts={"east": (1, 2, 3), "west": (3, 4, 5)}, private={"parlour": (1, 2, 4)}
    )
    return MemoryGround(society, MemoryStore(society.tables))
