"""The law of rebuilding: the world is a function of the database, at every commit."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core.effects import Close, Committed, MoveKind, Post, Remember, Reply, Verdict
from engine.core.records import Channel, Memory, Outcome, PairHistory, Status, Visibility
from engine.core.world import World
from engine.loop.rebuild import same_world, world_from
from engine.store.memory import MemoryStore
from tests.runtime.door import Door, open_door, reasons
from tests.runtime.rebuilding import memory_ground, random_run, stale_caches
from tests.runtime.society import START, Society, in_virtual_time, make_agent, make_society, play


@settings(max_examples=settings().max_examples // 12)
@given(seed=st.integers(0, 10**6))
def test_world_rebuilt_from_the_store_equals_the_live_one(seed: int) -> None:
    checked = in_virtual_time(random_run(memory_ground(), seed))
    assert checked.differing == {}
    assert checked.n_checked > 20


def test_random_runs_do_everything_that_a_rebuild_must_survive() -> None:
    """The control: without all of this the law would hold of nothing."""
    outcomes, cycles, rejected, grandfathered = set(), set(), set(), 0
    for seed in (4, 5, 6):
        ground = memory_ground()
        in_virtual_time(random_run(ground, seed))
        tables = ground.society.tables
        outcomes |= {str(row.outcome) for row in tables.decisions.values()}
        cycles |= {cycle for _, cycle in tables.decisions}
        rejected |= {reason for turn in tables.turns.values() for reason, _ in turn.rejected}
        grandfathered += sum(t.grandfathered_at is not None for t in tables.threads.values())
        assert any(memory.version > 1 for memory in tables.memories.values())
        assert any(row.verdict is not None for row in tables.proposals.values())
        assert len(tables.snapshots) > 5
        assert len(tables.agents) > 6
        assert len(tables.channels) > 2
    assert outcomes == {"proposal", "no_proposal", "timeout", "lost"}
    assert {1, 2} <= cycles
    assert {"not_permitted", "changed_meanwhile"} <= rejected
    assert grandfathered > 0


async def lived_in() -> World:
    """Return a world with something in every table."""
    async with open_door(make_society(3)) as door:
        root = await door.seq(Post(agent=1, channel=1, text="of goats"))
        await door.seq(Reply(agent=2, root=root, text="yes", answers_ordinal=1))
        await door.seq(
            Reply(agent=1, root=root, text="no", answers_ordinal=2, move=MoveKind.DECLINE)
        )
        remember = Remember(
            agent=1, channel=None, text="it was", upto_seq=3, n_talks=1, base_version=0
        )
        await door.turn(1, remember)
        fresh = await door.seq(Post(agent=3, channel=1, text="of bees"))
        await door.seq(Reply(agent=1, root=fresh, text="yes", answers_ordinal=1))
        await door.seq(Post(agent=3, channel=1, text="of cats"))
        assert await door.differing() == []
        return world_from(await MemoryStore(door.tables).load())


def test_same_world_names_every_table_that_differs() -> None:
    world = in_virtual_time(lived_in())
    other = replace(
        world,
        gate=make_society(2, policy="off").tables.gate,
        commit_no=99,
        last_seq=99,
        agents={**world.agents, 4: make_agent(4, status=Status.RETIRED)},
        channels={**world.channels, 2: replace(world.channels[1], id=2)},
        states={**world.states, 1: replace(world.state(1), cursor=-1)},
        desks={**world.desks, 2: replace(world.desk(2), unreviewed=((1, 1),))},
        subscriptions={},
        roots={**world.roots, 4: replace(world.roots[4], n_messages=9)},
        threads={},
        pairs={(1, 2): PairHistory(closed_seq=1, closed_at=START, n_barren=7)},
        memories={(1, None): Memory(agent=1, channel=None, version=9)},
    )
    assert same_world(world, world) == []
    assert same_world(world, other) == [
        "gate",
        "commit_no",
        "last_seq",
        "agents",
        "channels",
        "states",
        "desks",
        "subscriptions",
        "roots",
        "threads",
        "pairs",
        "memories",
    ]


def test_same_world_leaves_both_worlds_as_they_are() -> None:
    """A world is compared while a draft of it is on its way: no table may be replaced under it."""
    world = in_virtual_time(lived_in())
    roots, desks = world.roots, world.desks
    assert same_world(world, replace(world)) == []
    assert world.roots is roots
    assert world.desks is desks


def test_stale_caches_are_named() -> None:
    world = in_virtual_time(lived_in())
    assert stale_caches(world) == []
    world.by_author.clear()
    world.handles.clear()
    assert stale_caches(world) == ["by_author", "handles"]
    world.rebuild_caches()
    world.states[2] = replace(world.state(2), cursor=0)
    world.skimmed[2] = 99
    assert stale_caches(world) == ["skimmed"]
    world.rebuild_caches()
    world.wanted[2] = ()
    assert stale_caches(world) == ["wanted"]


def test_channels_that_an_agent_wants_are_looked_up_anew_after_a_change() -> None:
    async def body() -> None:
        async with open_door(make_society(2)) as door:
            assert [door.world.wants(agent) for agent in (1, 2)] == [(1,), (1,)]
            topical = Channel(id=2, name="labs", topic="kinds", visibility=Visibility.PUBLIC)
            door.society.people.save_channel(topical)
            await door.take_mail()
            assert [door.world.wants(agent) for agent in (1, 2)] == [(1, 2), (1, 2)]
            changed = make_agent(2, interests="bees", version=2)
            door.society.people.save_agent(changed)
            await door.take_mail()
            assert [door.world.wants(agent) for agent in (1, 2)] == [(1, 2), (1,)]
            assert stale_caches(door.world) == []

    in_virtual_time(body())


def test_thread_of_one_agent_is_not_opened_twice_once_it_has_closed() -> None:
    """The root's second place stays empty then: each cycle of a thread has one decision."""

    async def body() -> None:
        async with open_door(make_society(3), thread_idle_seconds=60) as door:
            asked = []
            for text in ("who keeps bees?", "who keeps goats?"):
                door.society.people.write_message(channel=1, text=text, at=door.clock.now())
                (result,) = (await door.take_mail()).results
                assert isinstance(result, Committed)
                asked.append(result.seq or 0)
            for root in asked:
                await door.seq(Reply(agent=1, root=root, text="I do", answers_ordinal=1))
            await door.tell(Close(root=asked[0], cycle=1, outcome=Outcome.TIMEOUT))
            late = [Reply(agent=2, root=root, text="I too", answers_ordinal=2) for root in asked]
            assert reasons(await door.turn(2, *late)) == ["not_entitled", ""]
            assert await door.differing() == []

    in_virtual_time(body())


