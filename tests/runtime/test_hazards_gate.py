"""Hazards of the gate: memberships that change under what was read, kept, invited and begun."""

from __future__ import annotations

import pytest

from engine.core.effects import Adopt, Join, MoveKind, Reply, TakeNotice
from engine.core.group import Group
from engine.core.participation import invitation_refusal
from engine.core.records import InvitationKind, InvitationState
from engine.loop.committer import newest_topology
from tests.runtime.door import Door, open_door, post, reasons, reply
from tests.runtime.society import in_virtual_time, make_society

APART = {"east": (1, 2), "west": (3, 4)}


async def adopt(door: Door) -> None:
    """Bring the topology of now into force, as the loop does."""
    await door.committer.hand_in(await newest_topology(door.store))


def unread(door: Door, agent: int) -> list[int]:
    return [root.seq for root in door.world.unread(agent, most=99)]


def text_of(door: Door, seq: int) -> str:
    return door.tables.messages[seq].message.text


# --- what is read ----------------------------------------------------------------------------------


def test_new_membership_does_not_replay_old_posts() -> None:
    async def body() -> None:
        async with open_door(make_society(4, cohorts=APART)) as door:
            await door.seq(post(3, "old news of the west"))
            assert unread(door, 1) == []
            door.society.change_topology(cohorts={"east": (1, 2, 3), "west": (3, 4)})
            await adopt(door)
            assert (unread(door, 1), door.world.state(1).cursor) == ([], 1)
            seq = await door.seq(post(3, "fresh news of the west"))
            assert unread(door, 1) == [seq]
            assert await door.differing() == []

    in_virtual_time(body())


def test_new_membership_keeps_what_was_permitted_and_is_unread() -> None:
    async def body() -> None:
        async with open_door(make_society(4, cohorts=APART)) as door:
            mates, others = await door.seq(post(2)), await door.seq(post(3))
            door.society.change_topology(cohorts={"east": (1, 2, 3), "west": (4,)})
            await adopt(door)
            # The mate's post is not lost; with it, and only then, the newer one is read too.
            assert unread(door, 1) == [mates, others]
            assert unread(door, 4) == []

    in_virtual_time(body())


def test_lost_membership_hides_what_was_unread() -> None:
    async def body() -> None:
        async with open_door(make_society(4, cohorts={"all": (1, 2, 3, 4)})) as door:
            seqs = [await door.seq(post(agent)) for agent in (2, 3)]
            assert unread(door, 1) == seqs
            door.society.change_topology(cohorts=APART)
            await adopt(door)
            assert unread(door, 1) == seqs[:1]

    in_virtual_time(body())


@pytest.mark.parametrize(("policy", "readers"), [("open", [1, 2, 4]), ("isolated", [])])
def test_agent_in_no_cohort_deals_with_everyone_or_nobody(policy: str, readers: list[int]) -> None:
    async def body() -> None:
        society = make_society(4, cohorts={"east": (1, 2), "west": (4,)}, policy=policy)
        async with open_door(society) as door:
            seq = await door.seq(post(3))
            assert [agent for agent in (1, 2, 3, 4) if unread(door, agent) == [seq]] == readers
            answer = await door.turn(1, reply(1, seq))
            assert reasons(answer) == ([""] if readers else ["not_permitted"])

    in_virtual_time(body())


def test_private_channel_outranks_the_gate_for_its_members() -> None:
    async def body() -> None:
        society = make_society(4, cohorts=APART, policy="isolated", private={"parlour": (1, 3)})
        async with open_door(society) as door:
            seq = await door.seq(post(3, "between us", channel=2))
            public = await door.seq(post(3, "for all to see"))
            assert [agent for agent in (1, 2, 4) if seq in unread(door, agent)] == [1]
            assert reasons(await door.turn(1, reply(1, seq))) == [""]
            assert reasons(await door.turn(1, reply(1, public))) == ["not_permitted"]
            assert door.tables.messages[seq].message.channel == 2
            assert reasons(await door.turn(2, post(2, channel=2))) == ["not_a_member"]
            assert reasons(await door.turn(2, Join(agent=2, channels=(2,)))) == ["joined_already"]

    in_virtual_time(body())


# --- what was kept ---------------------------------------------------------------------------------


