"""Societies for tests of whole runs: made in memory, driven on the virtual clock.

    society = make_society(4, cohorts={"north": (1, 2), "south": (3, 4)})
    played = play(society, script=silent, concurrent_turns=1)

The agents are numbered from 1, `a1` with the handle `@Bot1`; the channels from 1 too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from cohorts.roster import read_roster
from cohorts.rules import Policy, Topology, build_topology
from engine.backends.clock import VirtualClock, VirtualLoop
from engine.backends.llm.offline import OfflineLlm
from engine.core.config import RunConfig
from engine.core.records import AgentSpec, Channel, Status, Visibility
from engine.loop.engine import Engine
from engine.store.memory import MemoryStore, People, Tables
from tests.runtime.scripted_llm import Script, ScriptedLlm, eager, no_time

if TYPE_CHECKING:
    from engine.core.group import Group
    from engine.loop.ending import Ending
    from engine.ports.clock import Clock
    from engine.ports.llm import Llm, LlmRequest

START = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
DEMO_ROSTER = Path(__file__).parents[2] / "engine" / "demo" / "roster"
T = TypeVar("T")


def make_agent(number: int, **fields: Any) -> AgentSpec:
    """Return agent `number`: active, no limits of its own, but for the fields given."""
    plain = AgentSpec(
        id=number,
        slug=f"a{number}",
        bot_name=f"Bot{number}",
        represents=f"House {number}",
        public_profile=f"House {number} makes things of kind {number}.",
        private_instructions="",
        interests="",
        status=Status.ACTIVE,
        version=1,
    )
    return replace(plain, **fields)


@dataclass(slots=True, kw_only=True)
class Society:
    """One simulation in tables; `cohorts` and `members` are what its topology is made from."""

    tables: Tables
    cohorts: dict[str, tuple[int, ...]]
    members: dict[int, tuple[int, ...]]
    policy: Policy
    starts_at: datetime = START
    people: People = field(init=False)

    def __post_init__(self) -> None:
        self.people = People(self.tables)

    def topology(self, version: int) -> Topology:
        """Return the topology of the cohorts, members and agents as they are now."""
        keys = dict(enumerate(sorted(self.cohorts), 1))
        agents = self.tables.agents
        return build_topology(
            version=version,
            policy=self.policy,
            memberships=[
                (key, agent) for key, name in keys.items() for agent in self.cohorts[name]
            ],
            names=keys,
            agents=list(agents),
            running=[agent for agent, spec in agents.items() if spec.status is Status.ACTIVE],
            members_of=self.members,
        )

    def change_topology(
        self,
        *,
        cohorts: Mapping[str, tuple[int, ...]] | None = None,
        members: Mapping[int, tuple[int, ...]] | None = None,
        policy: str | None = None,
    ) -> Topology:
        """Put a new version into force, as a person does while a run is live."""
        self.cohorts = self.cohorts if cohorts is None else dict(cohorts)
        self.members = self.members if members is None else dict(members)
        self.policy = self.policy if policy is None else Policy(policy)
        gate = self.topology(self.tables.gate.version + 1)
        self.people.set_topology(gate)
        return gate

    def save_agent(self, spec: AgentSpec) -> None:
        """Save an agent, known or new, with the new topology that its status makes."""
        self.people.save_agent(spec)
        self.change_topology()


def make_society(
    agents: int | Iterable[AgentSpec] = 4,
    *,
    cohorts: Mapping[str, tuple[int, ...]] | None = None,
    policy: str = "open",
    channels: tuple[str, ...] = ("general",),
    private: Mapping[str, tuple[int, ...]] | None = None,
) -> Society:
    """Return a society of so many plain agents, or of these; private channels with members."""
    specs = map(make_agent, range(1, agents + 1)) if isinstance(agents, int) else agents
    rooms = [(name, Visibility.PUBLIC) for name in channels]
    rooms += [(name, Visibility.PRIVATE) for name in private or {}]
    return _society(
        {spec.id: spec for spec in specs},
        {
            number: Channel(id=number, name=name, topic="", visibility=visibility)
            for number, (name, visibility) in enumerate(rooms, 1)
        },
        cohorts=dict(cohorts or {}),
        members=dict(enumerate((private or {}).values(), len(channels) + 1)),
        policy=policy,
    )


def demo_society(policy: str = "open", folder: Path = DEMO_ROSTER) -> Society:
    """Return the society of a roster folder."""
    roster, problems = read_roster(folder)
    assert not problems
    ids = {agent.slug: number for number, agent in enumerate(roster.agents, 1)}
    agents = {
        ids[agent.slug]: make_agent(
            ids[agent.slug],
            slug=agent.slug,
            bot_name=agent.bot_name,
            represents=agent.represents,
            public_profile=agent.public_profile,
            private_instructions=agent.private_instructions,
            status=Status(agent.status),
        )
        for agent in roster.agents
    }
    channels = {}
    members = {}
    for number, room in enumerate(roster.channels, 1):
        visibility = Visibility.PRIVATE if room.is_private else Visibility.PUBLIC
        channels[number] = Channel(
            id=number, name=room.name, topic=room.topic, visibility=visibility
        )
        if room.is_private:
            members[number] = tuple(ids[slug] for slug in room.members)
    cohorts = {one.name: tuple(ids[slug] for slug in one.members) for one in roster.cohorts}
    return _society(agents, channels, cohorts=cohorts, members=members, policy=policy)


def _society(
    agents: dict[int, AgentSpec],
    channels: dict[int, Channel],
    *,
    cohorts: dict[str, tuple[int, ...]],
    members: dict[int, tuple[int, ...]],
    policy: str,
) -> Society:
    nothing = build_topology(
        version=0,
        policy=Policy.OFF,
        memberships=(),
        names={},
        agents=(),
        running=(),
        members_of={},
    )
    society = Society(
        tables=Tables(agents=agents, channels=channels, gate=nothing),
        cohorts=cohorts,
        members=members,
        policy=Policy(policy),
    )
    society.tables.gate = society.topology(1)
    return society


@dataclass(slots=True, kw_only=True)
class Live:
    """A run while it goes on, as a test's own coroutine sees it."""

    society: Society
    engine: Engine
    store: MemoryStore
    clock: Clock
    llm: Llm

    @property
    def tables(self) -> Tables:
        return self.society.tables

    def beat(self) -> None:
        """Let the engine hear what the pulse would read now."""
        self.engine.heard(self.store.beat())

    async def sleep(self, seconds: float) -> None:
        await self.clock.sleep(seconds)

    async def until(self, condition: Callable[[], bool], *, step_seconds: float = 0.01) -> None:
        """Wait, in steps of virtual time, until something is true; an hour is too long."""
        for _ in range(int(3600 / step_seconds)):
            if condition():
                return
            await self.clock.sleep(step_seconds)
        raise AssertionError("the condition did not come true within an hour")


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """A run that is over."""

    ending: Ending
    live: Live

    @property
    def reason(self) -> str:
        return str(self.ending.reason)

    @property
    def engine(self) -> Engine:
        return self.live.engine

    @property
    def tables(self) -> Tables:
        return self.live.tables

    @property
    def llm(self) -> ScriptedLlm:
        assert isinstance(self.live.llm, ScriptedLlm)
        return self.live.llm


