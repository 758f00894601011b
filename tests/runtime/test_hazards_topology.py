"""Hazards of a topology, or a status, that changes between the check of an effect and its commit."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

import pytest

from engine.core.effects import (
    Reply,
)
from engine.core.group import Group
from engine.core.records import Status
from tests.runtime.door import open_door, post, reasons
from tests.runtime.society import Society, in_virtual_time, make_society


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


def test_paused_author_calls_nobody_new_into_what_it_owes() -> None:
    async def body() -> None:
        society = make_society(3)
        async with open_door(society) as door:
            root = await door.seq(post(1))
            await door.seq(Reply(agent=2, root=root, text="yes", answers_ordinal=1))
            society.save_agent(replace(society.tables.agents[1], status=Status.PAUSED))
            await door.take_mail()
            calling = Reply(agent=1, root=root, text="ask @Bot3", answers_ordinal=2)
            assert reasons(await door.turn(1, calling)) == ["author_out"]
            assert door.world.desk(3).invitations == ()
            # The control: back again, it may.
            society.save_agent(replace(society.tables.agents[1], status=Status.ACTIVE))
            await door.take_mail()
            assert reasons(await door.turn(1, calling)) == [""]

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