def test_banked_posts_of_authors_no_longer_permitted_are_dropped() -> None:
    async def body() -> None:
        society = make_society(
            4, cohorts={"all": (1, 2, 3, 4)}, policy="isolated", private={"parlour": (1, 3)}
        )
        async with open_door(society) as door:
            society.people.write_message(channel=1, text="who has hay?", at=door.clock.now())
            await door.take_mail()
            kept = [await door.seq(post(2)), await door.seq(post(3, channel=2))]
            gone = await door.seq(post(3))
            await door.turn(1, TakeNotice(agent=1, cursor=4, keep=(1, *kept, gone)))
            assert door.world.state(1).bank == (1, *kept, gone)
            society.change_topology(cohorts=APART)
            await adopt(door)
            assert door.world.state(1).bank == (1, *kept)
            assert await door.differing() == []

    in_virtual_time(body())


def test_posts_chosen_before_the_topology_moved_are_not_kept_after() -> None:
    async def body() -> None:
        async with open_door(make_society(4, cohorts={"all": (1, 2, 3, 4)})) as door:
            seqs = [await door.seq(post(agent)) for agent in (2, 3)]
            door.society.change_topology(cohorts=APART)
            await adopt(door)  # while the scan of 1 waits for its answer
            await door.turn(1, TakeNotice(agent=1, cursor=2, keep=tuple(seqs)))
            assert door.world.state(1).bank == (seqs[0],)

    in_virtual_time(body())


def test_invitations_of_authors_no_longer_permitted_are_settled() -> None:
    async def body() -> None:
        async with open_door(make_society(4, cohorts={"all": (1, 2, 3, 4)})) as door:
            tagged = await door.seq(post(3, "@Bot1 hello", tag=1))
            mates = await door.seq(post(2, "@Bot1 hello", tag=1))
            door.society.people.write_message(channel=1, text="@Bot1 hello", at=door.clock.now())
            await door.take_mail()
            door.society.change_topology(cohorts=APART)
            await adopt(door)
            assert [one.message for one in door.world.desk(1).invitations] == [mates, 3]
            settled = door.tables.invitations[1, tagged]
            assert (settled.state, settled.reason) == (InvitationState.REFUSED, "not_permitted")

    in_virtual_time(body())


def test_cursor_never_goes_back() -> None:
    async def body() -> None:
        async with open_door(make_society(2)) as door:
            for number in range(3):
                await door.seq(post(2, f"number {number}"))
            await door.turn(1, TakeNotice(agent=1, cursor=2))
            await door.turn(1, TakeNotice(agent=1, cursor=1))
            assert (door.world.state(1).cursor, unread(door, 1)) == (2, [3])

    in_virtual_time(body())


# --- what was begun --------------------------------------------------------------------------------


def test_open_thread_of_a_pair_that_is_parted_may_finish() -> None:
    async def body() -> None:
        async with open_door(make_society(4, cohorts={"all": (1, 2, 3, 4)})) as door:
            parted, kept = await door.seq(post(1)), await door.seq(post(1, "another matter"))
            await door.seq(reply(3, parted))
            await door.seq(reply(2, kept))
            door.society.change_topology(cohorts=APART)
            await adopt(door)
            marks = {root: t.grandfathered_at for root, t in door.world.threads.items()}
            assert marks == {parted: door.clock.now(), kept: None}
            for ordinal, agent in ((2, 1), (3, 3), (4, 1)):
                await door.seq(reply(agent, parted, ordinal))
            decline = Reply(
                agent=3, root=parted, text="no", answers_ordinal=5, move=MoveKind.DECLINE
            )
            assert reasons(await door.turn(3, decline)) == [""]
            fresh = await door.seq(post(1, "something new"))
            assert reasons(await door.turn(3, reply(3, fresh))) == ["not_permitted"]
            assert reasons(await door.turn(2, reply(2, fresh))) == ["pair_taken"]

    in_virtual_time(body())


def test_grandfathered_mark_goes_when_the_pair_is_permitted_again() -> None:
    async def body() -> None:
        async with open_door(make_society(4, cohorts={"all": (1, 2, 3, 4)})) as door:
            root = await door.seq(post(1))
            await door.seq(reply(3, root))
            for cohorts, is_marked in ((APART, True), ({"all": (1, 3)}, False)):
                door.society.change_topology(cohorts=cohorts)
                await adopt(door)
                assert (door.world.threads[root].grandfathered_at is not None) is is_marked
                assert await door.differing() == []

    in_virtual_time(body())


