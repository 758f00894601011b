"""Hazards of the commit: a row the database refuses, a turn that is cancelled, a lease that is
gone, a fault while applying."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field

import pytest

from engine.core.effects import (
    Answer,
    CallRecord,
    Effect,
    HandIn,
    PostChance,
    Reply,
    TurnOutcome,
)
from engine.core.errors import Fenced, StoreError
from engine.core.group import Group
from engine.core.world import World
from engine.store.memory import MemoryStore
from tests.runtime.door import open_door, post, reasons
from tests.runtime.rebuilding import stale_caches
from tests.runtime.society import START, Society, in_virtual_time, make_society

POISON = ("a text with \x00 in it", "a text with \ud800 in it")


@dataclass(slots=True)
class Gateway:
    """A barrier in front of the commit: `closed` holds groups back, `waits` says that one is held."""

    open: asyncio.Event = field(default_factory=asyncio.Event)
    waits: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, _group: Group) -> None:
        self.waits.set()
        await self.open.wait()


def texts(society: Society) -> list[str]:
    return [row.message.text for row in society.tables.messages.values()]


# --- poison --------------------------------------------------------------------------------------


@pytest.mark.parametrize("poison", POISON, ids=["nul", "half-a-character"])
def test_poisoned_effect_falls_alone_of_a_group_of_seven(poison: str) -> None:
    async def body() -> None:
        society = make_society(7)
        async with open_door(society) as door:
            drafts = [f"post of agent {agent}" for agent in range(1, 8)]
            drafts[3] = poison
            turns = (
                door.turn(agent, post(agent, draft)) for agent, draft in enumerate(drafts, start=1)
            )
            answers = await asyncio.gather(*turns)
            expected = ["", "", "", "storage", "", "", ""]
            assert [reason for answer in answers for reason in reasons(answer)] == expected
            assert texts(society) == [draft for draft in drafts if draft != poison]
            assert dict(door.tables.turns[4].rejected) == {"storage": 1}
            assert (door.world.last_seq, await door.differing()) == (6, [])

    in_virtual_time(body())


def test_poisoned_effect_leaves_the_others_of_its_own_turn() -> None:
    async def body() -> None:
        async with open_door(make_society(2)) as door:
            other = await door.seq(post(2))
            effects: tuple[Effect, ...] = (
                Reply(agent=1, root=other, text="before", answers_ordinal=1),
                post(1, POISON[0]),
                PostChance(agent=1, used=True),
            )
            answer = await door.turn(1, *effects)
            assert reasons(answer) == ["", "storage", ""]
            assert answer.turn is not None
            assert (answer.turn.n_committed, answer.turn.outcome) == (2, TurnOutcome.WORKED)
            # The chance is used up as by a stored message: the reply before it was one.
            assert door.world.state(1).skip_streak == 0
            assert await door.differing() == []

    in_virtual_time(body())


def test_effects_after_a_poisoned_one_are_checked_without_it() -> None:
    """What the refused effect had taken in the ledger (a daily post) is free for the next."""

    async def body() -> None:
        async with open_door(make_society(1), daily_posts=1) as door:
            answer = await door.turn(1, post(1, POISON[0]), post(1, "clean"), post(1, "one more"))
            assert reasons(answer) == ["storage", "", "post_caps"]

    in_virtual_time(body())


def test_calls_of_a_refused_group_are_stored_once() -> None:
    async def body() -> None:
        async with open_door(make_society(1)) as door:
            record = door.record(1)
            call = CallRecord(
                turn=record.number,
                number=1,
                agent=1,
                agent_version=1,
                phase="post",
                thread=None,
                model="scripted",
                prompt_version="1",
                attempt=1,
                started_at=START,
                latency_seconds=0.0,
            )
            answer = await door.committer.hand_in(
                HandIn(
                    effects=(post(1, POISON[0]), post(1, "clean")),
                    turn=record,
                    calls=(call,),
                    refused=("repeats",),
                    ends=TurnOutcome.WORKED,
                )
            )
            assert answer.turn is not None
            assert answer.turn.n_llm_calls == 1
            assert dict(answer.turn.rejected) == {"repeats": 1, "storage": 1}
            assert list(door.tables.calls) == [(record.number, 1)]

    in_virtual_time(body())


# --- cancelled -----------------------------------------------------------------------------------


def test_cancelled_turn_whose_write_is_in_flight_stands() -> None:
    async def body() -> None:
        gateway = Gateway()
        gateway.open.set()
        society = make_society(2)
        async with open_door(society, before_commit=gateway) as door:
            gateway.open.clear()
            gateway.waits.clear()
            heard: list[Answer] = []
            hand_in = HandIn(effects=(post(1),), turn=door.record(1), ends=TurnOutcome.WORKED)
            turn = asyncio.create_task(door.committer.hand_in(hand_in, heard.append))
            await gateway.waits.wait()
            turn.cancel()
            await asyncio.sleep(0)
            assert not turn.done()  # it waits for what was taken
            gateway.open.set()
            with pytest.raises(asyncio.CancelledError):
                await turn
            assert reasons(heard[0]) == [""]
            assert texts(society) == ["a post about goats"]
            assert door.tables.turns[1].outcome is TurnOutcome.WORKED

    in_virtual_time(body())


def test_cancelled_turn_whose_write_was_not_taken_is_withdrawn() -> None:
    async def body() -> None:
        gateway = Gateway()
        gateway.open.set()
        society = make_society(2)
        async with open_door(society, before_commit=gateway) as door:
            gateway.open.clear()
            first = asyncio.create_task(door.turn(1, post(1, "taken")))
            second = asyncio.create_task(door.turn(2, post(2, "taken too")))
            gateway.waits.clear()
            await gateway.waits.wait()
            third = asyncio.create_task(door.turn(2, post(2, "withdrawn")))
            await asyncio.sleep(0)
            third.cancel()
            with pytest.raises(asyncio.CancelledError):
                await third
            gateway.open.set()
            await asyncio.gather(first, second)
            await door.tell()  # whatever was still to be taken is stored by now
            assert texts(society) == ["taken", "taken too"]
            assert sorted(door.tables.turns) == [1, 2]

    in_virtual_time(body())


def test_cancelled_committer_finishes_the_group_it_has_begun() -> None:
    async def body() -> None:
        gateway = Gateway()
        gateway.open.set()
        society = make_society(1)
        async with open_door(society, before_commit=gateway) as door:
            gateway.open.clear()
            gateway.waits.clear()
            writing = asyncio.create_task(door.turn(1, post(1)))
            await gateway.waits.wait()
            asyncio.get_running_loop().call_later(1, gateway.open.set)
        # The door is closed here: its task was cancelled while the group was held back.
        with suppress(asyncio.CancelledError):
            await asyncio.wait_for(writing, 5)
        assert texts(society) == ["a post about goats"]

    in_virtual_time(body())


# --- the fence -----------------------------------------------------------------------------------


def test_group_of_a_driver_that_lost_its_lease_is_not_stored() -> None:
    async def body() -> None:
        society = make_society(1)
        async with open_door(society) as door:
            await door.seq(post(1, "mine"))
            MemoryStore(society.tables)  # another driver takes the lease
            with pytest.raises(Fenced):
                await door.turn(1, post(1, "too late"))
            assert texts(society) == ["mine"]
            # Whoever comes later hears the same, and nothing hangs.
            with pytest.raises(Fenced):
                await door.turn(1, post(1, "later still"))

    in_virtual_time(body())


def test_those_who_wait_behind_a_fenced_group_hear_of_it() -> None:
    async def body() -> None:
        gateway = Gateway()
        gateway.open.set()
        society = make_society(3)
        async with open_door(society, before_commit=gateway) as door:
            gateway.open.clear()
            gateway.waits.clear()
            first = asyncio.create_task(door.turn(1, post(1)))
            await gateway.waits.wait()
            others = [asyncio.create_task(door.turn(agent, post(agent))) for agent in (2, 3)]
            await asyncio.sleep(0)
            MemoryStore(society.tables)
            gateway.open.set()
            results = await asyncio.gather(first, *others, return_exceptions=True)
            assert [type(result) for result in results] == [Fenced, Fenced, Fenced]
            assert texts(society) == []

    in_virtual_time(body())


# --- faults ---------------------------------------------------------------------------------------


def test_fault_while_applying_rebuilds_the_world(monkeypatch: pytest.MonkeyPatch) -> None:
    async def body() -> None:
        async with open_door(make_society(2)) as door:
            whole = World.publish

            def broken(world: World, root: object) -> None:
                monkeypatch.setattr(World, "publish", whole)
                raise ValueError("a fault of ours")

            monkeypatch.setattr(World, "publish", broken)
            answer = await door.turn(1, post(1))
            assert reasons(answer) == [""]
            assert door.concerns[-1].everybody
            assert (await door.differing(), stale_caches(door.world)) == ([], [])
            assert reasons(
                await door.turn(2, Reply(agent=2, root=1, text="y", answers_ordinal=1))
            ) == [""]

    in_virtual_time(body())


def test_failure_of_the_database_ends_the_door_for_all() -> None:
    async def body() -> None:
        async def fail(group: Group) -> None:
            if group.messages:
                raise StoreError("the disk is full")

        async with open_door(make_society(2), before_commit=fail) as door:
            for _ in range(2):
                with pytest.raises(StoreError, match="the disk is full"):
                    await door.turn(1, post(1))

    in_virtual_time(body())
