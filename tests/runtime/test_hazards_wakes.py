"""Hazards of agents that wait for what never comes: whoever is parked hears of what changes that."""

from __future__ import annotations

from engine.core.effects import TakeNotice
from engine.core.records import Status
from engine.core.scheduler import Place, Scheduler
from engine.core.standing import Work
from engine.loop.watch import Watch
from tests.runtime.door import Door, open_door, reasons, reply
from tests.runtime.society import in_virtual_time, make_agent, make_society


async def written(door: Door, text: str, root: int | None = None) -> int:
    """Let a person write, and return the `seq` of it."""
    door.society.people.write_message(channel=1, text=text, at=door.clock.now(), root=root)
    assert reasons(await door.take_mail()) == [""]
    return door.world.last_seq


def test_invited_agent_hears_when_others_have_taken_its_place() -> None:
    """It waits for a seat of its own; then it has none to wait for, and settles the invitation."""

    async def body() -> None:
        async with open_door(make_society(3), active_thread_threshold=1, daily_posts=0) as door:
            busy = await written(door, "who can help me?")
            await door.seq(reply(1, busy, 1))
            root = await written(door, "and with this?")
            called = await written(door, "@Bot1 perhaps?", root)
            await door.turn(1, TakeNotice(agent=1, cursor=called))
            watch = Watch(door.world, door.rules, Scheduler())
            watch.everybody(door.clock.now())
            places = []
            for agent, ordinal in ((2, 2), (3, 3)):
                places.append((str(watch.scheduler.place(1)), watch.whys[1]))
                await door.seq(reply(agent, root, ordinal))
                watch.concerned(door.concerns[-1], door.clock.now())
            assert places == [("parked", "seats_full"), ("parked", "seats_full")]
            assert watch.standing(1, door.clock.now()).work == (Work.INVITATION,)
            assert watch.scheduler.place(1) is Place.READY

    in_virtual_time(body())


def test_agent_whose_banked_post_waits_for_one_that_left_hears_that_it_is_back() -> None:
    """Of a person's root the second answer deals with who gave the first."""

    async def body() -> None:
        society = make_society(2)
        async with open_door(society, daily_posts=0) as door:
            root = await written(door, "who can help me?")
            await door.seq(reply(1, root, 1))
            await door.turn(2, TakeNotice(agent=2, cursor=door.world.last_seq, keep=(root,)))
            watch = Watch(door.world, door.rules, Scheduler())
            places = []
            for status in (Status.RETIRED, Status.ACTIVE):
                society.people.save_agent(make_agent(1, status=status))
                await door.take_mail()
                watch.concerned(door.concerns[-1], door.clock.now())
                if status is Status.RETIRED:
                    watch.everybody(door.clock.now())
                places.append(watch.scheduler.place(2))
            assert places == [Place.PARKED, Place.READY]

    in_virtual_time(body())
