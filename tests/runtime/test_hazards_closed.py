"""Hazards of a person's root whose only thread has closed: nobody else begins it a second time."""

from __future__ import annotations

from engine.core.effects import Close
from engine.core.records import Outcome
from engine.core.scheduler import Place, Scheduler
from engine.loop.watch import Watch
from tests.runtime.door import Door, open_door, reasons, reply
from tests.runtime.society import in_virtual_time, make_society


async def person_asks(door: Door, text: str, root: int | None = None) -> int:
    """Let a person write, and return the `seq` of it."""
    door.society.people.write_message(channel=1, text=text, at=door.clock.now(), root=root)
    assert reasons(await door.take_mail()) == [""]
    return door.world.last_seq


async def closed_root(door: Door) -> int:
    """Return a person's root that agent 1 alone answered, until nobody went on."""
    root = await person_asks(door, "who can help me?")
    await door.seq(reply(1, root, 1))
    assert reasons(await door.tell(Close(root=root, cycle=1, outcome=Outcome.TIMEOUT))) == [""]
    return root


def unread(door: Door, agent: int) -> list[int]:
    return [root.seq for root in door.world.unread(agent, most=9)]


def test_root_whose_thread_closed_is_answered_by_nobody_else() -> None:
    async def body() -> None:
        async with open_door(make_society(2)) as door:
            root = await closed_root(door)
            assert unread(door, 2) == []
            assert reasons(await door.turn(2, reply(2, root, 2))) == ["not_entitled"]
            assert door.world.threads == {}
            assert [row.thread.cycle for row in door.tables.decisions.values()] == [1]
            assert await door.differing() == []

    in_virtual_time(body())


def test_root_whose_thread_opens_again_is_read_and_answered_by_a_second() -> None:
    async def body() -> None:
        async with open_door(make_society(2)) as door:
            root = await closed_root(door)
            assert unread(door, 2) == []
            await person_asks(door, "@Bot1 think again", root)
            assert unread(door, 2) == [root]
            assert reasons(await door.turn(2, reply(2, root, 3))) == [""]
            thread = door.world.threads[root]
            assert (thread.cycle, thread.pair) == (2, (1, 2))
            assert await door.differing() == []

    in_virtual_time(body())


def test_root_whose_thread_opens_again_is_news_to_who_may_read_it_now() -> None:
    async def body() -> None:
        async with open_door(make_society(2), daily_posts=0) as door:
            root = await closed_root(door)
            watch = Watch(door.world, door.rules, Scheduler())
            watch.everybody(door.clock.now())
            before = watch.scheduler.place(2)
            await person_asks(door, "@Bot1 think again", root)
            watch.concerned(door.concerns[-1], door.clock.now())
            assert (before, watch.scheduler.place(2)) == (Place.PARKED, Place.READY)
            assert await door.differing() == []

    in_virtual_time(body())


def test_agent_called_to_a_closed_root_answers_by_a_root_of_its_own() -> None:
    async def body() -> None:
        async with open_door(make_society(2)) as door:
            root = await closed_root(door)
            called = await person_asks(door, "@Bot2 and you?", root)
            kinds = [(one.message, str(one.kind)) for one in door.world.desk(2).invitations]
            assert kinds == [(called, "reference")]
            assert door.world.threads == {}
            assert await door.differing() == []

    in_virtual_time(body())
