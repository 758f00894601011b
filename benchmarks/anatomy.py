"""Where each microsecond of a turn goes: the loop's work by its parts, and that of the threads.

The loop's own thread is profiled, which makes everything in it slower by about the same factor, so
only shares are told of it. The threads are timed by the processor time that they used. What the
loop waits for, it does not compute: turns share those waits.
"""

from __future__ import annotations

import cProfile
import pstats
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.parts.database import fresh_database
from benchmarks.parts.measuring import Table, duration, run
from benchmarks.parts.society import make_society
from benchmarks.parts.talking import talk
from benchmarks.turns import N_SAID

ROOT = str(Path(__file__).parents[1])
#: The parts of a turn by where their code is, the first that fits.
PARTS = {
    "scheduler": ("core/scheduler.py",),
    "who has work": ("core/standing.py", "loop/watch.py", "core/parked.py", "core/days.py"),
    "gate": ("cohorts/rules.py", "core/gate.py"),
    "view": ("core/world.py", "core/participation.py", "core/interests.py", "phases/scene.py"),
    "phases": ("engine/phases/", "engine/turn/", "core/mentions.py", "core/texts.py"),
    "prepare and apply": ("core/door/", "core/draft.py", "core/group.py", "core/claims.py"),
    "records copied": ("dataclasses.py",),
    "commit door": ("loop/committer.py", "loop/engine.py", "loop/conduct.py", "engine/store/"),
    "telemetry": ("loop/figures.py", "loop/tally.py", "loop/limits.py"),
    "the model's answer": ("benchmarks/",),
    "asyncio": ("asyncio/", "selectors.py", "concurrent/"),
}


def tables(*, small: bool) -> Iterator[Table]:
    n_agents, n_turns = (12, 60) if small else (1_000, 4_000)
    with fresh_database() as name:
        simulation = make_society(n_agents=n_agents, cohort_size=20, n_messages=0, n_said=N_SAID)
        talk(simulation, n_turns=n_turns // 10, n_slots=10)
        threads = _ThreadTimes()
        with threads:
            speed = talk(simulation, n_turns=n_turns, n_slots=10).turns_per_second
        shares = _shares(lambda: talk(simulation, n_turns=n_turns, n_slots=10))
    whole = 1 / speed
    loop = whole - sum(threads.seconds.values()) / n_turns
    rows = [("a turn", duration(whole), "100 %")]
    for part, seconds in threads.seconds.items():
        rows.append((part, duration(seconds / n_turns), _percent(seconds / n_turns / whole)))
    rows.append(("the loop, and waits", duration(loop), _percent(loop / whole)))
    rows += [
        (f"– {part}", duration(share * loop), _percent(share * loop / whole))
        for part, share in shares.items()
    ]
    yield Table(
        title=f"Where a turn's time goes, 10 slots, {n_agents:,} agents, {name}",
        columns=("part", "time", "share"),
        rows=rows,
    )


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


class _ThreadTimes:
    """Counts the processor time that reading and writing take in their threads."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self._undo: list[tuple[Any, str, Callable[..., Any]]] = []

    def __enter__(self) -> None:
        from engine.store.database import store
        from engine.store.database.writing import Writer

        self._count(store, "read_texts", "texts read")
        self._count(Writer, "write", "rows stored")

    def __exit__(self, *_raised: object) -> None:
        for owner, name, method in self._undo:
            setattr(owner, name, method)

    def _count(self, owner: Any, name: str, part: str) -> None:
        method = getattr(owner, name)

        def counted(*args: Any, **options: Any) -> Any:
            began = time.thread_time()
            try:
                return method(*args, **options)
            finally:
                self.seconds[part] += time.thread_time() - began

        self._undo.append((owner, name, method))
        setattr(owner, name, counted)


def _shares(work: Callable[[], object]) -> dict[str, float]:
    """Return each part's share of what the main thread computes, the largest first."""
    profile = cProfile.Profile()
    profile.runcall(work)
    found: dict[str, float] = defaultdict(float)
    stats: Any = pstats.Stats(profile)
    for (file, _, name), (_, _, seconds, _, callers) in stats.stats.items():
        if "poll" in name:
            continue
        if file == "~":  # of C: it belongs to who called it
            for (caller, _, _), (_, _, its_seconds, _) in callers.items():
                found[_part_of(caller)] += its_seconds
        else:
            found[_part_of(file)] += seconds
    whole = sum(found.values())
    return {
        part: seconds / whole for part, seconds in sorted(found.items(), key=lambda item: -item[1])
    }


def _part_of(file: str) -> str:
    for part, places in PARTS.items():
        if any(place in file for place in places):
            return part
    return "the rest"


if __name__ == "__main__":
    run(tables, __doc__)
