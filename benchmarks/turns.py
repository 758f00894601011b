"""How many turns a second a run takes, each with one message, one call and its durable commit.

The model answers at once, so that only our own work counts. All pairs have talked before, so that
every turn reads as much of its thread as a turn ever does. Every row changes one thing of the
first, which is the baseline; each is a process and a database of its own. What is committed
survives `kill -9` (and, on SQLite, the last moments before a loss of power may be lost:
`synchronous` is NORMAL; PostgreSQL keeps those too).

Machines differ by more than any of this, and so does one machine from minute to minute. So a turn
is also told in the plainest thing that Django does: reading one small row by its key, in the same
process right before and after. The ratio compares turns told in reads.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median

from benchmarks.parts.database import fresh_database
from benchmarks.parts.measuring import Table, duration, run, seconds_of, times
from benchmarks.parts.society import make_society
from benchmarks.parts.talking import talk

ROOT = Path(__file__).parents[1]
#: Each pair has said so much before: more than a turn is shown of it, so that all turns are alike.
N_SAID = 40
#: The word that makes this module measure one case and tell it as JSON.
ONE = "--one"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """`cohort_size` None is one cohort of all."""

    n_slots: int = 10
    n_agents: int = 1_000
    cohort_size: int | None = 20
    n_messages: int = 0
    n_turns: int = 5_000

    @property
    def limit(self) -> int:
        """Return the turns to take: a pair has a hundred messages at most."""
        return min(self.n_turns, self.n_agents // 2 * (97 - N_SAID))


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """What one process found; `read_seconds` is what reading one row takes."""

    database: str
    turns_per_second: float
    read_seconds: float

    @property
    def n_reads(self) -> float:
        """How many rows could be read in the time of a turn."""
        return 1 / self.turns_per_second / self.read_seconds


def cases(*, small: bool) -> list[Case]:
    """Return the baseline, and what differs from it in one thing."""
    if small:
        first = Case(n_agents=12, n_turns=30)
        return [first, replace(first, n_messages=120)]
    first = Case()
    return [
        first,
        *(replace(first, n_slots=slots) for slots in (1, 3, 50)),
        *(replace(first, n_agents=agents) for agents in (12, 100, 10_000)),
        replace(first, cohort_size=None),
        replace(first, n_agents=10_000, cohort_size=None),
        *(replace(first, n_messages=messages) for messages in (100_000, 1_000_000)),
    ]


def tables(*, small: bool) -> Iterator[Table]:
    asked = cases(small=small)
    rounds = [[_in_own_process(case) for case in asked] for _ in range(1 if small else 3)]
    rows = []
    for place, case in enumerate(asked):
        found = [one[place] for one in rounds]
        speed = median(one.turns_per_second for one in found)
        ratio = median(one[0].n_reads / one[place].n_reads for one in rounds)
        reads = median(one.n_reads for one in found)
        rows.append((*_words(case), f"{speed:,.0f}", times(ratio), f"{reads:.1f}"))
    read = median(one.read_seconds for found in rounds for one in found)
    yield Table(
        title=f"Turns a second, {rounds[0][0].database} (a row read: {duration(read)})",
        columns=("slots", "agents", "cohorts of", "stored", "turns/s", "ratio", "in reads"),
        rows=rows,
    )


def _words(case: Case) -> tuple[str, str, str, str]:
    cohort = "all" if case.cohort_size is None else f"{case.cohort_size}"
    return f"{case.n_slots}", f"{case.n_agents:,}", cohort, f"{case.n_messages:,}"


def _in_own_process(case: Case) -> Speed:
    words = [sys.executable, "-m", "benchmarks.turns", ONE, json.dumps(asdict(case))]
    done = subprocess.run(words, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return Speed(**json.loads(done.stdout))


def _measure(case: Case) -> None:
    with fresh_database() as name:
        simulation = make_society(
            n_agents=case.n_agents,
            cohort_size=case.cohort_size,
            n_messages=case.n_messages,
            n_said=N_SAID,
        )
        # The first turns fill caches and compile statements.
        talk(simulation, n_turns=case.limit // 10, n_slots=case.n_slots)
        before = seconds_of(simulation.refresh_from_db, n_calls=1_000)
        talked = talk(simulation, n_turns=case.limit * 9 // 10, n_slots=case.n_slots)
        after = seconds_of(simulation.refresh_from_db, n_calls=1_000)
    found = Speed(
        database=name,
        turns_per_second=talked.turns_per_second,
        read_seconds=(before + after) / 2,
    )
    json.dump(asdict(found), sys.stdout)


if __name__ == "__main__":
    if sys.argv[1:2] == [ONE]:
        _measure(Case(**json.loads(sys.argv[2])))
    else:
        run(tables, __doc__)