def test_older_topology_does_not_come_back() -> None:
    async def body() -> None:
        async with open_door(make_society(4, cohorts=APART)) as door:
            old = await door.store.load_gate()
            door.society.change_topology(cohorts={"all": (1, 2, 3, 4)})
            await adopt(door)
            assert reasons(await door.tell(Adopt(gate=old))) == ["older_topology"]
            assert door.world.gate.version == 2

    in_virtual_time(body())


# --- what goes out ---------------------------------------------------------------------------------


def test_names_that_may_not_be_called_are_taken_out_of_a_reply() -> None:
    async def body() -> None:
        async with open_door(make_society(4, cohorts=APART)) as door:
            root = await door.seq(post(1))
            text = "Yes @Bot1, ask @Bot3 and @Nobody, or @Bot2 myself."
            seq = await door.seq(reply(2, root, 1, text))
            assert text_of(door, seq) == "Yes @Bot1, ask and @Nobody, or @Bot2 myself."

    in_virtual_time(body())


def test_each_message_loses_its_own_names_only() -> None:
    """Two texts cleaned in one group: what one of them loses says nothing of the other."""

    async def body() -> None:
        async with open_door(make_society(4, cohorts=APART), daily_posts=9) as door:
            texts = ("hello @Bot3 there", "hello @Bot2 there")
            answer = await door.turn(1, *(post(1, text) for text in texts))
            assert reasons(answer) == ["", ""]
            assert [text_of(door, seq) for seq in (1, 2)] == ["hello there", "hello @Bot2 there"]
            assert [one.message for one in door.world.desk(2).invitations] == [2]

    in_virtual_time(body())


def test_root_tagged_to_an_agent_that_may_not_be_called_is_refused_whole() -> None:
    async def body() -> None:
        async with open_door(make_society(4, cohorts=APART)) as door:
            refused = await door.turn(1, post(1, "@Bot3 hello", tag=3))
            assert reasons(refused) == ["not_permitted"]
            seq = await door.seq(post(1, "@Bot2 hello", tag=2))
            assert door.world.roots[seq].addressed == 2

    in_virtual_time(body())


def test_text_that_was_nothing_but_a_name_is_not_posted() -> None:
    async def body() -> None:
        async with open_door(make_society(4, cohorts=APART)) as door:
            root = await door.seq(post(1))
            assert reasons(await door.turn(2, reply(2, root, 1, "*@Bot3*"))) == ["nothing_left"]
            assert reasons(await door.turn(2, post(2, "@Bot3."))) == ["nothing_left"]
            assert reasons(await door.turn(2, reply(2, root, 1, "hm @Bot3"))) == [""]

    in_virtual_time(body())


def test_mention_of_a_third_in_a_reply_is_bound_to_the_topology() -> None:
    async def body() -> None:
        async with open_door(make_society(3)) as door:
            root = await door.seq(post(1))
            await door.seq(reply(2, root))
            versions: list[int | None] = []

            async def note(group: Group) -> None:
                versions.append(group.topology_version)

            door.store._before_commit = note
            await door.seq(reply(1, root, 2, "as @Bot3 says"))
            await door.seq(reply(2, root, 3, "just so, @Bot1"))
            assert versions == [1, None]

    in_virtual_time(body())


def test_call_into_a_private_channel_one_is_no_member_of_is_settled() -> None:
    async def body() -> None:
        async with open_door(make_society(3, private={"parlour": (1, 2)})) as door:
            root = await door.seq(post(1, channel=2))
            await door.seq(reply(2, root))
            society = door.society
            society.people.write_message(
                channel=2, root=root, text="@Bot3 come", at=door.clock.now()
            )
            await door.take_mail()
            (invitation,) = door.world.desk(3).invitations
            assert invitation.kind is InvitationKind.REFERENCE
            refusal = invitation_refusal(door.world, invitation, door.clock.now(), door.rules)
            assert refusal is not None
            assert (refusal.reason, refusal.passes) == ("not_a_member", False)
            # The control: as a member it may answer.
            society.change_topology(members={2: (1, 2, 3)})
            await adopt(door)
            now = door.clock.now()
            assert invitation_refusal(door.world, invitation, now, door.rules) is None

    in_virtual_time(body())
