"""The decision of the gate against a truth table written out independently of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cohorts.rules import Policy, Rule, Topology, Verdict, build_topology

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

ALDER, BIRCH, CEDAR, DOGWOOD, ELM = 1, 2, 3, 4, 5
FIELD, GARDEN, HEDGE = 10, 20, 30
NAMES = {FIELD: "field", GARDEN: "garden", HEDGE: "hedge"}
MEMBERSHIPS = (
    (FIELD, ALDER),
    (FIELD, BIRCH),
    (GARDEN, BIRCH),
    (GARDEN, CEDAR),
    (HEDGE, DOGWOOD),
)


def topology(
    policy: Policy = Policy.OPEN,
    memberships: Iterable[tuple[int, int]] = MEMBERSHIPS,
    agents: Iterable[int] = (ALDER, BIRCH, CEDAR, DOGWOOD, ELM),
    running: Iterable[int] | None = None,
    members_of: Mapping[int, Iterable[int]] | None = None,
) -> Topology:
    known = tuple(agents)
    return build_topology(
        version=1,
        policy=policy,
        memberships=memberships,
        names=NAMES,
        agents=known,
        running=known if running is None else running,
        members_of=members_of or {},
    )


PERMITTED_PAIRS = {
    Policy.OPEN: {(1, 2), (1, 5), (2, 3), (2, 5), (3, 5), (4, 5)},
    Policy.ISOLATED: {(1, 2), (2, 3)},
    Policy.OFF: {(a, b) for a in range(1, 6) for b in range(a + 1, 6)},
}


@pytest.mark.parametrize("policy", list(Policy))
def test_permits_matches_the_written_out_pairs(policy: Policy) -> None:
    gate = topology(policy)
    everybody = range(1, 6)
    found = {(a, b) for a in everybody for b in everybody if a < b and gate.permits(a, b)}
    assert found == PERMITTED_PAIRS[policy]
    assert all(gate.permits(a, b) == gate.permits(b, a) for a in everybody for b in everybody)
    assert all(gate.permits(a, a) for a in everybody)


@pytest.mark.parametrize("policy", [Policy.OPEN, Policy.ISOLATED])
def test_permits_refuses_an_unknown_agent_while_in_force(policy: Policy) -> None:
    gate = topology(policy)
    assert not gate.permits(ELM, 99)
    assert not gate.permits(99, ELM)
    assert not gate.permits(99, 99)
    assert topology(Policy.OFF).permits(ELM, 99)


def test_decide_answers_rule_1_when_the_policy_is_off() -> None:
    decision = topology(Policy.OFF).decide(ALDER, author=None, is_bot=True)
    assert (decision.permitted, decision.rule) == (True, Rule.OFF)
    assert decision.reason == "The policy is off: there is no gate."
    assert topology().decide(ALDER, author=None, is_bot=True).rule != Rule.OFF


def test_decide_answers_preflight_when_isolation_would_silence_everybody() -> None:
    refused = topology(Policy.ISOLATED, running=(ELM,))
    assert refused.verdict is Verdict.REFUSED
    decision = refused.decide(ELM, author=ALDER, is_bot=True)
    assert (decision.permitted, decision.rule) == (True, Rule.PREFLIGHT)
    assert topology(Policy.ISOLATED, running=(ELM, ALDER)).verdict is Verdict.IN_FORCE


def test_decide_answers_rule_2_by_the_bot_flag_alone() -> None:
    gate = topology(Policy.ISOLATED)
    assert gate.decide(ALDER, author=None, is_bot=False).rule == Rule.PERSON
    assert gate.decide(ALDER, author=DOGWOOD, is_bot=False).rule == Rule.PERSON
    assert gate.decide(ALDER, author=None, is_bot=True).rule == Rule.UNATTRIBUTED


def test_decide_answers_rule_3_in_a_private_channel_of_the_actor() -> None:
    gate = topology(members_of={7: (ALDER, DOGWOOD)})
    member = gate.decide(ALDER, author=DOGWOOD, is_bot=True, private_channel=7)
    assert (member.permitted, member.rule) == (True, Rule.PRIVATE_CHANNEL)
    outsider = gate.decide(BIRCH, author=DOGWOOD, is_bot=True, private_channel=7)
    assert (outsider.permitted, outsider.rule) == (False, Rule.APART)
    unknown = gate.decide(ALDER, author=DOGWOOD, is_bot=True, private_channel=8)
    assert (unknown.permitted, unknown.rule) == (False, Rule.APART)


def test_decide_answers_rule_4_in_a_thread_the_actor_has_open() -> None:
    gate = topology()
    inside = gate.decide(ALDER, author=DOGWOOD, is_bot=True, own_open_thread=True)
    assert (inside.permitted, inside.rule) == (True, Rule.OPEN_THREAD)
    assert gate.decide(ALDER, author=DOGWOOD, is_bot=True).permitted is False


@pytest.mark.parametrize("author", [None, 99])
def test_decide_answers_rule_5_for_a_bot_that_nobody_knows(author: int | None) -> None:
    decision = topology().decide(ELM, author=author, is_bot=True)
    assert (decision.permitted, decision.rule) == (False, Rule.UNATTRIBUTED)
    assert topology().decide(ELM, author=ALDER, is_bot=True).permitted is True


@pytest.mark.parametrize(
    ("policy", "actor", "author", "reason", "shared"),
    [
        (Policy.OPEN, ALDER, BIRCH, "They share the cohort field.", ("field",)),
        (Policy.ISOLATED, CEDAR, BIRCH, "They share the cohort garden.", ("garden",)),
        (Policy.OPEN, ALDER, ELM, "The policy is open, and the author is in no cohort.", ()),
        (Policy.OPEN, ELM, ALDER, "The policy is open, and the actor is in no cohort.", ()),
        (Policy.ISOLATED, ELM, ELM, "The entry is the actor's own.", ()),
        (
            Policy.OPEN,
            BIRCH,
            BIRCH,
            "The entry is the actor's own.",
            ("field", "garden"),
        ),
    ],
)
def test_decide_answers_rule_6_with_its_reason(
    policy: Policy, actor: int, author: int, reason: str, shared: tuple[str, ...]
) -> None:
    decision = topology(policy).decide(actor, author=author, is_bot=True)
    assert (decision.permitted, decision.rule) == (True, Rule.COHORTS)
    assert (decision.reason, decision.shared) == (reason, shared)


def test_decide_lists_all_shared_cohorts() -> None:
    gate = topology(memberships=[(c, a) for c in NAMES for a in (ALDER, BIRCH)])
    decision = gate.decide(ALDER, author=BIRCH, is_bot=True)
    assert decision.reason == "They share the cohorts field, garden and hedge."
    assert decision.shared == ("field", "garden", "hedge")


@pytest.mark.parametrize(
    ("policy", "author"), [(Policy.OPEN, CEDAR), (Policy.ISOLATED, CEDAR), (Policy.ISOLATED, ELM)]
)
def test_decide_answers_rule_7_for_agents_apart(policy: Policy, author: int) -> None:
    decision = topology(policy).decide(ALDER, author=author, is_bot=True)
    assert (decision.permitted, decision.rule, decision.shared) == (False, Rule.APART, ())
    assert decision.reason == f"They share no cohort, and the policy is {policy}."


def test_preflight_names_the_loose_running_agents() -> None:
    gate = topology(Policy.ISOLATED, agents=(1, 2, 3, 4, 5, 6), running=(6, 5, 1, 77))
    assert gate.loose_running == (ELM, 6)
    assert gate.running == frozenset({1, 5, 6})


@pytest.mark.parametrize("policy", [Policy.OPEN, Policy.OFF])
def test_preflight_never_refuses_but_under_isolation(policy: Policy) -> None:
    assert topology(policy, memberships=()).verdict is not Verdict.REFUSED
    assert topology(Policy.ISOLATED, memberships=()).verdict is Verdict.REFUSED


def test_build_topology_ignores_memberships_of_unknown_agents() -> None:
    gate = topology(Policy.ISOLATED, memberships=[(FIELD, ALDER), (FIELD, 99)])
    assert gate.cohorts_of == {ALDER: frozenset({FIELD})}


@pytest.mark.parametrize(
    ("policy", "author", "keys"),
    [
        (Policy.OPEN, BIRCH, (-2, FIELD, GARDEN)),
        (Policy.OPEN, ELM, (-1,)),
        (Policy.OPEN, None, ()),
        (Policy.ISOLATED, BIRCH, (FIELD, GARDEN)),
        (Policy.ISOLATED, ELM, ()),
        (Policy.OFF, None, (-1,)),
    ],
)
def test_publishes_files_a_bot_entry_under_sorted_keys(
    policy: Policy, author: int | None, keys: tuple[int, ...]
) -> None:
    assert topology(policy).publishes(author, is_bot=True) == keys
    assert topology(policy).publishes(author, is_bot=False) == (-1,)


@pytest.mark.parametrize(
    ("policy", "agent", "keys"),
    [
        (Policy.OPEN, BIRCH, (-1, FIELD, GARDEN)),
        (Policy.OPEN, ELM, (-2, -1)),
        (Policy.ISOLATED, ELM, (-1,)),
        (Policy.OFF, BIRCH, (-1,)),
    ],
)
def test_reads_returns_sorted_keys(policy: Policy, agent: int, keys: tuple[int, ...]) -> None:
    assert topology(policy).reads(agent) == keys


agent_ids = st.integers(1, 6)
topologies = st.builds(
    build_topology,
    version=st.just(1),
    policy=st.sampled_from(Policy),
    memberships=st.sets(st.tuples(st.sampled_from([10, 20, 30]), st.integers(1, 8))),
    names=st.just(NAMES),
    agents=st.sets(agent_ids),
    running=st.sets(agent_ids),
    members_of=st.dictionaries(st.sampled_from([7, 8]), st.sets(agent_ids)),
)


def mates_written_out(gate: Topology, a: int, b: int) -> bool:
    """The pair rule once more, by the words of the law and not by the code's own steps."""
    in_force = gate.policy is not Policy.OFF and not (
        gate.policy is Policy.ISOLATED and not any(gate.cohorts_of.get(r) for r in gate.running)
    )
    if not in_force:
        return True
    if a not in gate.agents or b not in gate.agents:
        return False
    nobody: frozenset[int] = frozenset()
    mine, theirs = gate.cohorts_of.get(a, nobody), gate.cohorts_of.get(b, nobody)
    one_in_none = len(mine) == 0 or len(theirs) == 0
    share = any(cohort in theirs for cohort in mine)
    return a == b or share or (gate.policy is Policy.OPEN and one_in_none)


