"""Time on the loop of a new topology: `python -m benchmarks.adopt`.

5,000 agents in 100 random cohorts of 250 each, under both policies; a topology is adopted after one
membership goes, after a whole cohort goes, and after each agent of a twentieth changes cohorts.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from random import Random

from cohorts.rules import Policy, Topology, build_topology, gainers, mates_changed

N_AGENTS = 5_000
N_COHORTS = 100
SIZE = N_AGENTS // 20

Memberships = frozenset[tuple[int, int]]


def main() -> None:
    luck = Random(1)
    agents = range(N_AGENTS)
    before: Memberships = frozenset(
        (cohort, agent) for cohort in range(N_COHORTS) for agent in luck.sample(agents, SIZE)
    )
    movers = frozenset(luck.sample(agents, SIZE))
    changes: dict[str, Callable[[], Memberships]] = {
        "one membership goes": lambda: before - {min(before)},
        "a cohort goes": lambda: frozenset(row for row in before if row[0] != 0),
        "a twentieth moves on": lambda: frozenset(
            ((cohort + 1) % N_COHORTS if agent in movers else cohort, agent)
            for cohort, agent in before
        ),
        "a twentieth leaves": lambda: frozenset(row for row in before if row[1] not in movers),
        "the last cohort goes": frozenset,
    }
    for policy in (Policy.OPEN, Policy.ISOLATED):
        old = _topology(1, policy, before)
        for name, change in changes.items():
            print(f"{policy}, {name}: {_seconds(old, _topology(2, policy, change())):.2f} s")


def _topology(version: int, policy: Policy, memberships: Memberships) -> Topology:
    return build_topology(
        version=version,
        policy=policy,
        memberships=sorted(memberships),
        names={cohort: f"c{cohort}" for cohort in range(N_COHORTS)},
        agents=range(N_AGENTS),
        running=range(N_AGENTS),
        members_of={},
    )


def _seconds(old: Topology, new: Topology) -> float:
    began = time.perf_counter()
    mates_changed(old, new)
    gainers(old, new)
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
