"""Real clusters in process groups of their own, and what a test asks of the runs they drive."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engine import runs
from engine.core.settings import configuration
from engine.export.rows import Scope
from engine.export.writer import write_export
from engine.laws.checking import check_folder
from engine.models import Run, RunLease
from engine.store.database import is_driven, read_lease
from tests.doors import ROOT, environment, make_world, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.models import Simulation

#: A cluster takes seconds to start where others use the cores too.
PATIENCE_SECONDS = 60.0
AGENTS = ("ash", "bay", "elm", "fir", "oak", "yew")


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster; its main process leads the group of all of them."""

    process: subprocess.Popen[bytes]

    def has(self, pid: int) -> bool:
        """Tell whether a process is one of the cluster's."""
        with suppress(ProcessLookupError):
            return os.getpgid(pid) == self.process.pid
        return False

    def processes(self) -> list[int]:
        """Return its processes, the oldest first."""
        known = (int(path.name) for path in Path("/proc").glob("[0-9]*"))
        return sorted(pid for pid in known if self.has(pid))

    def kill(self) -> None:
        """Kill every process of the cluster at once, as a host dies."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def start(**more: str) -> Cluster:
    """Start a cluster on the queue of runs."""
    env = environment(Q_CLUSTER_NAME="runs", **more)
    command = (sys.executable, "-m", "tests.clusters.eager_cluster")
    return Cluster(
        subprocess.Popen(
            command, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, start_new_session=True
        )
    )


@contextmanager
def clusters(n_clusters: int, **more: str) -> Iterator[list[Cluster]]:
    """Run clusters; whatever is left of them at the end, also of later ones, is killed."""
    with ExitStack() as left:
        found: list[Cluster] = []
        left.callback(_kill_all, found)
        found.extend(start(**more) for _ in range(n_clusters))
        yield found


def _kill_all(found: list[Cluster]) -> None:
    for cluster in found:
        cluster.kill()


def society(name: str = "main") -> Simulation:
    """Return a simulation whose agents may talk for ever."""
    return make_world(
        name, agents=AGENTS, daily_posts=1000, unreviewed_proposals=1000, thread_messages=4
    )


def requested(simulation: Simulation, **more: object) -> Run:
    """Return a run that waits for a worker, with the simulation's own settings."""
    config = configuration(dict(simulation.settings), seed=simulation.pk, **more)
    return runs.request(simulation, config, who="Ada")


def driver_of(run: Run) -> int | None:
    """Return the process that drives a run, if one does."""
    lease = read_lease(run.simulation_id)
    if lease.run_id != run.pk or not is_driven(run.simulation_id, lease):
        return None
    return int(lease.owner.rpartition(":")[2])


def wait_for_driver(run: Run, *, but: int | None = None, seconds: float = PATIENCE_SECONDS) -> int:
    """Wait until a process drives the run, other than one, and return its id."""
    wait_until(lambda: driver_of(run) not in {None, but}, seconds=seconds)
    found = driver_of(run)
    return found if found is not None else wait_for_driver(run, but=but)


def wait_for_commits(run: Run, n_commits: int) -> None:
    """Wait until the run has got on by so many groups."""
    at = RunLease.objects.get(pk=run.simulation_id).commit_no
    rows = RunLease.objects.filter(pk=run.simulation_id, commit_no__gte=at + n_commits)
    wait_until(rows.exists, seconds=PATIENCE_SECONDS)


def wait_for_end(run: Run) -> Run:
    """Wait until a run is over, and return it."""
    over = Run.objects.filter(pk=run.pk, finished_at__isnull=False)
    wait_until(over.exists, seconds=PATIENCE_SECONDS)
    return over.get()


def broken_laws(simulation: Simulation, folder: Path) -> list[str]:
    """Return what an export of now breaks."""
    write_export(Scope(simulation=simulation), folder)
    return [str(violation) for violation in check_folder(folder).violations]
