"""What another topology would do, against every pair asked one by one."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cohorts.foresight import foresee, silent
from cohorts.rules import Policy, Topology, Verdict, build_topology

if TYPE_CHECKING:
    from collections.abc import Collection

AGENTS = tuple(range(1, 8))


def topology(
    memberships: Collection[tuple[int, int]],
    policy: Policy = Policy.OPEN,
    running: Collection[int] = AGENTS,
) -> Topology:
    return build_topology(
        version=1,
        policy=policy,
        memberships=memberships,
        names={},
        agents=AGENTS,
        running=running,
        members_of={},
    )


def open_pairs(gate: Topology) -> set[tuple[int, int]]:
    return {
        (one, other)
        for one, other in combinations(sorted(gate.running), 2)
        if gate.permits(one, other)
    }


members = st.sets(st.tuples(st.integers(1, 3), st.sampled_from(AGENTS)), max_size=8)
topologies = st.builds(topology, members, st.sampled_from(Policy), st.sets(st.sampled_from(AGENTS)))


@given(old=topologies, new=topologies)
def test_foresight_equals_the_pairs_asked_one_by_one(old: Topology, new: Topology) -> None:
    before, after = open_pairs(old), open_pairs(new)
    found = foresee(old, new)
    assert set(found.opened.first) == after - before
    assert set(found.closed.first) == before - after
    assert (found.opened.n, found.closed.n) == (len(after - before), len(before - after))
    for gate, told in ((old, found.blocked_before), (new, found.blocked_after)):
        n_pairs = len(gate.running) * (len(gate.running) - 1) / 2
        assert told == pytest.approx(1 - len(open_pairs(gate)) / n_pairs if n_pairs else 0)
    hearing = {one for pair in after for one in pair}
    heard = {one for pair in before for one in pair}
    quiet = new.running - hearing
    assert silent(new) == tuple(sorted(quiet))
    assert found.n_silent == len(quiet)
    assert set(found.silenced) == {one for one in quiet if one in heard or one not in old.running}
    lost = {one: sum(one in pair for pair in before - after) for one in AGENTS}
    assert found.lost_readers == {one: n for one, n in lost.items() if n}


def test_agent_that_leaves_its_last_cohort_under_open_is_free() -> None:
    old = topology({(1, 1), (1, 2), (2, 3)})
    found = foresee(old, topology({(1, 2), (2, 3)}))
    assert found.freed == (1,)
    assert found.opened.first == ((1, 3),)


@pytest.mark.parametrize("policy", [Policy.ISOLATED, Policy.OFF])
def test_nobody_is_freed_under_another_policy(policy: Policy) -> None:
    found = foresee(topology({(1, 1), (1, 2)}, policy), topology({(1, 2)}, policy))
    assert found.freed == ()


def test_policy_that_would_silence_everybody_is_told_by_its_verdict() -> None:
    assert foresee(topology(()), topology((), Policy.ISOLATED)).verdict is Verdict.REFUSED


def test_pairs_are_named_up_to_a_number_and_counted_beyond() -> None:
    found = foresee(topology((), running=(1,)), topology(()), listed=3)
    assert found.opened.first == ((1, 2), (1, 3), (1, 4))
    assert found.opened.n == 21


def test_ten_thousand_agents_are_compared_without_building_pairs() -> None:
    agents = range(10_000)
    old, new = (
        build_topology(
            version=1,
            policy=Policy.ISOLATED,
            memberships=[(agent % n, agent) for agent in agents],
            names={},
            agents=agents,
            running=agents,
            members_of={},
        )
        for n in (500, 400)
    )
    found = foresee(old, new)
    assert found.opened.n - found.closed.n == 400 * (25 * 24 // 2) - 500 * (20 * 19 // 2)
