"""Hazards of the commit: a row the database refuses, a turn that is cancelled, a lease that is gone,
a topology that moves between the check and the commit."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field, replace

import pytest

from engine.core.effects import (
    Answer,
    CallRecord,
    Close,
    Effect,
    HandIn,
    MoveKind,
    Post,
    PostChance,
    Remember,
    Reply,
    TurnOutcome,
)
from engine.core.errors import Fenced, StoreError
from engine.core.group import Group
from engine.core.records import Outcome, Status
from engine.core.world import World
from engine.store.memory import MemoryStore
from tests.runtime.door import Door, open_door, reasons
from tests.runtime.society import START, Society, in_virtual_time, make_society

POISON = ("a text with \x00 in it", "a text with \ud800 in it")


def post(agent: int, text: str = "a post about goats", *, tag: int | None = None) -> Post:
    return Post(agent=agent, channel=1, text=text, tag=tag)


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
            second = asyncio.create_task(door.turn(2, post(2, "withdrawn")))
            gateway.waits.clear()
            await gateway.waits.wait()
            third = asyncio.create_task(door.turn(2, post(2, "late")))
            await asyncio.sleep(0)
            third.cancel()
            with pytest.raises(asyncio.CancelledError):
                await third
            gateway.open.set()
            await asyncio.gather(first, second)
            assert texts(society) == ["taken", "withdrawn"]
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


# --- the topology --------------------------------------------------------------------------------


@dataclass(slots=True)
class Mover:
    """Moves the topology in front of a commit that starts something, `times` times."""

    society: Society
    times: int
    cohorts: dict[str, tuple[int, ...]] | None = None
    n_moved: int = 0

    async def __call__(self, group: Group) -> None:
        if group.topology_version is not None and self.n_moved < self.times:
            self.n_moved += 1
            self.society.change_topology(cohorts=self.cohorts)


def in_cohorts() -> Society:
    return make_society(4, cohorts={"east": (1, 2, 4), "west": (3, 4)}, policy="isolated")


def test_opening_that_is_no_longer_permitted_at_its_commit_is_refused() -> None:
    async def body() -> None:
        society = in_cohorts()
        mover = Mover(society, 1, {"east": (1, 4), "west": (2, 3, 4)})
        async with open_door(society, before_commit=mover) as door:
            roots = [await door.seq(post(agent)) for agent in (1, 4)]
            opening = [Reply(agent=2, root=root, text="yes", answers_ordinal=1) for root in roots]
            answer = await door.turn(2, *opening)
            # 1 and 2 share nothing any more; 4 and 2 still do, and their thread is of the new version.
            assert reasons(answer) == ["not_permitted", ""]
            assert (door.world.gate.version, mover.n_moved) == (2, 1)
            assert [t.topology_version for t in door.world.threads.values()] == [2]
            assert sorted(door.tables.snapshots) == [2]
            assert await door.differing() == []

    in_virtual_time(body())


def test_openings_wait_for_a_topology_that_does_not_settle() -> None:
    async def body() -> None:
        society = in_cohorts()
        mover = Mover(society, 99)
        async with open_door(society, before_commit=mover) as door:
            root = await door.seq(post(1))
            effects = (
                Reply(agent=2, root=root, text="yes", answers_ordinal=1),
                post(2, "tagged @Bot4", tag=4),
                post(2, "an open root starts nothing"),
            )
            answer = await door.turn(2, *effects)
            assert reasons(answer) == ["topology_changing", "topology_changing", ""]
            assert mover.n_moved == 3
            assert (door.world.threads, door.world.desk(4).invitations) == ({}, ())
            # The control: once it is quiet the same answer is stored.
            mover.times = 0
            assert reasons(await door.turn(2, effects[0])) == [""]

    in_virtual_time(body())


def test_answer_in_an_open_thread_does_not_depend_on_the_topology() -> None:
    async def body() -> None:
        society = in_cohorts()
        async with open_door(society) as door:
            root = await door.seq(post(1))
            await door.seq(Reply(agent=2, root=root, text="yes", answers_ordinal=1))
            society.change_topology(cohorts={"west": (2, 3, 4)})  # not adopted yet
            answer = await door.turn(1, Reply(agent=1, root=root, text="well", answers_ordinal=2))
            assert reasons(answer) == [""]
            assert door.world.gate.version == 1

    in_virtual_time(body())


@pytest.mark.parametrize("status", [Status.PAUSED, Status.RETIRED])
def test_author_that_goes_out_before_its_commit_starts_nothing(status: Status) -> None:
    async def body() -> None:
        society = in_cohorts()
        out: list[int] = []

        async def send_out(group: Group) -> None:
            if group.topology_version is not None and not out:
                out.append(2)
                society.save_agent(replace(society.tables.agents[2], status=status))

        async with open_door(society, before_commit=send_out) as door:
            root, of_4 = await door.seq(post(1)), await door.seq(post(4))
            answers = await asyncio.gather(
                door.turn(2, Reply(agent=2, root=root, text="yes", answers_ordinal=1)),
                door.turn(1, Reply(agent=1, root=of_4, text="yes", answers_ordinal=1)),
            )
            assert out == [2]
            assert [reasons(answer) for answer in answers] == [["author_out"], [""]]
            assert door.world.agents[2].status is status
            assert door.tables.inbox == {}

    in_virtual_time(body())


def test_paused_author_may_finish_what_it_owes_and_a_retired_one_is_closed() -> None:
    async def body() -> None:
        society = make_society(3)
        async with open_door(society) as door:
            roots = [await door.seq(post(agent)) for agent in (1, 2)]
            for root in roots:
                await door.seq(Reply(agent=3, root=root, text="yes", answers_ordinal=1))
            for agent, status in ((1, Status.PAUSED), (2, Status.RETIRED)):
                society.save_agent(replace(society.tables.agents[agent], status=status))
            await door.take_mail()
            closed = door.tables.decisions[roots[1], 1]
            assert (closed.outcome, list(door.world.threads)) == ("lost", [roots[0]])
            owed = [
                Reply(agent=agent, root=root, text="well then", answers_ordinal=2)
                for agent, root in zip((1, 2), roots, strict=True)
            ]
            assert reasons(await door.turn(1, owed[0])) == [""]
            assert reasons(await door.turn(2, owed[1])) == ["author_out"]
            assert reasons(await door.turn(1, post(1, "something new"))) == ["author_out"]

    in_virtual_time(body())


def test_word_to_somebody_who_has_retired_closes_the_thread() -> None:
    async def body() -> None:
        society = make_society(2)
        async with open_door(society) as door:
            root = await door.seq(post(1))
            await door.seq(Reply(agent=2, root=root, text="yes", answers_ordinal=1))
            society.save_agent(replace(society.tables.agents[2], status=Status.RETIRED))
            await door.take_mail()
            assert list(door.world.threads) == [root]  # the word is with 1
            await door.seq(Reply(agent=1, root=root, text="so?", answers_ordinal=2))
            assert [row.outcome for row in door.tables.decisions.values()] == ["lost"]

    in_virtual_time(body())


# --- memory, and a fault in apply ------------------------------------------------------------------


async def closed_thread(door: Door) -> int:
    root = await door.seq(post(1))
    await door.seq(Reply(agent=2, root=root, text="yes", answers_ordinal=1))
    decline = Reply(agent=1, root=root, text="no", answers_ordinal=2, move=MoveKind.DECLINE)
    return await door.seq(decline)


def remember(upto_seq: int, *, n_talks: int = 1, base_version: int = 0) -> Remember:
    return Remember(
        agent=1,
        channel=None,
        text="we talked of goats",
        upto_seq=upto_seq,
        n_talks=n_talks,
        base_version=base_version,
    )


def test_memory_that_a_person_edited_meanwhile_is_not_overwritten() -> None:
    async def body() -> None:
        async with open_door(make_society(2)) as door:
            upto_seq = await closed_thread(door)
            door.society.people.edit_memory(agent=1, channel=None, text="by hand")
            # The note is not read yet: the database alone knows, and the turn goes on.
            answer = await door.turn(1, remember(upto_seq), post(1, "new"))
            assert reasons(answer) == ["changed_meanwhile", ""]
            await door.take_mail()
            assert reasons(await door.turn(1, remember(upto_seq))) == ["changed_meanwhile"]
            assert await door.store.memory_text(1, None) == "by hand"
            assert reasons(await door.turn(1, remember(upto_seq, base_version=1))) == [""]
            assert door.world.memories[1, None].version == 2
            assert door.world.desk(1).untold == ()

    in_virtual_time(body())


def test_talk_that_closes_in_silence_while_another_is_remembered_is_told_too() -> None:
    async def body() -> None:
        async with open_door(make_society(3)) as door:
            elsewhere = await door.seq(post(3))
            await door.seq(Reply(agent=1, root=elsewhere, text="yes", answers_ordinal=1))
            upto_seq = await closed_thread(door)
            # Nobody speaks, so this close has the `seq` of the one before.
            await door.tell(Close(root=elsewhere, cycle=1, outcome=Outcome.TIMEOUT))
            assert reasons(await door.turn(1, remember(upto_seq))) == ["changed_meanwhile"]
            assert reasons(await door.turn(1, remember(upto_seq, n_talks=2))) == [""]
            assert await door.differing() == []

    in_virtual_time(body())


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
            assert await door.differing() == []
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
