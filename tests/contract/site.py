"""One simulation behind either store: the same four agents and two channels, the same hands."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, TypeVar

from cohorts.models import Agent, AgentVersion
from cohorts.operations import save_agent
from engine import inbox
from engine.core.records import Status, Visibility
from engine.models import (
    Channel,
    ChannelMember,
    LlmCall,
    Message,
    Occasion,
    Proposal,
    Run,
    RunControl,
    RunLease,
    RunSchedule,
    Simulation,
    Turn,
)
from engine.money import set_day_cap
from engine.ports.store import Wanted
from engine.store.database import (
    DjangoStore,
    day_money,
    read_lease,
    settle_the_dead,
    take_lease,
)
from engine.store.memory import MemoryStore, People, Tables, booking
from tests.contract import groups

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from datetime import date

    from engine.core.effects import Verdict
    from engine.core.group import Group
    from engine.core.money import DayMoney
    from engine.ports.store import Store, Wish

Result = TypeVar("Result")


def run(work: Coroutine[object, object, Result]) -> Result:
    return asyncio.run(work)


def commit(store: Store, *made: Group) -> None:
    """Commit groups one after the other."""

    async def all_of_them() -> None:
        for group in made:
            await store.commit(group)

    asyncio.run(all_of_them())


def memory_text(store: Store, agent: int, segment: int | None) -> str:
    """Return the newest text of a memory segment."""
    return run(store.read(Wanted(agent=agent, memories=(segment,)))).memories[segment]


class Site(Protocol):
    """What the tests do to a simulation, whatever keeps it."""

    def open_store(self) -> Store:
        """Take the lease and return its driver's store."""
        ...

    def write_message(self, *, channel: int, text: str, root: int | None = None) -> int: ...
    def review(self, *, root: int, cycle: int, verdict: Verdict, note: str = "") -> None: ...
    def refused(self, root: int, cycle: int) -> str: ...
    def edit_memory(self, *, agent: int, channel: int | None, text: str) -> None: ...
    def pause_agent(self, agent: int) -> None: ...
    def rename_topic(self, channel: int, topic: str) -> None: ...
    def move_topology(self) -> None: ...
    def wish(self, wish: Wish, *, max_calls: int | None = None) -> None: ...
    def set_day_cap(self, max_nano_usd: int | None) -> None: ...
    def set_max_in_flight(self, n_calls: int) -> None:
        """Bound the calls on their way, for stores that are opened from now on."""

    def raise_money(self, max_nano_usd: int) -> None: ...
    def belong_to_a_schedule(self, month_nano_usd: int | None) -> None: ...
    def take_over(self) -> None:
        """Settle what died in flight, as whoever has fenced its driver does."""

    def day(self, day: date) -> DayMoney: ...
    def calls(self) -> dict[tuple[int, int], tuple[str, int, int | None]]:
        """Return state, estimate and cost of each call but those of turn 99, by turn and number."""
        ...

    def turns(self) -> set[int]: ...


class MemorySite:
    """The tables of a simulation."""

    def __init__(self) -> None:
        self.tables = Tables(
            agents={number: groups.agent(number) for number in groups.AGENTS},
            channels={
                1: groups.channel(1),
                2: groups.channel(2, visibility=Visibility.PRIVATE),
            },
            gate=groups.topology(),
        )
        self.people = People(self.tables)

    def open_store(self) -> Store:
        return MemoryStore(self.tables)

    def write_message(self, *, channel: int, text: str, root: int | None = None) -> int:
        return self.people.write_message(channel=channel, text=text, at=groups.START, root=root)

    def review(self, *, root: int, cycle: int, verdict: Verdict, note: str = "") -> None:
        self.people.review(root=root, cycle=cycle, verdict=verdict, at=groups.START, note=note)

    def refused(self, root: int, cycle: int) -> str:
        return self.tables.proposals[root, cycle].refused

    def edit_memory(self, *, agent: int, channel: int | None, text: str) -> None:
        self.people.edit_memory(agent=agent, channel=channel, text=text)

    def pause_agent(self, agent: int) -> None:
        self.people.save_agent(replace(self.tables.agents[agent], status=Status.PAUSED))

    def rename_topic(self, channel: int, topic: str) -> None:
        self.people.save_channel(replace(self.tables.channels[channel], topic=topic))

    def move_topology(self) -> None:
        self.people.set_topology(groups.topology(version=self.tables.gate.version + 1))

    def wish(self, wish: Wish, *, max_calls: int | None = None) -> None:
        self.tables.wish = wish
        self.tables.max_calls = max_calls

    def set_day_cap(self, max_nano_usd: int | None) -> None:
        self.tables.purses.day_cap = max_nano_usd

    def set_max_in_flight(self, n_calls: int) -> None:
        self.tables.purses.max_in_flight = n_calls

    def raise_money(self, max_nano_usd: int) -> None:
        self.tables.max_nano_usd = max_nano_usd

    def belong_to_a_schedule(self, month_nano_usd: int | None) -> None:
        self.tables.schedule = 7
        if month_nano_usd is not None:
            self.tables.purses.month_caps[7] = month_nano_usd

    def take_over(self) -> None:
        booking.settle_the_dead(self.tables)

    def day(self, day: date) -> DayMoney:
        return self.tables.purses.day_money(day)

    def calls(self) -> dict[tuple[int, int], tuple[str, int, int | None]]:
        reserved = self.tables.reserved
        return {
            key: (
                "reserved" if key in reserved else "settled",
                call.reserved_nano_usd,
                call.cost_nano_usd,
            )
            for key, call in self.tables.calls.items()
            if call.turn != 99
        }

    def turns(self) -> set[int]:
        return set(self.tables.turns)


