"""The societies of the tests themselves: a run of each kind comes to its end."""

from __future__ import annotations

from engine.core.records import Outcome
from tests.runtime.scripted_llm import silent
from tests.runtime.society import Live, demo_society, make_society, offline, play


def test_eager_society_talks_until_its_proposals_wait() -> None:
    played = play(make_society(4))
    assert played.reason == "idle"
    assert {row.outcome for row in played.tables.decisions.values()} == {Outcome.PROPOSAL}


def test_silent_society_says_nothing() -> None:
    played = play(make_society(4), script=silent)
    assert (played.reason, played.tables.messages) == ("idle", {})
    assert played.llm.n_calls("post") == 4


def test_demo_society_runs_with_the_offline_llm() -> None:
    played = play(demo_society(), llm=offline(), max_turns=40)
    assert played.reason == "turn_limit"
    assert len(played.tables.turns) == 40


def test_person_writes_while_a_run_goes_on() -> None:
    async def ask(live: Live) -> None:
        await live.sleep(10)
        live.society.people.write_message(channel=1, text="@Bot2 hello", at=live.clock.now())
        live.beat()

    society = make_society(2)
    played = play(society, ask, script=silent, latency=30.0)
    authors = [row.message.author for row in played.tables.messages.values()]
    assert authors == [None, 2]
