"""Look-ups before a reply: what an agent may read, in how many rounds, and what each costs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from engine.core.errors import Unanswered
from engine.loop.committer import newest_topology
from engine.phases.look_up import CANDIDATES, HITS, look_up
from engine.phases.scene import Scene
from engine.ports.llm import (
    Decision,
    Found,
    Hits,
    LlmRequest,
    LookUp,
    LookUps,
    Profile,
    ReadProfile,
    SearchMessages,
)
from engine.store.memory import MemoryStore
from tests.runtime.door import Door, open_door, post, reply
from tests.runtime.parts import at_home, rejected
from tests.runtime.scripted_llm import Script, by_phase, eager
from tests.runtime.society import in_virtual_time, make_society, play

if TYPE_CHECKING:
    from tests.runtime.society import Played

APART = {"east": (1, 2), "west": (3, 4)}
PROFILE_OF_2 = Profile(
    slug="a2",
    bot_name="Bot2",
    represents="House 2",
    public_profile="House 2 makes things of kind 2.",
)


def scene_of(door: Door, agent: int) -> Scene:
    return Scene(
        agent=agent,
        number=1,
        seed=1,
        world=door.world,
        rules=door.rules,
        store=door.store,
        mind=None,  # type: ignore[arg-type]
        clock=door.clock,
    )


async def adopt(door: Door) -> None:
    """Bring the topology of now into force, as the loop does."""
    await door.committer.hand_in(await newest_topology(door.store))


async def find(door: Door, agent: int, wanted: LookUp) -> Found:
    return await look_up(scene_of(door, agent), wanted)


async def texts_of(door: Door, agent: int, words: str) -> list[str]:
    found = await find(door, agent, SearchMessages(words=words))
    assert isinstance(found, Hits)
    return [entry.text for entry in found.entries]


@pytest.mark.parametrize("name", ["Bot2", "@bot2", " BOT2 "])
def test_profile_of_a_mate_is_read_by_its_name(name: str) -> None:
    async def body() -> None:
        async with open_door(make_society(4, cohorts=APART)) as door:
            assert await find(door, 1, ReadProfile(name=name)) == PROFILE_OF_2

    in_virtual_time(body())


def test_profile_that_the_gate_keeps_is_unavailable_but_in_an_open_thread() -> None:
    async def body() -> None:
        async with open_door(make_society(4, cohorts={"all": (1, 2)}, policy="open")) as door:
            assert await find(door, 3, ReadProfile(name="Bot2")) == PROFILE_OF_2
            root = await door.seq(post(2))
            await door.turn(3, reply(3, root))
            door.society.change_topology(cohorts=APART)
            await adopt(door)
            assert await find(door, 3, ReadProfile(name="Bot2")) == PROFILE_OF_2
            assert await find(door, 3, ReadProfile(name="Bot1")) is None
            assert await find(door, 3, ReadProfile(name="Nobody")) is None
            own = await find(door, 3, ReadProfile(name="Bot3"))
            assert isinstance(own, Profile)

    in_virtual_time(body())


def test_search_finds_what_the_gate_lets_the_agent_act_on() -> None:
    async def body() -> None:
        society = make_society(4, cohorts=APART, private={"parlour": (1, 3), "cellar": (2, 4)})
        async with open_door(society) as door:
            society.people.write_message(channel=1, text="Salt wanted.", at=door.clock.now())
            await door.take_mail()
            for agent, channel in ((1, 1), (2, 1), (3, 1), (3, 2), (2, 3)):
                await door.seq(post(agent, f"salt of {agent} in {channel}", channel=channel))
            assert await texts_of(door, 1, "Salt") == [
                "Salt wanted.",
                "salt of 1 in 1",
                "salt of 2 in 1",
                "salt of 3 in 2",
            ]
            assert await texts_of(door, 1, "salt wanted.") == ["Salt wanted."]
            assert await texts_of(door, 1, "pepper") == []

    in_virtual_time(body())


def test_search_reads_an_open_thread_of_ones_own() -> None:
    async def body() -> None:
        async with open_door(make_society(4, cohorts={"all": (1, 2, 3, 4)})) as door:
            root = await door.seq(post(3, "salt of the west"))
            other = await door.seq(post(3, "more salt of the west"))
            await door.turn(1, reply(1, root, text="salt for whom?"))
            door.society.change_topology(cohorts=APART)
            await adopt(door)
            assert await texts_of(door, 1, "salt") == ["salt of the west", "salt for whom?"]
            assert other not in door.world.desk(1).threads

    in_virtual_time(body())


@pytest.mark.parametrize("words", ["", "  ", "a an"])
def test_search_without_words_is_unavailable(words: str) -> None:
    async def body() -> None:
        async with open_door(make_society(1)) as door:
            assert await find(door, 1, SearchMessages(words=words)) is None

    in_virtual_time(body())


@pytest.mark.parametrize(
    ("n_posts", "n_shown", "is_cut"),
    [(HITS, HITS, False), (HITS + 1, HITS, True), (CANDIDATES, HITS, True)],
)
def test_list_that_is_cut_says_so(n_posts: int, n_shown: int, *, is_cut: bool) -> None:
    async def body() -> None:
        async with open_door(make_society(1), daily_posts=1000) as door:
            for number in range(n_posts):
                await door.seq(post(1, f"salt {number} {number * 7} {number * 13}"))
            found = await find(door, 1, SearchMessages(words="salt"))
            assert isinstance(found, Hits)
            assert (len(found.entries), found.is_cut) == (n_shown, is_cut)
            assert found.entries[-1].text.startswith(f"salt {n_posts - 1} ")

    in_virtual_time(body())


# --- the rounds of a call --------------------------------------------------------------------------


def looks_up(*wanted: LookUp | None, rounds: int = 1) -> Script:
    """Return a script that looks up in the first rounds of a reply, and then is eager."""

    def script(request: LlmRequest) -> Decision | LookUps:
        if len(request.rounds) < rounds:
            return LookUps(wanted=wanted, said="{}")
        return eager(request)

    return by_phase(eager, reply=script)


def replies(played: Played) -> list[LlmRequest]:
    return [request for request in played.llm.requests if request.phase == "reply"]


def test_what_was_looked_up_is_in_the_next_request_of_the_same_call() -> None:
    wanted = (ReadProfile(name="Bot2"), SearchMessages(words="Bot1"), None)

    played = play(at_home(2), script=looks_up(*wanted), daily_posts=1)

    two = next(request for request in replies(played) if request.rounds)
    one = next(request for request in replies(played) if request.turn == two.turn)
    assert (one.rounds, one.may_look_up, one.attempt) == ((), True, 1)
    assert (two.may_look_up, two.attempt, two.turn) == (True, 1, one.turn)
    (round_,) = two.rounds
    assert round_.asked.wanted == wanted
    profile, hits, unavailable = round_.found
    assert isinstance(profile, Profile)
    assert isinstance(hits, Hits)
    assert unavailable is None


def test_every_round_is_a_call_with_its_own_record() -> None:
    played = play(at_home(2), script=looks_up(ReadProfile(name="Bot2")), daily_posts=1)

    records = [call for call in played.tables.calls.values() if call.phase == "reply"]
    assert len(records) == len(replies(played)) >= 4
    assert {call.attempt for call in records} == {1}
    assert len({(call.turn, call.number) for call in records}) == len(records)


def test_calls_of_rounds_are_counted_against_the_caps() -> None:
    script = looks_up(ReadProfile(name="Bot2"))

    played = play(at_home(2), script=script, daily_posts=1, max_calls=4)

    assert played.reason == "call_cap"
    assert played.llm.n_calls() == 4


def test_rounds_are_bounded() -> None:
    script = looks_up(ReadProfile(name="Bot2"), rounds=99)

    played = play(at_home(2), script=script, daily_posts=1)

    first = replies(played)[:3]
    assert [request.may_look_up for request in first] == [True, True, False]
    assert {len(request.rounds) for request in replies(played)} == {0, 1, 2}
    assert rejected(played)["unusable_tool"] >= 1


def test_look_up_that_fails_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fails(*_: object, **__: object) -> None:
        raise ValueError("no such luck")

    monkeypatch.setattr(MemoryStore, "search", fails)
    wanted = (SearchMessages(words="Bot1"), ReadProfile(name="Bot2"))

    played = play(at_home(2), script=looks_up(*wanted), daily_posts=1, max_turns=12)

    rounds = [request.rounds[0] for request in replies(played) if request.rounds]
    assert {(type(hits), type(profile)) for hits, profile in (one.found for one in rounds)} == {
        (type(None), Profile)
    }
    assert "unusable_tool" not in rejected(played)


def test_lost_store_is_no_failed_look_up(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fails(*_: object, **__: object) -> None:
        raise Unanswered("The database did not answer.")

    monkeypatch.setattr(MemoryStore, "search", fails)

    played = play(at_home(2), script=looks_up(SearchMessages(words="Bot1")), daily_posts=1)

    assert (played.reason, played.ending.sentence) == ("failed", "The database did not answer.")


def test_only_a_reply_may_look_up() -> None:
    played = play(at_home(2), daily_posts=1)

    assert {(r.phase, r.may_look_up) for r in played.llm.requests} >= {
        ("scan", False),
        ("post", False),
        ("reply", True),
    }
    assert not any(r.may_look_up for r in played.llm.requests if r.phase != "reply")


def test_models_are_those_of_the_agent_or_of_the_run() -> None:
    society = at_home(2)
    society.tables.agents[2] = replace(society.tables.agents[2], small_model="tiny")

    played = play(society, daily_posts=1, small_model="small", large_model="large")

    asked = {(r.agent, str(r.tier), r.model) for r in played.llm.requests}
    assert asked == {
        ("a1", "small", "small"),
        ("a1", "large", "large"),
        ("a2", "small", "tiny"),
        ("a2", "large", "large"),
    }
