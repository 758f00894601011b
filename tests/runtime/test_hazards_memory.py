"""Hazards of memories: edited by people, and of talks that close while others are remembered."""

from __future__ import annotations

from engine.core.effects import (
    Close,
    MoveKind,
    Remember,
    Reply,
)
from engine.core.records import Outcome
from engine.ports.store import Wanted
from tests.runtime.door import Door, open_door, post, reasons
from tests.runtime.society import in_virtual_time, make_society


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
            texts = await door.store.read(Wanted(agent=1, memories=(None,)))
            assert texts.memories[None] == "by hand"
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
