"""What differs between two topologies, against a comparison of every pair."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from cohorts.rules import Policy, Topology, build_topology, gained, gainers, mates_changed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def topology(
    *memberships: tuple[int, int],
    policy: Policy = Policy.ISOLATED,
    agents: Iterable[int] = (1, 2, 3, 4),
    members_of: Mapping[int, Iterable[int]] | None = None,
) -> Topology:
    known = tuple(agents)
    return build_topology(
        version=1,
        policy=policy,
        memberships=memberships,
        names={10: "field", 20: "garden"},
        agents=known,
        running=known,
        members_of=members_of or {},
    )


def test_mates_changed_is_empty_for_equal_topologies() -> None:
    gate = topology((10, 1), (10, 2))
    assert mates_changed(gate, gate) == ()
    assert gainers(gate, gate) == ()


def test_mates_changed_names_a_joiner_and_its_new_mates_only() -> None:
    old = topology((10, 1), (10, 2), (20, 3))
    new = topology((10, 1), (10, 2), (20, 3), (20, 1))
    assert mates_changed(old, new) == (1, 3)
    assert new.changed_since(old) == (1, 3)
    assert gainers(old, new) == (1, 3)
    assert gained(old, new, 3)
    assert not gained(old, new, 2)


def test_mates_changed_names_a_leaver_and_nobody_gains() -> None:
    old = topology((10, 1), (10, 2), (10, 3))
    new = topology((10, 2), (10, 3))
    assert mates_changed(old, new) == (1, 2, 3)
    assert gainers(old, new) == ()


def test_mates_changed_leaves_out_a_mate_that_shares_another_cohort() -> None:
    old = topology((10, 1), (10, 2), (20, 1), (20, 2))
    new = topology((10, 2), (20, 1), (20, 2))
    assert mates_changed(old, new) == (1,)


def test_mates_changed_names_everybody_when_an_agent_gets_loose_under_open() -> None:
    old = topology((10, 1), (10, 2), (20, 3), policy=Policy.OPEN)
    new = topology((10, 1), (10, 2), policy=Policy.OPEN)
    assert mates_changed(old, new) == (1, 2, 3)
    assert gainers(old, new) == (1, 2, 3)


def test_mates_changed_names_everybody_when_the_verdict_changes() -> None:
    old = topology()
    new = topology((10, 1), (10, 2))
    assert mates_changed(old, new) == (1, 2, 3, 4)
    assert gainers(old, new) == ()
    assert gainers(new, old) == (1, 2, 3, 4)


def test_a_lone_joiner_gains_nobody() -> None:
    old = topology((10, 1))
    new = topology((10, 1), (20, 2))
    assert mates_changed(old, new) == (2,)
    assert gainers(old, new) == ()


def test_mates_changed_names_those_who_enter_or_leave_a_private_channel() -> None:
    old = topology((10, 1), members_of={7: (1, 2)})
    new = topology((10, 1), members_of={7: (2, 3), 8: (4,)})
    assert mates_changed(old, new) == (1, 3, 4)
    assert gainers(old, new) == (3, 4)


def test_mates_changed_names_a_new_agent_where_no_gate_is_in_force() -> None:
    old = topology(policy=Policy.OFF, agents=(1, 2))
    new = topology(policy=Policy.OFF, agents=(1, 2, 3))
    assert gainers(old, new) == (1, 2, 3)
    assert mates_changed(new, old) == (1, 2, 3)


topologies = st.builds(
    build_topology,
    version=st.just(1),
    policy=st.sampled_from(Policy),
    memberships=st.sets(st.tuples(st.sampled_from([10, 20, 30]), st.integers(1, 6))),
    names=st.just({10: "field", 20: "garden", 30: "hedge"}),
    agents=st.sets(st.integers(1, 6)),
    running=st.sets(st.integers(1, 6)),
    members_of=st.dictionaries(st.just(7), st.sets(st.integers(1, 6))),
)


def pair_differs(old: Topology, new: Topology, a: int, b: int) -> tuple[bool, bool]:
    before = {a, b} <= old.agents and old.permits(a, b)
    after = {a, b} <= new.agents and new.permits(a, b)
    return before, after


@given(topologies, topologies)
def test_changes_equal_a_comparison_of_every_pair(old: Topology, new: Topology) -> None:
    everybody = old.agents | new.agents
    nobody: frozenset[int] = frozenset()
    old_inside, new_inside = old.members_of.get(7, nobody), new.members_of.get(7, nobody)
    changed, gaining = set(old_inside ^ new_inside), set(new_inside - old_inside)
    for a in everybody:
        if (a in old.agents) != (a in new.agents) or old.cohorts(a) != new.cohorts(a):
            changed.add(a)
        for b in everybody - {a}:
            before, after = pair_differs(old, new, a, b)
            changed |= {a} if before != after else set()
            gaining |= {a} if after and not before else set()
    if (old.policy, old.verdict) != (new.policy, new.verdict):
        changed = set(everybody)
    assert mates_changed(old, new) == tuple(sorted(changed))
    assert gainers(old, new) == tuple(sorted(gaining))