Meanwhile = Callable[[Live], Awaitable[None]]


def in_virtual_time(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on a virtual loop of its own."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(coroutine)


def play(society: Society, meanwhile: Meanwhile | None = None, **options: Any) -> Played:
    """Drive one run to its end on the virtual clock; see `drive` for the options."""
    return in_virtual_time(drive(society, meanwhile, **options))


async def drive(
    society: Society,
    meanwhile: Meanwhile | None = None,
    *,
    script: Script = eager,
    latency: Callable[[LlmRequest], float] | float = no_time,
    llm: Callable[[Clock], Llm] | None = None,
    before_commit: Callable[[Group], Awaitable[None]] | None = None,
    on_begin: Callable[[Live], None] = lambda _: None,
    beat_seconds: float | None = None,
    **settings: Any,
) -> Played:
    """Drive one run; `meanwhile` goes on beside it and is cancelled at its end.

    `settings` are those of `RunConfig`; the run ends when idle unless told otherwise. With
    `beat_seconds` the engine hears a beat so often. `llm` makes another model than the scripted.
    """
    clock = VirtualClock(society.starts_at)
    answers_after = latency if callable(latency) else (lambda _: latency)
    scripted = ScriptedLlm(clock=clock, script=script, latency=answers_after)
    model: Llm = llm(clock) if llm else scripted
    usual: dict[str, Any] = {"policy": str(society.policy), "until_idle": True, "seed": 1}
    config = RunConfig(**usual | settings)
    society.tables.max_calls, society.tables.max_nano_usd = config.max_calls, config.max_nano_usd
    society.tables.run += 1
    store = MemoryStore(society.tables, before_commit=before_commit)
    engine = Engine(loaded=await store.load(), store=store, llm=model, clock=clock, config=config)
    live = Live(society=society, engine=engine, store=store, clock=clock, llm=model)
    on_begin(live)
    beside = [asyncio.ensure_future(meanwhile(live))] if meanwhile else []
    beside += [asyncio.ensure_future(_pulse(live, beat_seconds))] if beat_seconds else []
    try:
        ending = await engine.run()
    finally:
        await _end(beside)
    society.starts_at = clock.now()
    return Played(ending=ending, live=live)


def offline(seed: int = 1, latency_seconds: float = 0.0) -> Callable[[Clock], Llm]:
    """Return what makes the offline LLM, for `drive`'s `llm`."""
    return lambda clock: OfflineLlm(seed, clock, latency_seconds)


async def _pulse(live: Live, beat_seconds: float) -> None:
    while True:
        await live.clock.sleep(beat_seconds)
        live.beat()


async def _end(tasks: Sequence[asyncio.Future[None]]) -> None:
    """End what went on beside the run; what failed there fails the test."""
    for task in tasks:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