@given(topologies, agent_ids, agent_ids)
def test_permits_equals_the_law_and_is_symmetric(gate: Topology, a: int, b: int) -> None:
    assert gate.permits(a, b) == mates_written_out(gate, a, b)
    assert gate.permits(a, b) == gate.permits(b, a)


@given(topologies)
def test_feed_keys_meet_exactly_when_the_pair_is_permitted(gate: Topology) -> None:
    for a in gate.agents:
        assert gate.reads(a) == tuple(sorted(gate.reads(a)))
        assert set(gate.publishes(a, is_bot=False)) & set(gate.reads(a))
        for b in gate.agents - {a}:
            met = set(gate.publishes(b, is_bot=True)) & set(gate.reads(a))
            assert bool(met) == gate.permits(a, b)


@given(
    topologies,
    agent_ids,
    st.none() | agent_ids,
    st.booleans(),
    st.none() | st.sampled_from([7, 8, 9]),
    st.booleans(),
)
def test_decide_follows_the_seven_rules_in_order(
    gate: Topology,
    actor: int,
    author: int | None,
    is_bot: bool,
    private_channel: int | None,
    own_open_thread: bool,
) -> None:
    member = private_channel is not None and actor in gate.members_of.get(private_channel, ())
    table = [
        (gate.verdict is Verdict.REFUSED, True, "preflight"),
        (gate.policy is Policy.OFF, True, "1"),
        (not is_bot, True, "2"),
        (member, True, "3"),
        (own_open_thread, True, "4"),
        (author is None or author not in gate.agents, False, "5"),
        (author is not None and mates_written_out(gate, actor, author), True, "6"),
        (True, False, "7"),
    ]
    permitted, rule = next((p, r) for applies, p, r in table if applies)
    decision = gate.decide(
        actor,
        author=author,
        is_bot=is_bot,
        private_channel=private_channel,
        own_open_thread=own_open_thread,
    )
    assert (decision.permitted, decision.rule.value) == (permitted, rule)
