"""Hazards of pairs and seats: two agents want the same thing at the same moment."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from engine.core.effects import Close, HandIn, MoveKind, Post, Reply, TurnOutcome, Verdict
from engine.core.records import Outcome
from tests.runtime.door import Door, open_door, post, reasons, reply
from tests.runtime.society import in_virtual_time, make_society


async def together(door: Door, *effects: Reply | Post) -> list[str]:
    """Hand in one effect each of several turns at once; they fall into one group."""
    before = door.tables.commit_no
    answers = await asyncio.gather(*(door.turn(one.agent, one) for one in effects))
    assert door.tables.commit_no == before + 1
    return [reason for answer in answers for reason in reasons(answer)]


def test_pair_that_opens_from_both_sides_at_once_gets_one_thread() -> None:
    async def body() -> None:
        async with open_door(make_society(3)) as door:
            of_1, of_2, of_3 = [await door.seq(post(agent)) for agent in (1, 2, 3)]
            assert await together(door, reply(1, of_2), reply(2, of_1)) == ["", "pair_taken"]
            assert list(door.tables.open_pairs) == [(1, 2)]
            # The control: another pair opens at the same time as that one is refused.
            again = await together(door, reply(2, of_1), reply(1, of_3))
            assert again == ["pair_taken", ""]

    in_virtual_time(body())


def test_pair_whose_other_side_posted_before_the_call_returned_gets_one_thread() -> None:
    """The guard is not an overlap of posts: the first thread stands long before the second try."""

    async def body() -> None:
        async with open_door(make_society(2)) as door:
            of_1, of_2 = await door.seq(post(1)), await door.seq(post(2))
            await door.seq(reply(1, of_2))
            await door.clock.sleep(600)
            assert reasons(await door.turn(2, reply(2, of_1))) == ["pair_taken"]
            assert len(door.world.threads) == 1

    in_virtual_time(body())


def test_open_root_is_taken_by_the_first_of_two_that_answer_at_once() -> None:
    async def body() -> None:
        async with open_door(make_society(4)) as door:
            one, other = await door.seq(post(1)), await door.seq(post(4))
            refused = await together(door, reply(2, one), reply(3, one))
            assert refused == ["", "not_entitled"]
            assert [row.message.author for row in door.tables.messages.values()] == [1, 4, 2]
            # The control: each on a root of its own, both stand.
            assert await together(door, reply(3, other)) == [""]

    in_virtual_time(body())


def test_last_seat_is_given_once_in_one_group() -> None:
    async def body() -> None:
        async with open_door(make_society(4), active_thread_threshold=2) as door:
            roots = [await door.seq(post(1, f"post number {number}")) for number in range(3)]
            openings = [reply(agent, root) for agent, root in zip((2, 3, 4), roots, strict=True)]
            # Author 1 has two seats: the first two openings take them, the third finds none.
            assert await together(door, *openings) == ["", "", "partner_full"]
            assert door.world.desk(1).threads == (1, 2)

    in_virtual_time(body())


def test_own_last_seat_is_given_once_in_one_group() -> None:
    async def body() -> None:
        async with open_door(make_society(3), active_thread_threshold=1) as door:
            roots = [await door.seq(post(agent)) for agent in (2, 3)]
            answer = await door.turn(1, *(reply(1, root) for root in roots))
            assert reasons(answer) == ["", "seats_full"]

    in_virtual_time(body())


def test_daily_posts_of_three_drafts_at_once_stop_at_the_cap() -> None:
    async def body() -> None:
        async with open_door(make_society(2), daily_posts=2) as door:
            await door.seq(post(1, "the first of the day"))
            drafts = [post(1, f"number {number}") for number in range(3)]
            assert reasons(await door.turn(1, *drafts)) == ["", "post_caps", "post_caps"]
            # The control: the cap is the author's, not the day's.
            assert await together(door, post(2)) == [""]

    in_virtual_time(body())


def test_daily_posts_count_anew_after_midnight() -> None:
    async def body() -> None:
        async with open_door(make_society(1), daily_posts=1, time_zone="Europe/Madrid") as door:
            await door.seq(post(1))
            assert reasons(await door.turn(1, post(1, "again"))) == ["post_caps"]
            await door.clock.sleep(14.9 * 3600)  # 22:54 UTC is 23:54 in Madrid
            assert reasons(await door.turn(1, post(1, "again"))) == ["post_caps"]
            await door.clock.sleep(0.2 * 3600)
            assert reasons(await door.turn(1, post(1, "again"))) == [""]

    in_virtual_time(body())


def test_own_limit_of_daily_posts_outranks_the_simulations() -> None:
    async def body() -> None:
        society = make_society(1)
        society.save_agent(replace(society.tables.agents[1], daily_posts=1))
        async with open_door(society) as door:
            answer = await door.turn(1, post(1, "one"), post(1, "two"))
            assert reasons(answer) == ["", "post_caps"]

    in_virtual_time(body())


def test_proposals_that_wait_block_new_roots_until_one_is_reviewed() -> None:
    async def body() -> None:
        async with open_door(make_society(2), unreviewed_proposals=1) as door:
            root = await door.seq(post(1))
            await door.seq(reply(2, root))
            await door.seq(reply(1, root, 2, move=MoveKind.PROPOSE))
            await door.seq(reply(2, root, 3, move=MoveKind.ACCEPT))
            assert reasons(await door.turn(1, post(1, "more"))) == ["post_caps"]
            assert reasons(await door.turn(2, post(2, "more"))) == ["post_caps"]
            door.society.people.review(
                root=root, cycle=1, verdict=Verdict.ACCEPTED, at=door.clock.now()
            )
            await door.take_mail()
            assert reasons(await door.turn(1, post(1, "more"))) == [""]

    in_virtual_time(body())


def test_claimed_seat_is_kept_from_others_until_it_is_given_back() -> None:
    async def body() -> None:
        async with open_door(make_society(3), active_thread_threshold=1) as door:
            root = await door.seq(post(1))
            door.rules.claims.take_seat(1, 0)  # a turn of the author asks its model meanwhile
            assert reasons(await door.turn(2, reply(2, root))) == ["partner_full"]
            assert door.rules.claims.release_all(1)
            assert reasons(await door.turn(2, reply(2, root))) == [""]

    in_virtual_time(body())


def test_refused_opening_wakes_who_waits_for_its_seat() -> None:
    async def body() -> None:
        async with open_door(make_society(3), active_thread_threshold=1) as door:
            root = await door.seq(post(1))
            await door.seq(reply(3, root))
            door.rules.claims.take_seat(2, root)
            answer = await door.turn(2, reply(2, root))
            assert reasons(answer) == ["not_entitled"]
            assert 2 in door.concerns[-1].seats
            assert door.rules.claims.is_empty

    in_virtual_time(body())


def test_two_closes_at_once_make_one_decision() -> None:
    async def body() -> None:
        async with open_door(make_society(2)) as door:
            root = await door.seq(post(1))
            await door.seq(reply(2, root))
            close = Close(root=root, cycle=1, outcome=Outcome.TIMEOUT)
            answers = await asyncio.gather(door.tell(close), door.tell(close))
            assert [reasons(answer) for answer in answers] == [[""], ["closed_already"]]
            assert list(door.tables.decisions) == [(root, 1)]
            assert door.world.pairs[1, 2].n_barren == 1

    in_virtual_time(body())


def test_thread_at_its_cap_is_closed_by_the_system_once() -> None:
    async def body() -> None:
        async with open_door(make_society(2), thread_messages=4) as door:
            root = await door.seq(post(1))
            for ordinal, agent in enumerate((2, 1), 1):
                await door.seq(reply(agent, root, ordinal))
            assert door.world.threads[root].n_agent_messages == 3
            # Both say the last word at once: it is said once, by the one who owes it.
            refused = await together(door, reply(2, root, 3), reply(1, root, 3))
            assert refused == ["", "not_entitled"]
            assert [row.outcome for row in door.tables.decisions.values()] == [Outcome.TIMEOUT]

    in_virtual_time(body())


def test_answer_that_is_written_twice_is_stored_once() -> None:
    async def body() -> None:
        async with open_door(make_society(2)) as door:
            root = await door.seq(post(1))
            await door.seq(reply(2, root))
            assert door.rules.claims.take_debt(1, root)
            assert not door.rules.claims.take_debt(1, root)
            assert await together(door, reply(1, root, 2), reply(1, root, 2)) == ["", "not_owed"]
            assert door.world.roots[root].n_messages == 3

    in_virtual_time(body())


def test_ordinals_of_a_group_are_consecutive_and_unique() -> None:
    async def body() -> None:
        async with open_door(make_society(4)) as door:
            roots = [await door.seq(post(agent)) for agent in (1, 2)]
            await together(door, reply(3, roots[0]), reply(4, roots[1]))
            await together(door, reply(1, roots[0], 2), reply(2, roots[1], 2))
            places = sorted(place for place in door.tables.places)
            assert places == [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3)]

    in_virtual_time(body())


def test_closed_thread_is_not_resurrected_by_a_late_answer() -> None:
    async def body() -> None:
        async with open_door(make_society(2)) as door:
            root = await door.seq(post(1))
            await door.seq(reply(2, root))
            close = Close(root=root, cycle=1, outcome=Outcome.TIMEOUT)
            answers = await asyncio.gather(door.tell(close), door.turn(1, reply(1, root, 2)))
            assert [reasons(answer) for answer in answers] == [[""], ["not_entitled"]]
            assert (door.world.threads, len(door.tables.decisions)) == ({}, 1)
            # The control: the pair may talk again, on a root newer than the close.
            fresh = await door.seq(post(1, "something else entirely"))
            assert reasons(await door.turn(2, reply(2, fresh))) == [""]

    in_virtual_time(body())


def test_hand_in_of_a_turn_ends_its_row_once() -> None:
    async def body() -> None:
        async with open_door(make_society(1)) as door:
            answer = await door.committer.hand_in(
                HandIn(effects=(post(1),), turn=door.record(1), ends=TurnOutcome.WORKED)
            )
            assert answer.turn is not None
            assert (answer.turn.outcome, answer.turn.n_committed) == (TurnOutcome.WORKED, 1)
            assert door.tables.turns[1] == answer.turn

    in_virtual_time(body())
