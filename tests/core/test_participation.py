"""Who may speak with whom: every reason, in both directions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from engine.core.participation import (
    Refusal,
    answer_refusal,
    debts,
    has_seat,
    invitation_refusal,
    may_deal,
    opposite,
    owes,
    pair_refusal,
)
from engine.core.records import InvitationKind, PairHistory, Side, Status
from tests.core.facts import (
    AT,
    PRIVATE,
    PUBLIC,
    add_root,
    add_thread,
    agent,
    invitation,
    later,
    root,
    rules,
    thread,
    world,
)

if TYPE_CHECKING:
    from engine.core.world import World


def answering(facts: World, one: int, seq: int, **settings: Any) -> str:
    refusal = answer_refusal(facts, one, facts.roots[seq], AT, rules(**settings))
    return "" if refusal is None else refusal.reason


def pairing(facts: World, root_seq: int | None = None, **settings: Any) -> Refusal | None:
    return pair_refusal(facts, 1, 2, root_seq, AT, rules(**settings))


def test_side_owes_when_the_other_spoke_last() -> None:
    talk = thread(1, opener=1, partner=2, last_agent=1)
    assert (owes(talk, 1), owes(talk, 2), owes(talk, 3)) == (False, True, False)


def test_side_owes_when_a_person_called_it_after_its_view() -> None:
    talk = thread(1, opener=1, partner=2, last_agent=1)
    called = replace(talk, opener=Side(agent=1, viewed=2, called=3))
    assert owes(called, 1)
    assert not owes(replace(called, opener=Side(agent=1, viewed=3, called=3)), 1)


def test_lone_side_owes_only_a_person() -> None:
    talk = thread(1, opener=1, partner=None, last_agent=1)
    assert not owes(talk, 1)
    assert owes(replace(talk, opener=Side(agent=1, viewed=2, called=3)), 1)


def test_nameless_word_is_owed_until_one_has_spoken() -> None:
    """Between two agents by whoever did not speak last; alone, by the one that is there."""
    talk = thread(1, opener=1, partner=2, last_agent=1, last_agent_ordinal=2, asked=3)
    assert (owes(talk, 1), owes(talk, 2)) == (False, True)
    answered = replace(talk, last_agent=2, last_agent_ordinal=4)
    assert (owes(answered, 1), owes(answered, 2)) == (True, False)
    alone = thread(1, opener=1, partner=None, last_agent=1, last_agent_ordinal=2, asked=3)
    assert owes(alone, 1)
    # It spoke after the word, though with an older view: it is not asked twice.
    assert not owes(replace(alone, last_agent_ordinal=4), 1)
    first = thread(1, opener=1, partner=2, last_agent=None, last_agent_ordinal=2, asked=3)
    assert (owes(first, 1), owes(first, 2)) == (True, True)
    read = replace(first, opener=Side(agent=1, viewed=3))
    assert (owes(read, 1), owes(read, 2)) == (False, True)


def test_nobody_owes_in_a_cycle_in_which_no_agent_spoke_unless_called() -> None:
    talk = thread(1, opener=1, partner=2, last_agent=None)
    assert (owes(talk, 1), owes(talk, 2)) == (False, False)


def test_debts_are_the_threads_in_which_one_owes() -> None:
    facts = world(3)
    add_thread(facts, 1, opener=2, partner=1)
    add_thread(facts, 3, opener=1, partner=3)
    assert [talk.root for talk in debts(facts, 1)] == [1]
    assert [talk.root for talk in debts(facts, 3)] == [3]
    assert debts(facts, 2) == ()


def test_seat_is_free_below_the_threshold_claims_counted() -> None:
    facts = world(2)
    add_thread(facts, 1, opener=1, partner=2)
    judged_by = rules(active_thread_threshold=2)
    assert has_seat(facts, judged_by.claims, 1, judged_by.config)
    judged_by.claims.take_seat(1, 5)
    assert not has_seat(facts, judged_by.claims, 1, judged_by.config)


@pytest.mark.parametrize(
    ("author", "answered_by", "one", "expected"),
    [
        (2, (), 1, 2),
        (2, (3,), 1, 2),
        (1, (), 1, None),
        (1, (3,), 1, 3),
        (None, (), 1, None),
        (None, (3,), 1, 3),
    ],
)
def test_opposite_is_whom_an_answer_would_deal_with(
    author: int | None, answered_by: tuple[int, ...], one: int, expected: int | None
) -> None:
    assert opposite(root(1, author, answered_by=answered_by), one) == expected


def test_answer_is_refused_by_the_gate() -> None:
    facts = world(3, {"north": (1, 2), "south": (3,)})
    add_root(facts, 1, author=2)
    assert (answering(facts, 1, 1), answering(facts, 3, 1)) == ("", "not_permitted")


def test_answer_to_a_person_is_refused_by_the_gate_towards_who_answered_first() -> None:
    facts = world(3, {"north": (1, 2), "south": (3,)})
    add_root(facts, 1, author=None, answered_by=(2,))
    assert (answering(facts, 1, 1), answering(facts, 3, 1)) == ("", "not_permitted")


def test_answer_in_a_private_channel_is_the_members_whatever_the_gate() -> None:
    facts = world(4, {"north": (1, 3), "south": (2,)}, members=(1, 2))
    add_root(facts, 1, author=2, channel=PRIVATE)
    assert (answering(facts, 1, 1), answering(facts, 3, 1)) == ("", "not_a_member")


def test_members_of_a_private_channel_deal_there_and_nobody_else() -> None:
    facts = world(4, {"north": (1, 3), "south": (2,)}, members=(1, 2))
    assert (may_deal(facts, 1, 2, PRIVATE), may_deal(facts, 1, 2, PUBLIC)) == (True, False)
    assert (may_deal(facts, 1, 3, PRIVATE), may_deal(facts, 1, 3, PUBLIC)) == (False, True)


@pytest.mark.parametrize(
    ("fields", "one", "expected"),
    [
        ({"author": 2}, 1, ""),
        ({"author": 2, "answered_by": (3,)}, 1, "not_entitled"),
        ({"author": 2, "answered_by": (1,)}, 1, "not_entitled"),
        ({"author": 2, "addressed": 1}, 1, ""),
        ({"author": 2, "addressed": 3}, 1, "not_entitled"),
        ({"author": 2, "addressed": 1, "answered_by": (3,)}, 1, "not_entitled"),
        ({"author": 1}, 1, "not_entitled"),
        ({"author": 1, "n_messages": 2}, 1, ""),
        ({"author": 1, "n_messages": 3, "answered_by": (2,)}, 1, "not_entitled"),
        ({"author": None}, 1, ""),
        ({"author": None, "answered_by": (2,)}, 1, ""),
        ({"author": None, "answered_by": (2, 3)}, 1, "not_entitled"),
        ({"author": None, "is_bot": True}, 1, "not_entitled"),
    ],
)
def test_answer_is_for_who_is_entitled(fields: dict[str, Any], one: int, expected: str) -> None:
    facts = world(3, policy="off")
    facts.roots[1] = root(1, **fields)
    assert answering(facts, one, 1) == expected


def test_second_answer_to_a_person_needs_no_seat_of_who_is_in_the_thread() -> None:
    facts = world(3)
    add_thread(facts, 1, opener=2, partner=None)
    assert answering(facts, 1, 1, active_thread_threshold=1) == ""
    add_root(facts, 5, author=2)
    assert answering(facts, 1, 5, active_thread_threshold=1) == "partner_full"


def test_pair_with_an_open_thread_opens_no_other() -> None:
    facts = world(3)
    add_thread(facts, 1, opener=1, partner=2)
    assert pairing(facts) == Refusal(reason="pair_taken", waits_for=2)
    assert pair_refusal(facts, 1, 3, None, AT, rules()) is None


@pytest.mark.parametrize(
    ("n_barren", "seconds", "expected"),
    [
        (0, 99, Refusal(reason="pair_resting", until=later(1))),
        (0, 100, None),
        (2, 100, None),
        (3, 199, Refusal(reason="pair_resting", until=later(1))),
        (3, 200, None),
    ],
)
def test_pair_rests_after_a_close_and_twice_as_long_after_three_in_vain(
    n_barren: int, seconds: int, expected: Refusal | None
) -> None:
    facts = world(2)
    facts.pairs[1, 2] = PairHistory(closed_seq=5, closed_at=later(-seconds), n_barren=n_barren)
    assert pairing(facts, 6, pair_rest_seconds=100) == expected


def test_pair_meets_again_only_on_a_newer_root() -> None:
    facts = world(2)
    facts.pairs[1, 2] = PairHistory(closed_seq=5, closed_at=later(-9), n_barren=0)
    assert pairing(facts, 5) == Refusal(reason="older_than_close")
    assert pairing(facts, 6) is None
    assert pairing(facts, None) is None


def test_partner_must_be_there() -> None:
    facts = world([agent(1), agent(2, status=Status.PAUSED)])
    assert pairing(facts) == Refusal(reason="partner_out", waits_for=2)
    facts.agents[2] = agent(2, status=Status.RETIRED)
    assert pairing(facts) == Refusal(reason="partner_gone", waits_for=2)
    del facts.agents[2]
    assert pairing(facts) == Refusal(reason="partner_gone", waits_for=2)
    facts.agents[2] = agent(2)
    assert pairing(facts) is None


def test_partner_must_have_a_seat() -> None:
    facts = world(3)
    add_thread(facts, 1, opener=2, partner=3)
    assert pairing(facts, active_thread_threshold=1) == Refusal(reason="partner_full", waits_for=2)
    assert pairing(facts, active_thread_threshold=2) is None


@pytest.mark.parametrize(
    ("reason", "passes"),
    [
        ("pair_taken", True),
        ("pair_resting", True),
        ("partner_full", True),
        ("partner_out", True),
        ("seats_full", True),
        ("not_permitted", False),
        ("not_entitled", False),
        ("older_than_close", False),
        ("partner_gone", False),
    ],
)
def test_refusal_passes_when_time_a_close_or_a_person_lifts_it(reason: str, passes: bool) -> None:
    assert Refusal(reason=reason).passes is passes


def inviting(facts: World, **fields: Any) -> str:
    threshold = fields.pop("active_thread_threshold", 3)
    asked = invitation(1, 1, **fields)
    refusal = invitation_refusal(facts, asked, AT, rules(active_thread_threshold=threshold))
    return "" if refusal is None else refusal.reason


def test_invitation_is_taken_up_when_the_answer_is_allowed() -> None:
    facts = world(3, {"north": (1, 2), "south": (3,)})
    assert inviting(facts) == "root_gone"
    add_root(facts, 1, author=2, addressed=1)
    assert inviting(facts) == ""
    facts.roots[1] = root(1, 3, addressed=1)
    assert inviting(facts) == "not_permitted"


def test_invitation_waits_for_a_seat_of_ones_own() -> None:
    facts = world(3)
    add_root(facts, 1, author=2, addressed=1)
    add_thread(facts, 3, opener=1, partner=3)
    refusal = invitation_refusal(facts, invitation(1, 1), AT, rules(active_thread_threshold=1))
    assert refusal == Refusal(reason="seats_full", waits_for=1)
    assert inviting(facts, active_thread_threshold=2) == ""


def test_invitation_into_a_thread_that_one_is_in_is_settled() -> None:
    facts = world(2)
    add_thread(facts, 1, opener=1, partner=2)
    assert inviting(facts) == "in_thread"


def test_invitation_into_a_thread_of_another_is_judged_like_an_answer() -> None:
    facts = world(3)
    add_thread(facts, 1, opener=2, partner=None)
    assert inviting(facts) == ""


def test_reference_needs_neither_seat_nor_permission_but_membership() -> None:
    facts = world(4, {"north": (1,), "south": (2, 3)}, members=(2, 3))
    add_thread(facts, 1, opener=2, partner=3)
    assert inviting(facts, kind=InvitationKind.REFERENCE, active_thread_threshold=0) == ""
    add_thread(facts, 5, opener=2, partner=3, channel=PRIVATE)
    assert inviting(facts, kind=InvitationKind.REFERENCE, root=5) == "not_a_member"
