"""Measures how long `manage.py runsim` takes from its start to its first turn, on SQLite.

Run `python -m benchmarks.start`; it makes a database of its own in a temporary folder, with the
demo's roster. The target is two seconds.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from sqlite3 import connect

ROOT = Path(__file__).parents[1]
MANAGE = (sys.executable, str(ROOT / "manage.py"))
N_STARTS = 5


def main() -> None:
    """Print the seconds of five starts, each in an empty world."""
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "bench.sqlite3"
        environment = os.environ | {"DATABASE_URL": f"sqlite:///{database}"}
        _manage(environment, "migrate", "--verbosity", "0")
        _manage(environment, "loadroster", "engine/demo/roster", "--simulation", "demo")
        starts = [_seconds_to_first_turn(environment, database) for _ in range(N_STARTS)]
    print("start to first turn:", ", ".join(f"{seconds:.2f} s" for seconds in starts))


def _seconds_to_first_turn(environment: dict[str, str], database: Path) -> float:
    begun_at = datetime.now(UTC)
    words = ("--simulation", "demo", "--fresh", "--max-turns", "1", "--concurrent-turns", "1")
    _manage(environment, "runsim", *words)
    with connect(database) as connection:
        row = connection.execute("SELECT max(selected_at) FROM engine_turn").fetchone()
    connection.close()
    return (datetime.fromisoformat(row[0]).replace(tzinfo=UTC) - begun_at).total_seconds()


def _manage(environment: dict[str, str], *words: str) -> None:
    subprocess.run(
        [*MANAGE, *words], cwd=ROOT, env=environment, check=True, capture_output=True, timeout=120
    )


if __name__ == "__main__":
    main()
