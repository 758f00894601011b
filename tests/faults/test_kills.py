"""Drivers that are killed at any moment: the next one goes on, and nothing is lost or doubled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.core.management import call_command

from engine.core.participation import debts
from engine.models import RunLease, Simulation
from tests.doors import ROOT
from tests.faults.containment import losses, repeated
from tests.faults.kills import AT_END, AT_START, IN_COMMIT, UNAPPLIED, Drivers, plan
from tests.faults.people import People

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.both_databases,
    pytest.mark.django_db(transaction=True),
    pytest.mark.timeout(900),
]

SEED = 11
WORDS = ("--seed", str(SEED), "--latency", "0.05", "--concurrent-turns", "4")
#: Each kind of moment, as often as it is hit in the full form.
FULL = (
    *(place for place in IN_COMMIT for _ in range(2)),
    *(place for place in UNAPPLIED for _ in range(3)),
    *("calls",) * 10,
    *(*AT_START, *AT_END, "turn"),
)
SHORT = ("messages", "unapplied", "calls")
#: The commits of a run of `SHORT`'s society that nobody kills, and a little less.
SHORT_COMMITS = 90


def society(name: str, **settings: Any) -> Simulation:
    """Return a simulation of the demo roster, with its cohorts and channels."""
    call_command("loadroster", str(ROOT / "engine/demo/roster"), "--simulation", name, verbosity=0)
    simulation = Simulation.objects.get(name=name)
    simulation.settings = settings
    simulation.save()
    return simulation


def test_killed_drivers_leave_nothing_undone_and_nothing_twice(
    is_soak: bool, tmp_path: Path
) -> None:
    if is_soak:
        simulation, kills = (
            society("main"),
            plan(FULL, n_commits_unkilled(tmp_path / "control"), SEED),
        )
    else:
        simulation = society("main", daily_posts=1)
        kills = plan(SHORT, SHORT_COMMITS, SEED)
    drivers = Drivers(simulation, People(simulation, SEED), tmp_path)
    for kill in kills:
        drivers.die(kill, *WORDS)
    left = drivers.end(*WORDS)
    assert (left.code, left.summary["end_reason"]) == (0, "idle"), left.err

    *earlier, last = drivers.exports
    for files in earlier:
        assert losses(files, last) == []
    assert repeated(last) == []
    statuses = [run["status"] for run in last["runs.jsonl"]]
    assert statuses == [*["interrupted"] * (len(statuses) - 1), "completed"]
    assert len(statuses) == 1 + len(kills) - sum(kill.place == "takeover" for kill in kills)
    died = [turn["outcome"] for turn in last["turns.jsonl"] if turn["finished_at"] is None]
    assert died
    assert {*died} == {"interrupted"}
    world = drivers.world()
    assert [agent for agent in world.agents if debts(world, agent)] == []


def n_commits_unkilled(folder: Path) -> int:
    """Return the commits of a run with people beside it that nobody kills."""
    simulation = society("control")
    people = People(simulation, SEED)
    for _ in range(50):
        people.act()
    folder.mkdir()
    drivers = Drivers(simulation, people, folder)
    assert drivers.end(*WORDS).summary["end_reason"] == "idle"
    return RunLease.objects.get(simulation=simulation).commit_no
