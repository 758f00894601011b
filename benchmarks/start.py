"""How long `manage.py runsim` takes from its start to its first turn, on SQLite, with the demo's roster.

The baseline is a command of the same project that only looks whether its settings can be used: what
Python and Django need to be there at all. Somebody who starts a run should see a turn in two seconds.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from sqlite3 import connect
from statistics import median

from benchmarks.parts.measuring import Table, duration, run, seconds_of, times

ROOT = Path(__file__).parents[1]
MANAGE = (sys.executable, str(ROOT / "manage.py"))
N_STARTS = 5


def tables(*, small: bool) -> Iterator[Table]:
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "bench.sqlite3"
        environment = os.environ | {"DATABASE_URL": f"sqlite:///{database}"}
        _manage(environment, "migrate", "--verbosity", "0")
        _manage(environment, "loadroster", "engine/demo/roster", "--simulation", "demo")
        rounds = [_round(environment, database) for _ in range(1 if small else N_STARTS)]
    yield Table(
        title="From the start of a run to its first turn",
        columns=("", "time", "ratio"),
        rows=[
            ("`manage.py check`", duration(median(base for base, _ in rounds)), times(1)),
            (
                "`manage.py runsim`, to its first turn",
                duration(median(ours for _, ours in rounds)),
                times(median(ours / base for base, ours in rounds)),
            ),
        ],
    )


def _round(environment: dict[str, str], database: Path) -> tuple[float, float]:
    """Return the seconds of the baseline, and those from a start to its first turn."""
    baseline = seconds_of(lambda: _manage(environment, "check"))
    return baseline, _seconds_to_first_turn(environment, database)


def _seconds_to_first_turn(environment: dict[str, str], database: Path) -> float:
    begun_at = datetime.now(UTC)
    words = ("--simulation", "demo", "--fresh", "--max-turns", "1", "--concurrent-turns", "1")
    _manage(environment, "runsim", *words)
    connection = connect(database)
    row = connection.execute("SELECT max(selected_at) FROM engine_turn").fetchone()
    connection.close()
    return (datetime.fromisoformat(row[0]).replace(tzinfo=UTC) - begun_at).total_seconds()


def _manage(environment: dict[str, str], *words: str) -> None:
    subprocess.run(
        [*MANAGE, *words], cwd=ROOT, env=environment, check=True, capture_output=True, timeout=120
    )


if __name__ == "__main__":
    run(tables, __doc__)
