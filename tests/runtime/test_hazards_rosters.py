"""Hazards of mail that moves no version, and of mail that nobody can ever place."""

from __future__ import annotations

from dataclasses import replace

from cohorts.rules import Topology
from engine.core.effects import Effect
from engine.core.records import Status
from engine.loop.rebuild import same_world, world_from
from tests.runtime.parts import at_home
from tests.runtime.scripted_llm import silent
from tests.runtime.society import Live, make_society, play


def test_roster_that_changes_without_a_version_is_in_the_gate_too() -> None:
    differing: list[list[str]] = []

    async def leave(live: Live) -> None:
        await live.until(lambda: len(live.tables.turns) == 3)
        society = live.society
        society.people.save_agent(replace(society.tables.agents[1], status=Status.RETIRED))
        society.people.set_topology(society.topology(live.tables.gate.version))
        live.beat()
        await live.sleep(1)
        differing.append(same_world(live.engine.world, world_from(await live.store.load())))
        assert live.engine.world.gate.version == 1

    society = make_society(3, cohorts={"north": (1,)}, policy="isolated")
    society.tables.subscriptions = {(agent, 1): None for agent in (1, 2, 3)}
    played = play(society, leave, script=silent, until_idle=False, max_minutes=1)
    assert played.reason == "time_limit"
    assert differing == [[]]
    gate = played.engine.world.gate
    assert isinstance(gate, Topology)
    assert (1 in gate.running, gate.verdict) == (False, "refused")


def reads_mail_now_and_then(live: Live) -> None:
    """Fail a run that reads its mail again and again without ever waiting."""
    read_mail, n_reads = live.store.read_mail, [0]

    async def counted() -> tuple[Effect, ...]:
        n_reads[0] += 1
        assert n_reads[0] < 500
        return await read_mail()

    vars(live.store)["read_mail"] = counted


def test_message_that_nobody_can_place_does_not_keep_a_run_awake() -> None:
    society = at_home(1)
    society.people.write_message(channel=9, text="Lost", at=society.starts_at)
    society.people.write_message(channel=1, text="Found", at=society.starts_at)
    played = play(
        society, script=silent, beat_seconds=0.5, max_minutes=1, on_begin=reads_mail_now_and_then
    )
    assert played.reason == "idle"
    assert [row.text for row in society.tables.waiting.values()] == ["Lost"]
    assert [row.message.text for row in played.tables.messages.values()] == ["Found"]
