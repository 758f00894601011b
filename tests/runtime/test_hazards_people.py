"""Hazards of people who write, review and call while agents talk."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from engine.core.effects import Close, Committed, Join, MoveKind, Post, Verdict
from engine.core.participation import debts
from engine.core.records import InvitationKind, InvitationState, Outcome, Status
from engine.store.memory import AlreadyReviewed
from tests.runtime.door import Door, open_door, post, reasons, reply
from tests.runtime.society import in_virtual_time, make_society


async def ask(door: Door, text: str, root: int | None = None, channel: int = 1) -> int:
    """Let a person write and take it in; return the `seq` it got."""
    door.society.people.write_message(channel=channel, root=root, text=text, at=door.clock.now())
    (result,) = (await door.take_mail()).results
    assert isinstance(result, Committed)
    assert result.seq is not None
    return result.seq


async def talk(door: Door) -> int:
    """Open a thread between 1 and 2; the word is with 1."""
    root = await door.seq(post(1))
    await door.seq(reply(2, root, 1))
    return root


async def propose(door: Door, root: int, ordinal: int = 2) -> None:
    """Let 1 propose and 2 agree."""
    await door.seq(reply(1, root, ordinal, "so be it", MoveKind.PROPOSE))
    await door.seq(reply(2, root, ordinal + 1, "agreed", MoveKind.ACCEPT))


def invitations(door: Door, agent: int) -> list[tuple[int, InvitationKind]]:
    return [(one.message, one.kind) for one in door.world.desk(agent).invitations]


def states(door: Door, agent: int) -> list[tuple[InvitationState, str]]:
    rows = door.tables.invitations.items()
    return [(row.state, row.reason) for (who, _), row in sorted(rows) if who == agent]


# --- in an open thread -----------------------------------------------------------------------------


def test_reply_is_not_refused_for_a_person_who_spoke_meanwhile() -> None:
    async def body() -> None:
        async with open_door(make_society(2)) as door:
            root = await talk(door)
            await ask(door, "and the price?", root)
            assert reasons(await door.turn(1, reply(1, root, 2))) == [""]
            # It was written before the person's word, which called nobody: now it spoke last.
            assert debts(door.world, 1) == ()
            assert [thread.root for thread in debts(door.world, 2)] == [root]
            assert door.world.roots[root].n_messages == 4

    in_virtual_time(body())


def test_word_by_name_is_owed_an_answer_that_has_read_it() -> None:
    async def body() -> None:
        async with open_door(make_society(2)) as door:
            root = await talk(door)
            await ask(door, "@Bot1 and the price?", root)
            assert reasons(await door.turn(1, reply(1, root, 2))) == [""]
            assert [thread.root for thread in debts(door.world, 1)] == [root]
            assert reasons(await door.turn(1, reply(1, root, 4, "ten coins"))) == [""]
            assert debts(door.world, 1) == ()

    in_virtual_time(body())


def test_reply_is_stale_when_the_other_agent_spoke_meanwhile() -> None:
    async def body() -> None:
        async with open_door(make_society(2)) as door:
            root = await talk(door)
            await ask(door, "@Bot2 and the price?", root)
            await door.seq(reply(2, root, 3, "ten coins"))
            assert reasons(await door.turn(1, reply(1, root, 2))) == ["stale"]
            assert reasons(await door.turn(1, reply(1, root, 4))) == [""]

    in_virtual_time(body())


@pytest.mark.parametrize(
    ("text", "called"),
    [("who pays?", [1]), ("@Bot2 who pays?", [1, 2]), ("@Bot1 who pays?", [1])],
    ids=["nobody", "the-other", "the-one-in-turn"],
)
def test_person_in_a_thread_calls_the_right_side(text: str, called: list[int]) -> None:
    async def body() -> None:
        async with open_door(make_society(3)) as door:
            root = await talk(door)
            await ask(door, text, root)
            assert [agent for agent in (1, 2, 3) if debts(door.world, agent)] == called

    in_virtual_time(body())


def test_third_agent_that_a_person_calls_answers_by_a_root_of_its_own() -> None:
    async def body() -> None:
        async with open_door(make_society(3), daily_posts=1) as door:
            root = await talk(door)
            await door.seq(post(3))  # its only post of the day
            call = await ask(door, "@Bot3 what do you say?", root)
            assert invitations(door, 3) == [(call, InvitationKind.REFERENCE)]
            assert not debts(door.world, 2)
            own = Post(agent=3, channel=1, text="I say hay", refers_to=call)
            seq = await door.seq(own)
            assert door.world.roots[seq].answered_by == ()
            assert states(door, 3) == [(InvitationState.ANSWERED, "")]
            assert door.world.state(3).posts_made == 1  # a person asked: no cap is used

    in_virtual_time(body())


def test_agent_that_may_not_deal_with_the_author_answers_a_call_by_its_own_root() -> None:
    async def body() -> None:
        society = make_society(3, cohorts={"east": (1, 2), "west": (3,)})
        async with open_door(society) as door:
            root = await door.seq(post(1))
            call = await ask(door, "@Bot3 and @Bot2, what do you say?", root)
            assert invitations(door, 3) == [(call, InvitationKind.REFERENCE)]
            assert invitations(door, 2) == [(call, InvitationKind.MENTION)]  # the control

    in_virtual_time(body())


# --- a person's own root -----------------------------------------------------------------------------


def test_second_answer_to_a_person_needs_leave_towards_the_first() -> None:
    async def body() -> None:
        society = make_society(3, cohorts={"east": (1, 2), "west": (3,)})
        async with open_door(society) as door:
            asked = await ask(door, "who keeps bees?")
            await door.seq(reply(1, asked, 1))
            assert reasons(await door.turn(3, reply(3, asked, 2))) == ["not_permitted"]
            assert reasons(await door.turn(2, reply(2, asked, 2))) == [""]
            assert door.world.threads[asked].pair == (1, 2)

    in_virtual_time(body())


def test_third_answer_to_a_person_is_not_entitled() -> None:
    async def body() -> None:
        async with open_door(make_society(3)) as door:
            asked = await ask(door, "who keeps bees?")
            answers = await asyncio.gather(*(door.turn(n, reply(n, asked, 1)) for n in (1, 2, 3)))
            assert [reasons(answer) for answer in answers] == [[""], [""], ["not_entitled"]]

    in_virtual_time(body())


def test_root_that_names_an_agent_is_answered_by_it_alone() -> None:
    async def body() -> None:
        async with open_door(make_society(3)) as door:
            asked = await ask(door, "@Bot2 (and @Bot3): who keeps bees?")
            assert invitations(door, 2) == [(asked, InvitationKind.MENTION)]
            assert invitations(door, 3) == []
            assert reasons(await door.turn(3, reply(3, asked, 1))) == ["not_entitled"]
            assert reasons(await door.turn(2, reply(2, asked, 1))) == [""]
            assert door.world.unread(3, most=9) == []

    in_virtual_time(body())


def test_messages_of_people_enter_in_the_order_they_were_written() -> None:
    async def body() -> None:
        async with open_door(make_society(1)) as door:
            for number in range(5):
                door.society.people.write_message(
                    channel=1, text=f"number {number}", at=door.clock.now()
                )
            await asyncio.gather(door.take_mail(), door.turn(1, post(1)))
            texts = [row.message.text for _, row in sorted(door.tables.messages.items())]
            assert [text for text in texts if "number" in text] == [f"number {n}" for n in range(5)]

    in_virtual_time(body())


# --- closed threads and reviews ----------------------------------------------------------------------


def test_closed_thread_opens_again_for_a_person_who_names_a_side() -> None:
    async def body() -> None:
        async with open_door(make_society(2)) as door:
            root = await talk(door)
            await door.seq(reply(1, root, 2, "no", MoveKind.DECLINE))
            await ask(door, "a pity", root)
            assert door.world.threads == {}
            await ask(door, "@Bot1 think again", root)
            thread = door.world.threads[root]
            assert (thread.cycle, thread.n_agent_messages) == (2, 0)
            assert [agent for agent in (1, 2) if debts(door.world, agent)] == [1]
            assert await door.differing() == []

    in_virtual_time(body())


def test_closed_thread_stays_closed_while_the_pair_talks_elsewhere() -> None:
    async def body() -> None:
        async with open_door(make_society(2)) as door:
            root = await talk(door)
            await door.seq(reply(1, root, 2, "no", MoveKind.DECLINE))
            fresh = await door.seq(post(1, "something else"))
            await door.seq(reply(2, fresh, 1))
            await ask(door, "@Bot1 think again", root)
            assert list(door.world.threads) == [fresh]
            assert states(door, 1) == [(InvitationState.REFUSED, "pair_taken")]

    in_virtual_time(body())


def test_message_read_before_its_thread_closed_is_read_again() -> None:
    async def body() -> None:
        async with open_door(make_society(2)) as door:
            root = await talk(door)
            door.society.people.write_message(
                channel=1, root=root, text="@Bot1 wait", at=door.clock.now()
            )
            mail = await door.store.read_mail()
            await door.seq(reply(1, root, 2, "no", MoveKind.DECLINE))
            assert reasons(await door.tell(*mail)) == ["read_again"]
            assert reasons(await door.take_mail()) == [""]
            assert door.world.threads[root].cycle == 2
            assert door.tables.waiting == {}

    in_virtual_time(body())


def test_message_that_falls_into_the_group_of_the_close_opens_the_thread_again() -> None:
    async def body() -> None:
        async with open_door(make_society(2)) as door:
            root = await talk(door)
            door.society.people.write_message(
                channel=1, root=root, text="@Bot2 wait", at=door.clock.now()
            )
            mail = await door.store.read_mail()
            close = Close(root=root, cycle=1, outcome=Outcome.TIMEOUT)
            answers = await asyncio.gather(door.tell(close), door.tell(*mail))
            assert [reasons(answer) for answer in answers] == [[""], [""]]
            assert door.world.threads[root].cycle == 2
            assert await door.differing() == []

    in_virtual_time(body())


@pytest.mark.parametrize("verdict", [Verdict.ACCEPTED, Verdict.DECLINED])
def test_review_frees_both_sides_to_post(verdict: Verdict) -> None:
    async def body() -> None:
        async with open_door(make_society(2), unreviewed_proposals=1) as door:
            root = await talk(door)
            await propose(door, root)
            assert [door.world.desk(agent).unreviewed for agent in (1, 2)] == [((root, 1),)] * 2
            at = door.clock.now()
            door.society.people.review(root=root, cycle=1, verdict=verdict, at=at)
            await door.take_mail()
            assert [door.world.desk(agent).unreviewed for agent in (1, 2)] == [(), ()]
            assert list(door.concerns[-1].agents) == [2, 1]
            assert door.world.threads == {}
            with pytest.raises(AlreadyReviewed):
                door.society.people.review(root=root, cycle=1, verdict=verdict, at=at)

    in_virtual_time(body())


def test_revision_begins_a_cycle_with_the_reviewers_guidance() -> None:
    async def body() -> None:
        async with open_door(make_society(2)) as door:
            root = await talk(door)
            await propose(door, root)
            door.society.people.review(
                root=root, cycle=1, verdict=Verdict.REVISED, note="smaller", at=door.clock.now()
            )
            assert reasons(await door.take_mail()) == [""]
            thread = door.world.threads[root]
            assert (thread.cycle, thread.guidance) == (2, "smaller")
            assert [agent for agent in (1, 2) if debts(door.world, agent)] == [1]  # who proposed
            await door.seq(reply(1, root, 4, "a smaller one"))
            await door.seq(reply(2, root, 5))
            await propose(door, root, 6)
            assert sorted(door.tables.proposals) == [(root, 1), (root, 2)]
            assert await door.differing() == []

    in_virtual_time(body())


def test_revision_is_refused_while_the_pair_talks_elsewhere() -> None:
    async def body() -> None:
        async with open_door(make_society(2)) as door:
            root = await talk(door)
            await propose(door, root)
            fresh = await door.seq(post(2, "something else"))
            await door.seq(reply(1, fresh, 1))
            door.society.people.review(
                root=root, cycle=1, verdict=Verdict.REVISED, at=door.clock.now()
            )
            assert reasons(await door.take_mail()) == ["pair_taken"]
            assert door.tables.proposals[root, 1].refused == "pair_taken"
            assert (list(door.world.threads), door.tables.inbox) == ([fresh], {})
            assert door.world.desk(1).unreviewed == ()

    in_virtual_time(body())


@pytest.mark.parametrize(
    ("status", "threshold", "reason"),
    [(Status.RETIRED, 3, "partner_gone"), (Status.ACTIVE, 1, "partner_full")],
)
def test_revision_is_refused_without_both_sides_and_their_seats(
    status: Status, threshold: int, reason: str
) -> None:
    async def body() -> None:
        society = make_society(3)
        async with open_door(society, active_thread_threshold=threshold) as door:
            root = await talk(door)
            await propose(door, root)
            fresh = await door.seq(post(2, "something else"))
            await door.seq(reply(3, fresh, 1))
            society.save_agent(replace(society.tables.agents[2], status=status))
            society.people.review(root=root, cycle=1, verdict=Verdict.REVISED, at=door.clock.now())
            assert reasons(await door.take_mail())[-1] == reason

    in_virtual_time(body())


def test_revision_of_an_older_cycle_opens_nothing() -> None:
    async def body() -> None:
        async with open_door(make_society(2)) as door:
            root = await talk(door)
            await propose(door, root)
            await ask(door, "@Bot1 one thing more", root)
            door.society.people.review(
                root=root, cycle=1, verdict=Verdict.REVISED, at=door.clock.now()
            )
            assert reasons(await door.take_mail()) == [""]
            assert door.world.threads[root].cycle == 2
            assert door.world.threads[root].guidance == ""

    in_virtual_time(body())


# --- agents that come and go -------------------------------------------------------------------------


def test_agent_that_joins_starts_at_the_newest_post_behind_those_who_wait() -> None:
    async def body() -> None:
        society = make_society(2)
        async with open_door(society) as door:
            await door.seq(post(1))
            door.committer._scheduler.n_selections = 7
            society.save_agent(replace(society.tables.agents[1], id=3, slug="a3", bot_name="Bot3"))
            await door.take_mail()
            await door.tell(Join(agent=3, channels=(1,)))
            assert door.world.unread(3, most=9) == []
            assert (door.world.state(3).cursor, door.world.state(3).last_selected) == (1, 7)
            seq = await door.seq(post(2))
            assert [root.seq for root in door.world.unread(3, most=9)] == [seq]

    in_virtual_time(body())


def test_agent_that_comes_back_does_not_catch_up() -> None:
    async def body() -> None:
        society = make_society(2)
        async with open_door(society) as door:
            spec = society.tables.agents[2]
            society.save_agent(replace(spec, status=Status.PAUSED))
            await door.take_mail()
            await door.seq(post(1, "said while it was away"))
            society.save_agent(spec)
            await door.take_mail()
            assert door.world.unread(2, most=9) == []
            seq = await door.seq(post(1, "said since"))
            assert [root.seq for root in door.world.unread(2, most=9)] == [seq]

    in_virtual_time(body())


def test_two_agents_may_swap_their_names() -> None:
    async def body() -> None:
        society = make_society(2)
        async with open_door(society) as door:
            one, other = society.tables.agents[1], society.tables.agents[2]
            society.save_agent(replace(one, bot_name="Spare"))
            society.save_agent(replace(other, bot_name="Bot1"))
            society.save_agent(replace(one, bot_name="Bot2"))
            await door.take_mail()
            assert door.world.handles == {"bot1": 2, "bot2": 1}

    in_virtual_time(body())
