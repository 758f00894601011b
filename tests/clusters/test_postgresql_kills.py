"""Runs over two clusters on one database, with kills at random: in full by `make soak`."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

import pytest

from engine.models import Run, RunLease, Turn
from engine.runs.pick_up import MAX_TAKEOVERS
from tests.clusters.cluster import (
    PATIENCE_SECONDS,
    Cluster,
    broken_laws,
    clusters,
    driver_of,
    requested,
    society,
    start,
    wait_for_driver,
)
from tests.doors import command, wait_until

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(1800)]

SEED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """How much is done: so many runs at once, turns of all of them, and kills.

    Each run outlives `MAX_TAKEOVERS` deaths, and a cluster may have all of them.
    """

    n_runs: int
    n_turns: int
    kills: tuple[str, ...]


SHORT = Form(n_runs=2, n_turns=20, kills=("driver",))
FULL = Form(n_runs=10, n_turns=5_000, kills=("cluster",) + ("driver",) * 19)


class Storm:
    """Kills, one after the other, each when the last one's runs have drivers again."""

    def __init__(self, left: list[Run], both: list[Cluster], around: dict[str, str]) -> None:
        self.takeover_seconds: list[float] = []
        self._runs = left
        self._clusters = both
        self._around = around
        self._dice = Random(SEED)

    def strike(self, kind: str) -> None:
        """Kill a driver, or a cluster with all its drivers, and wait until others have their runs."""
        victims: dict[Run, int] = {}
        wait_until(lambda: bool(victims.update(self._victims(kind)) or victims))
        killed_at = time.monotonic()
        if kind == "cluster":
            self._kill_cluster_of(next(iter(victims.values())))
        else:
            with suppress(ProcessLookupError):
                os.kill(next(iter(victims.values())), signal.SIGKILL)
        for run, driver in victims.items():
            wait_for_driver(run, but=driver)
            self.takeover_seconds.append(time.monotonic() - killed_at)

    def _victims(self, kind: str) -> dict[Run, int]:
        """Return the drivers that are to die, by their runs; none that would be one too many."""
        driven = {run: pid for run in self._runs if (pid := driver_of(run)) is not None}
        for run in driven:
            run.refresh_from_db()
        if kind == "driver":
            mortal = [run for run in driven if run.takeovers < MAX_TAKEOVERS]
            chosen = min(mortal, key=lambda run: (run.takeovers, self._dice.random()), default=None)
            return {} if chosen is None else {chosen: driven[chosen]}
        for cluster in self._dice.sample(self._clusters, len(self._clusters)):
            there = {run: pid for run, pid in driven.items() if cluster.has(pid)}
            if there and all(run.takeovers < MAX_TAKEOVERS for run in there):
                return there
        return {}

    def _kill_cluster_of(self, pid: int) -> None:
        cluster = next(one for one in self._clusters if one.has(pid))
        cluster.kill()
        self._clusters[self._clusters.index(cluster)] = start(**self._around)


def test_runs_survive_kills_at_random(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], *, is_soak: bool
) -> None:
    form = FULL if is_soak else SHORT
    around = {"SIM_MAX_RUNS_PER_HOST": str(form.n_runs)}
    left = [requested(society(f"world-{number}")) for number in range(form.n_runs)]
    with clusters(2, **around) as both:
        storm = Storm(left, both, around)
        for run in left:
            wait_for_driver(run)
        for kind in form.kills:
            _wait_for_turns()
            storm.strike(kind)
        enough = Turn.objects.all()
        wait_until(lambda: enough.count() >= form.n_turns, seconds=15 * PATIENCE_SECONDS)
        for run in left:
            assert command("simctl", "stop", str(run.pk)).code == 0
        over = Run.objects.filter(finished_at__isnull=False)
        wait_until(lambda: over.count() == form.n_runs, seconds=PATIENCE_SECONDS)
    told = _report(storm)
    with capsys.disabled():
        print(f"\n{told}")  # noqa: T201 - the result of a long proof
    ends = Counter(Run.objects.values_list("status", "end_reason"))
    assert ends == {("stopped", "stopped"): form.n_runs}, told
    assert not Turn.objects.filter(outcome="running").exists()
    for run in left:
        assert broken_laws(run.simulation, tmp_path / run.simulation.name) == []


def _wait_for_turns() -> None:
    """Wait until some run has got on by a few groups."""
    before = dict(RunLease.objects.values_list("pk", "commit_no"))

    def got_on() -> bool:
        now = RunLease.objects.values_list("pk", "commit_no")
        return any(number >= before[pk] + 3 for pk, number in now)

    wait_until(got_on, seconds=PATIENCE_SECONDS)


def _report(storm: Storm) -> str:
    seconds = sorted(storm.takeover_seconds)
    takeovers = sum(Run.objects.values_list("takeovers", flat=True))
    return (
        f"{Run.objects.count()} runs, {Turn.objects.count()} turns, "
        f"{len(seconds)} drivers killed, {takeovers} take-overs, "
        f"{seconds[0]:.1f} to {seconds[-1]:.1f} s until the next driver "
        f"(median {seconds[len(seconds) // 2]:.1f} s)."
    )