def test_two_pending_proposals_of_one_thread_are_reviewed_apart() -> None:
    async def body() -> None:
        async with open_door(make_society(2)) as door:
            root = await door.seq(Post(agent=1, channel=1, text="of goats"))
            await door.seq(Reply(agent=2, root=root, text="yes", answers_ordinal=1))
            await agree(door, root, 2)
            door.society.people.write_message(
                channel=1, root=root, text="@Bot1 go on", at=door.clock.now()
            )
            await door.take_mail()
            await door.seq(Reply(agent=1, root=root, text="well", answers_ordinal=5))
            await door.seq(Reply(agent=2, root=root, text="hm", answers_ordinal=6))
            await agree(door, root, 7)
            assert door.world.desk(1).unreviewed == ((root, 1), (root, 2))
            door.society.people.review(root=root, cycle=1, verdict=Verdict.ACCEPTED, at=START)
            await door.take_mail()
            assert door.world.desk(1).unreviewed == ((root, 2),)
            assert await door.differing() == []

    in_virtual_time(body())


async def agree(door: Door, root: int, ordinal: int) -> None:
    propose = Reply(
        agent=1, root=root, text="so be it", answers_ordinal=ordinal, move=MoveKind.PROPOSE
    )
    await door.seq(propose)
    accept = Reply(
        agent=2, root=root, text="agreed", answers_ordinal=ordinal + 1, move=MoveKind.ACCEPT
    )
    await door.seq(accept)


async def reload(society: Society) -> World:
    return world_from(await MemoryStore(society.tables).load())


def test_run_goes_on_where_the_last_one_stopped() -> None:
    society = make_society(4)
    first = play(society, max_turns=9)
    second = play(society)
    assert (first.reason, second.reason) == ("turn_limit", "idle")
    assert same_world(second.engine.world, in_virtual_time(reload(society))) == []
    numbers = sorted(society.tables.turns)
    assert numbers == list(range(1, len(numbers) + 1))
