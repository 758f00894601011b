"""What a long history costs: the resumption of a run, memory, and an export.

Each is measured in a process of its own over the same database, and against the same society
without a history. Resuming is from the command to the first turn of ten thousand agents, without
the start of Python and Django; memory is the most that the process ever held.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import django

from benchmarks.parts.database import fresh_database
from benchmarks.parts.measuring import Table, duration, run, times
from benchmarks.parts.society import make_society
from benchmarks.parts.talking import talk

if TYPE_CHECKING:
    from engine.models import Simulation

ROOT = Path(__file__).parents[1]
MEBIBYTE = 1024 * 1024
#: Words that make this module one of its own processes.
FILL, RESUME, EXPORT = "--fill", "--resume", "--export"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one process took; `n_lines` are those of an export."""

    seconds: float
    bytes_at_most: int
    n_lines: int = 0


def tables(*, small: bool) -> Iterator[Table]:
    n_agents, n_messages = (12, 240) if small else (10_000, 1_000_000)
    name, bare = _costs(n_agents, 0)
    _, long = _costs(n_agents, n_messages)
    yield Table(
        title=f"{n_agents:,} agents with and without {n_messages:,} stored messages, {name}",
        columns=("", "without", "with", "ratio", "memory at most"),
        rows=[_row(what, bare[what], long[what]) for what in (RESUME, EXPORT)],
    )


def _row(what: str, bare: Cost, long: Cost) -> tuple[str, ...]:
    words = "resume" if what == RESUME else f"export, {long.n_lines:,} lines"
    ratio = times(long.seconds / bare.seconds)
    memory = f"{long.bytes_at_most / MEBIBYTE:.0f} MiB"
    return words, duration(bare.seconds), duration(long.seconds), ratio, memory


def _costs(n_agents: int, n_messages: int) -> tuple[str, dict[str, Cost]]:
    """Return the database's name, and what each thing took over one history."""
    name, costs = _in_own_process(FILL, f"{n_agents}", f"{n_messages}")
    return name, {what: Cost(**cost) for what, cost in costs.items()}


def _in_own_process(*words: str) -> Any:
    command = [sys.executable, "-m", "benchmarks.history", *words]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


# --- in processes of their own -------------------------------------------------------------------


def _fill(n_agents: int, n_messages: int) -> tuple[str, dict[str, Any]]:
    with fresh_database() as name:
        make_society(n_agents=n_agents, cohort_size=20, n_messages=n_messages)
        from tests.doors import database_url

        os.environ["DATABASE_URL"] = database_url()
        return name, {what: _in_own_process(what) for what in (EXPORT, RESUME)}


def _measure(what: str) -> dict[str, Any]:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "simsite.settings")
    django.setup()
    from engine.models import Simulation

    measure = {RESUME: _resume, EXPORT: _export}[what]
    seconds, n_lines = measure(Simulation.objects.get())
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return asdict(Cost(seconds=seconds, bytes_at_most=most, n_lines=n_lines))


def _resume(simulation: Simulation) -> tuple[float, int]:
    return talk(simulation, n_turns=1, n_slots=1).first_turn_seconds, 0


def _export(simulation: Simulation) -> tuple[float, int]:
    from engine.export.rows import Scope
    from engine.export.writer import write_export

    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        n_lines = write_export(Scope(simulation=simulation), Path(folder) / "export")
        return time.perf_counter() - began, sum(n_lines.values())


def main(words: list[str]) -> None:
    """Be the benchmark, or one of its processes, which tell what they found as JSON."""
    match words:
        case [what, n_agents, n_messages] if what == FILL:
            json.dump(_fill(int(n_agents), int(n_messages)), sys.stdout)
        case [what] if what in {RESUME, EXPORT}:
            json.dump(_measure(what), sys.stdout)
        case _:
            run(tables, __doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