class DjangoSite:
    """The rows of a simulation; `close` ends the threads of its stores."""

    def __init__(self) -> None:
        self.simulation = Simulation.objects.create(pk=1, name="main")
        for number in groups.AGENTS:
            _save_agent(number)
        for number, visibility in ((1, Visibility.PUBLIC), (2, Visibility.PRIVATE)):
            Channel.objects.create(
                pk=number,
                simulation=self.simulation,
                name=f"room-{number}",
                topic="Crystals",
                visibility=visibility,
            )
        for number in (1, 2):
            ChannelMember.objects.create(channel_id=2, agent_id=number)
        self.run = Run.objects.create(simulation=self.simulation, status=Run.Status.RUNNING)
        RunControl.objects.create(run=self.run)
        self.simulation.inbox.all().delete()
        self.stores: list[DjangoStore] = []
        self.max_in_flight: int | None = None

    def open_store(self, *, taken_at: float | None = None) -> DjangoStore:
        lease = read_lease(self.simulation.pk)
        token = take_lease(
            self.simulation.pk, self.run.pk, known_token=lease.token, owner="a test", seconds=30
        )
        assert token is not None
        store = DjangoStore(
            simulation_id=self.simulation.pk,
            run_id=self.run.pk,
            token=token,
            policy="open",
            taken_at=taken_at,
            max_calls_in_flight=self.max_in_flight,
        )
        self.stores.append(store)
        return store

    def close(self) -> None:
        for store in self.stores:
            store.close()

    def write_message(self, *, channel: int, text: str, root: int | None = None) -> int:
        message = inbox.write_message(
            channel=Channel.objects.get(pk=channel),
            person="Ada",
            text=text,
            root=None if root is None else Message.objects.get(seq=root),
        )
        Message.objects.filter(pk=message.pk).update(written_at=groups.START)
        return message.pk

    def review(self, *, root: int, cycle: int, verdict: Verdict, note: str = "") -> None:
        proposal = Proposal.objects.get(thread__root_seq=root, cycle=cycle)
        inbox.review_proposal(
            proposal, version=proposal.version, state=verdict, person="Ada", note=note
        )

    def refused(self, root: int, cycle: int) -> str:
        return Proposal.objects.get(thread__root_seq=root, cycle=cycle).refused

    def edit_memory(self, *, agent: int, channel: int | None, text: str) -> None:
        inbox.edit_memory(
            simulation=self.simulation,
            agent=Agent.objects.get(pk=agent),
            channel=None if channel is None else Channel.objects.get(pk=channel),
            version=self.simulation.memories.filter(agent=agent, channel=channel).count(),
            text=text,
            person="Ada",
        )

    def pause_agent(self, agent: int) -> None:
        row = Agent.objects.get(pk=agent)
        row.status = Agent.Status.PAUSED
        save_agent(row, who="Ada")

    def rename_topic(self, channel: int, topic: str) -> None:
        row = Channel.objects.get(pk=channel)
        row.topic = topic
        row.save()

    def move_topology(self) -> None:
        ChannelMember.objects.create(channel_id=2, agent_id=3)

    def wish(self, wish: Wish, *, max_calls: int | None = None) -> None:
        RunControl.objects.filter(run=self.run).update(wish=wish, max_calls=max_calls)

    def set_max_in_flight(self, n_calls: int) -> None:
        self.max_in_flight = n_calls

    def set_day_cap(self, max_nano_usd: int | None) -> None:
        set_day_cap(max_nano_usd, who="Ada")

    def raise_money(self, max_nano_usd: int) -> None:
        RunControl.objects.filter(run=self.run).update(max_nano_usd=max_nano_usd)

    def belong_to_a_schedule(self, month_nano_usd: int | None) -> None:
        schedule = RunSchedule.objects.create(
            name="nights",
            simulation=self.simulation,
            time_zone="UTC",
            first_date=groups.START.date(),
            month_nano_usd=month_nano_usd,
            settled_until=groups.START,
        )
        Occasion.objects.create(
            schedule=schedule,
            intended_at=groups.START,
            decided_at=groups.START,
            outcome=Occasion.Outcome.RUN,
            run=self.run,
        )

    def take_over(self) -> None:
        settle_the_dead(self.run.pk)

    def day(self, day: date) -> DayMoney:
        return day_money(day)

    def calls(self) -> dict[tuple[int, int], tuple[str, int, int | None]]:
        columns = ("turn", "number", "state", "reserved_nano_usd", "cost_nano_usd")
        return {
            (turn, number): (state, reserved, cost)
            for turn, number, state, reserved, cost in LlmCall.objects.exclude(turn=99).values_list(
                *columns
            )
        }

    def turns(self) -> set[int]:
        return set(Turn.objects.values_list("number", flat=True))

    def commit_no(self) -> int:
        return RunLease.objects.get(simulation=self.simulation).commit_no


def _save_agent(number: int) -> None:
    spec = groups.agent(number)
    texts = {
        "bot_name": spec.bot_name,
        "represents": spec.represents,
        "public_profile": spec.public_profile,
        "private_instructions": spec.private_instructions,
        "interests": spec.interests,
    }
    agent = Agent.objects.create(pk=number, slug=spec.slug, status=spec.status, **texts)
    AgentVersion.objects.create(agent=agent, number=1, saved_by="Ada", **texts)
