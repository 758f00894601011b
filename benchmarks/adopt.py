"""What a new topology costs on the event loop: who is concerned, and who gains.

5,000 agents in 100 random cohorts of 250 each, under both policies. The baseline is comparing the
cohorts of every agent before and after, one by one: the least that anybody has to do who is to tell
which agents have other cohorts now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

from benchmarks.parts.measuring import Table, compare, duration, run, times
from cohorts.rules import Policy, Topology, build_topology, gainers, mates_changed

N_AGENTS, N_AGENTS_SMALL = 5_000, 200
N_COHORTS = 100

Memberships = frozenset[tuple[int, int]]


def tables(*, small: bool) -> Iterator[Table]:
    n_agents = N_AGENTS_SMALL if small else N_AGENTS
    before, changes = _changes(n_agents)
    rows = []
    for policy in (Policy.OPEN, Policy.ISOLATED):
        old = _topology(1, policy, before, n_agents)
        for name, change in changes.items():
            new = _topology(2, policy, change(), n_agents)
            rows.append((f"{policy}, {name}", *_row(old, new, n_rounds=1 if small else 5)))
    yield Table(
        title=f"A new topology, {n_agents:,} agents",
        columns=("change", "comparing cohorts", "adopting", "ratio"),
        rows=rows,
    )


def _row(old: Topology, new: Topology, *, n_rounds: int) -> tuple[str, str, str]:
    def compare_cohorts() -> list[int]:
        agents = old.cohorts_of.keys() | new.cohorts_of.keys()
        return [one for one in agents if old.cohorts_of.get(one) != new.cohorts_of.get(one)]

    def adopt() -> None:
        mates_changed(old, new)
        gainers(old, new)

    found = compare({"baseline": compare_cohorts, "adopting": adopt}, n_rounds=n_rounds)
    ours = found["adopting"]
    return duration(found["baseline"].seconds), duration(ours.seconds), times(ours.ratio)


def _changes(n_agents: int) -> tuple[Memberships, dict[str, Callable[[], Memberships]]]:
    luck = Random(1)
    size = n_agents // 20
    before: Memberships = frozenset(
        (cohort, agent)
        for cohort in range(N_COHORTS)
        for agent in luck.sample(range(n_agents), size)
    )
    movers = frozenset(luck.sample(range(n_agents), size))
    return before, {
        "one membership goes": lambda: before - {min(before)},
        "a cohort goes": lambda: frozenset(row for row in before if row[0] != 0),
        "a twentieth moves on": lambda: frozenset(
            ((cohort + 1) % N_COHORTS if agent in movers else cohort, agent)
            for cohort, agent in before
        ),
        "a twentieth leaves": lambda: frozenset(row for row in before if row[1] not in movers),
        "the last cohort goes": frozenset,
    }


def _topology(version: int, policy: Policy, memberships: Memberships, n_agents: int) -> Topology:
    return build_topology(
        version=version,
        policy=policy,
        memberships=sorted(memberships),
        names={cohort: f"c{cohort}" for cohort in range(N_COHORTS)},
        agents=range(n_agents),
        running=range(n_agents),
        members_of={},
    )


if __name__ == "__main__":
    run(tables, __doc__)
