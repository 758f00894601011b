"""Drivers that are killed at any moment: the next one goes on, and nothing is lost or doubled."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING

import pytest
from django.core.management import call_command

from cohorts.models import Agent
from engine.core.participation import debts
from engine.models import Channel, RunLease, Simulation
from engine.simulations import add_channel_members
from tests.doors import ROOT, TRADES, make_world
from tests.faults.containment import losses, repeated
from tests.faults.kills import AT_END, AT_START, IN_COMMIT, UNAPPLIED, Drivers, plan
from tests.faults.people import People

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.both_databases,
    pytest.mark.django_db(transaction=True),
    pytest.mark.timeout(1800),
]

SEED = 11
WORDS = ("--seed", str(SEED), "--latency", "0.05", "--concurrent-turns", "4")
#: Each kind of moment, as often as it is hit in the full form.
FULL = (
    *(*IN_COMMIT, *IN_COMMIT[1:]),
    *UNAPPLIED * 3,
    *("calls",) * 10,
    *(*AT_START, *AT_END, "turn", "renewal"),
)
SHORT = ("messages", "unapplied", "calls")
#: Nearly as many as the commits of a run of the small society that nobody kills.
SHORT_COMMITS = 60

SMALL = {"north": ("ash", "elm", "fir", "oak"), "south": ("fir", "oak", "yew", "bay")}


def large_society(name: str) -> Simulation:
    """Return a simulation of the demo roster, with its cohorts and channels."""
    words = (str(ROOT / "engine/demo/roster"), "--simulation", name)
    call_command("loadroster", *words, stdout=StringIO())
    return Simulation.objects.get(name=name)


def small_society() -> Simulation:
    """Return a simulation of six agents that post twice a day; two share a private channel."""
    simulation = make_world(agents=sorted(TRADES), cohorts=SMALL, daily_posts=2)
    parlour = Channel.objects.create(simulation=simulation, name="parlour", visibility="private")
    add_channel_members(parlour, Agent.objects.filter(slug__in=("ash", "yew")), who="Ada")
    return simulation


def test_killed_drivers_leave_nothing_undone_and_nothing_twice(
    is_soak: bool, tmp_path: Path
) -> None:
    if is_soak:
        simulation = large_society("main")
        kills = plan(FULL, n_commits_unkilled(tmp_path / "control"), SEED)
    else:
        simulation = small_society()
        kills = plan(SHORT, SHORT_COMMITS, SEED)
    drivers = Drivers(simulation, People(simulation, SEED), tmp_path)
    for kill in kills:
        drivers.die(kill, *WORDS)
    assert drivers.end(*WORDS).summary["end_reason"] == "idle"

    *earlier, last = drivers.exports
    for files in earlier:
        assert losses(files, last) == []
    assert repeated(last) == []
    statuses = [run["status"] for run in last["runs.jsonl"]]
    assert statuses == [*["interrupted"] * (len(statuses) - 1), "completed"]
    assert len(statuses) == 1 + len(kills) - sum(kill.place == "takeover" for kill in kills)
    outcomes = {turn["outcome"] for turn in last["turns.jsonl"]}
    assert outcomes.isdisjoint({"running", "failed"})
    died = {turn["outcome"] for turn in last["turns.jsonl"] if turn["finished_at"] is None}
    assert died == {"interrupted"}
    world = drivers.world()
    assert [agent for agent in world.agents if debts(world, agent)] == []


def n_commits_unkilled(folder: Path) -> int:
    """Return the commits of a run with people beside it that nobody kills."""
    simulation = large_society("control")
    people = People(simulation, SEED)
    for _ in range(50):
        people.act()
    folder.mkdir()
    drivers = Drivers(simulation, people, folder)
    assert drivers.end(*WORDS).summary["end_reason"] == "idle"
    return RunLease.objects.get(simulation=simulation).commit_no
