"""Hazards of an effect that the database refuses alone: it is not asked for, and paid, for ever."""

from __future__ import annotations

import asyncio
from contextlib import closing, suppress
from dataclasses import replace

from engine.backends.clock import VirtualLoop
from engine.core.effects import Post, TakeNotice
from engine.core.errors import RowRefused
from engine.core.group import Group
from engine.core.participation import debts
from engine.core.records import InvitationState, Outcome
from tests.runtime.door import Door, open_door, post, reasons, reply
from tests.runtime.society import in_virtual_time, make_society

POISON = "a text with \x00 in it"


async def person_asks(door: Door, text: str, root: int | None = None) -> int:
    """Let a person write, and return the `seq` of it."""
    door.society.people.write_message(channel=1, text=text, at=door.clock.now(), root=root)
    assert reasons(await door.take_mail()) == [""]
    return door.world.last_seq


def test_second_answer_in_a_row_that_cannot_be_stored_loses_the_thread() -> None:
    async def body() -> None:
        async with open_door(make_society(2)) as door:
            root = await door.seq(post(2))
            await door.seq(reply(1, root, 1))
            answer = await door.turn(2, reply(2, root, 2, POISON))
            assert reasons(answer) == ["storage"]
            assert answer.turn is not None
            assert dict(answer.turn.rejected) == {"storage": 1}
            thread = door.world.threads[root]
            assert [(side.agent, side.misses) for side in thread.sides] == [(1, 0), (2, 1)]
            assert debts(door.world, 2) == (thread,)
            assert reasons(await door.turn(2, reply(2, root, 2, POISON))) == ["storage"]
            assert door.world.threads == {}
            assert [row.outcome for row in door.tables.decisions.values()] == [Outcome.LOST]
            assert await door.differing() == []

    in_virtual_time(body())


def test_answer_to_a_kept_post_that_cannot_be_stored_settles_the_post() -> None:
    async def body() -> None:
        async with open_door(make_society(2)) as door:
            kept = await door.seq(post(2))
            called = await person_asks(door, "@Bot1 have you a goat?")
            await door.turn(1, TakeNotice(agent=1, keep=(kept,)))
            assert door.world.state(1).bank == (kept,)
            assert [one.message for one in door.world.desk(1).invitations] == [called]
            turns = (reply(1, kept, 1, POISON), reply(1, called, 1, POISON))
            assert reasons(await door.turn(1, *turns)) == ["storage", "storage"]
            assert door.world.state(1).bank == ()
            assert door.world.desk(1).invitations == ()
            settled = door.tables.invitations[1, called]
            assert (settled.state, settled.reason) == (InvitationState.REFUSED, "storage")
            assert await door.differing() == []

    in_virtual_time(body())


def test_root_that_answers_a_call_and_cannot_be_stored_settles_the_call() -> None:
    async def body() -> None:
        async with open_door(make_society(3)) as door:
            root = await door.seq(post(2))
            await door.seq(reply(1, root, 1))
            called = await person_asks(door, "@Bot3 what do you say?", root)
            other = await person_asks(door, "@Bot3 and you?", root)
            answer = await door.turn(3, Post(agent=3, channel=1, text=POISON, refers_to=called))
            assert reasons(answer) == ["storage"]
            assert [one.message for one in door.world.desk(3).invitations] == [other]
            assert door.tables.invitations[3, called].reason == "storage"
            assert await door.differing() == []

    in_virtual_time(body())


def test_refusal_of_what_follows_a_refused_effect_ends_nothing() -> None:
    async def no_misses(group: Group) -> None:
        if any(side.misses for thread in group.threads for side in thread.sides):
            raise RowRefused("no row may count a miss")

    async def body() -> None:
        async with open_door(make_society(2), before_commit=no_misses) as door:
            root = await door.seq(post(2))
            await door.seq(reply(1, root, 1))
            answer = await door.turn(2, reply(2, root, 2, POISON), post(2, "clean"))
            assert reasons(answer) == ["storage", ""]
            assert door.world.threads[root].sides[1].misses == 0
            assert await door.differing() == []

    in_virtual_time(body())


def test_new_root_that_cannot_be_stored_leaves_nothing_to_settle() -> None:
    async def body() -> None:
        async with open_door(make_society(1)) as door:
            before = door.world.state(1)
            assert reasons(await door.turn(1, post(1, POISON))) == ["storage"]
            after = door.world.state(1)
            assert after == replace(before, last_selected=1, ended_at=door.clock.now())

    in_virtual_time(body())


class Outside(BaseException):
    """What comes from outside of the code, as a test's deadline does."""


def test_whatever_ends_the_committer_is_told_to_who_waits() -> None:
    async def fail(group: Group) -> None:
        if group.messages:
            raise Outside

    async def body() -> BaseException | None:
        with suppress(Outside):  # the committer itself ends with it
            async with open_door(make_society(2), before_commit=fail) as door:
                waiting = asyncio.create_task(door.turn(1, post(1)))
                await asyncio.wait({waiting}, timeout=60)
        return waiting.exception() if waiting.done() else None

    # Closed as it is: who is told nothing cannot be cancelled either.
    with closing(VirtualLoop()) as loop:
        assert isinstance(loop.run_until_complete(body()), Outside)
