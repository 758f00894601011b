"""Replies at the door: every reason to refuse one, and all that a stored one changes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from engine.core.door.messages import reply
from engine.core.effects import (
    Committed,
    MoveKind,
    Rejected,
    Reply,
)
from engine.core.group import NewProposal
from engine.core.records import (
    AgentState,
    Desk,
    InvitationKind,
    Outcome,
    PairHistory,
    Side,
    Status,
    Talk,
    ThreadState,
)
from engine.core.world import World
from tests.core.doors import nothing, opened, paused, reason_of, replying
from tests.core.facts import (
    AT,
    PRIVATE,
    add_invitation,
    add_root,
    add_thread,
    agent,
    later,
    rules,
    world,
)

# --- replies that open --------------------------------------------------------------------------------


def test_reply_to_an_agents_root_opens_a_thread_of_two() -> None:
    facts = world(3, {"north": (1, 2)})
    add_root(facts, 1, author=2)
    facts.states[1] = AgentState(bank=(1, 4))
    result, made = replying(facts, answers_ordinal=1)
    assert result == Committed(seq=2)
    talk = made.threads[1]
    assert (talk.opener, talk.partner) == (Side(agent=1, viewed=1), Side(agent=2, viewed=1))
    assert (talk.n_agent_messages, talk.last_agent, talk.last_agent_ordinal) == (2, 1, 2)
    assert (talk.opened_seq, talk.opened_at, talk.topology_version) == (2, AT, 1)
    assert talk.shared_cohorts == ("north",)
    assert (made.roots[1].n_messages, made.roots[1].answered_by) == (2, (1,))
    assert (made.desk(1).threads, made.desk(2).threads) == ((1,), (1,))
    assert made.state(1).bank == (4,)
    assert made.group.topology_version == 1
    assert made.group.messages[0].answers_ordinal == 1


def test_reply_to_a_person_opens_a_thread_of_one() -> None:
    facts = world(3)
    add_root(facts, 1, author=None)
    add_invitation(facts, 1, 1, by_person=True)
    elsewhere = add_invitation(facts, 1, 9)
    result, made = replying(facts, answers_ordinal=1)
    assert result == Committed(seq=2)
    talk = made.threads[1]
    assert (talk.partner, talk.n_agent_messages, talk.pair) == (None, 1, None)
    assert made.group.topology_version is None
    assert made.desk(1).invitations == (elsewhere,)


def test_second_reply_to_a_person_makes_the_thread_two_party() -> None:
    facts = world(3, {"north": (1, 2)})
    add_thread(facts, 1, opener=2, partner=None)
    result, made = replying(facts)
    assert result == Committed(seq=3)
    talk = made.threads[1]
    assert (talk.opener.agent, talk.partner, talk.opened_seq) == (2, Side(agent=1, viewed=2), 3)
    assert made.group.topology_version == 1
    assert made.roots[1].answered_by == (2, 1)


def test_answered_author_joins_its_own_roots_thread() -> None:
    facts = world(3)
    add_root(facts, 1, author=1, n_messages=2)
    add_invitation(facts, 1, 2, root=1, kind=InvitationKind.ANSWER, by_person=True)
    result, made = replying(facts)
    assert result == Committed(seq=2)
    assert (made.threads[1].partner, made.roots[1].answered_by) == (None, ())


def test_claim_becomes_a_fact_with_the_reply() -> None:
    facts = world(3)
    add_root(facts, 1, author=2)
    judged_by = rules(active_thread_threshold=1)
    judged_by.claims.take_seat(1, 1)
    result, made = replying(facts, judged_by, answers_ordinal=1)
    assert result == Committed(seq=2)
    assert judged_by.claims.is_empty
    assert list(made.concern.seats) == [1]


def test_refused_opening_gives_its_seat_back_and_says_so() -> None:
    facts = world(3)
    add_root(facts, 1, author=2, answered_by=(3,))
    judged_by = rules()
    judged_by.claims.take_seat(1, 1)
    result, made = replying(facts, judged_by)
    assert reason_of(result) == "not_entitled"
    assert (judged_by.claims.n_seats(1), list(made.concern.seats)) == (0, [1])


def addressed_elsewhere(facts: World) -> None:
    facts.roots[1] = replace(facts.roots[1], addressed=3)


def by_a_stranger(facts: World) -> None:
    facts.roots[1] = replace(facts.roots[1], author=3)


def full(facts: World) -> None:
    add_thread(facts, 5, opener=1, partner=3)


def partner_full(facts: World) -> None:
    add_thread(facts, 5, opener=2, partner=3)


def talked_before(facts: World) -> None:
    facts.pairs[1, 2] = PairHistory(closed_seq=4, closed_at=later(-99), n_barren=0)


def root_gone(facts: World) -> None:
    del facts.roots[1]


@pytest.mark.parametrize(
    ("change", "fields", "expected"),
    [
        (nothing, {}, ""),
        (root_gone, {}, "root_gone"),
        (paused, {}, "author_out"),
        (by_a_stranger, {}, "not_permitted"),
        (addressed_elsewhere, {}, "not_entitled"),
        (full, {}, "seats_full"),
        (partner_full, {}, "partner_full"),
        (talked_before, {}, "older_than_close"),
        (nothing, {"text": "  "}, "nothing_left"),
    ],
)
def test_opening_reply_is_refused_for_one_reason(
    change: Any, fields: dict[str, Any], expected: str
) -> None:
    facts = world(3, {"north": (1, 2), "south": (3,)})
    add_root(facts, 1, author=2)
    change(facts)
    result, made = replying(facts, rules(active_thread_threshold=1), **fields)
    assert reason_of(result) == expected
    assert len(made.group.messages) == (not expected)


def test_opening_waits_while_the_topology_changes_and_a_persons_thread_does_not() -> None:
    facts = world(3)
    add_root(facts, 1, author=2)
    add_root(facts, 2, author=None)
    made = opened(facts)
    made.may_start = False
    answer = Reply(agent=1, root=1, text="An answer", answers_ordinal=1)
    assert reply(made, answer) == Rejected(reason="topology_changing")
    assert reply(made, replace(answer, root=2)) == Committed(seq=3)


# --- replies that go on -----------------------------------------------------------------------------------


def owing(**fields: Any) -> World:
    """Return a world in which agent 1 owes agent 2 an answer under root 1."""
    facts = world(3)
    add_thread(facts, 1, opener=2, partner=1, **fields)
    return facts


def test_answer_is_entered_and_turns_the_debt_round() -> None:
    facts = owing(guidance="Be brief")
    result, made = replying(facts)
    assert result == Committed(seq=3)
    talk = made.threads[1]
    assert (talk.last_agent, talk.last_agent_ordinal, talk.n_agent_messages) == (1, 3, 3)
    assert (talk.state, talk.guidance, talk.owed_since) == (ThreadState.OPEN, "", AT)
    assert talk.partner == Side(agent=1, viewed=2)
    assert made.concern.agents == {2: None, 1: None}
    assert made.concern.seats == {}
    assert made.group.topology_version is None


def test_answer_of_a_paused_agent_may_finish_what_it_owes() -> None:
    facts = owing()
    paused(facts)
    assert replying(facts)[0] == Committed(seq=3)


@pytest.mark.parametrize(
    ("thread_fields", "fields", "expected"),
    [
        ({}, {"answers_ordinal": 1}, "stale"),
        ({"last_agent": 1, "last_agent_ordinal": 3}, {}, "not_owed"),
        ({}, {"move": MoveKind.ACCEPT}, "nothing_to_accept"),
        ({"summary_by": 1}, {"move": MoveKind.ACCEPT}, "nothing_to_accept"),
        ({}, {"text": "@nobody"}, ""),
    ],
)
def test_answer_is_refused_for_one_reason(
    thread_fields: dict[str, Any], fields: dict[str, Any], expected: str
) -> None:
    result, made = replying(owing(**thread_fields), **fields)
    assert reason_of(result) == expected
    assert len(made.group.messages) == (not expected)


def test_answer_of_an_agent_that_is_gone_is_refused() -> None:
    facts = owing()
    facts.agents[1] = agent(1, status=Status.RETIRED)
    assert replying(facts)[0] == Rejected(reason="author_out")


def test_persons_word_after_the_view_makes_no_answer_stale() -> None:
    facts = owing()
    facts.roots[1] = replace(facts.roots[1], n_messages=3)
    result, made = replying(facts)
    assert result == Committed(seq=3)
    assert made.group.messages[0].ordinal == 4


@pytest.mark.parametrize("move", [MoveKind.PROPOSE, MoveKind.DECLINE])
def test_towards_a_person_alone_there_is_nothing_to_conclude(move: MoveKind) -> None:
    facts = world(3)
    add_thread(facts, 1, opener=1, partner=None)
    facts.threads[1] = replace(facts.threads[1], opener=Side(agent=1, viewed=1, called=3))
    assert replying(facts, move=move)[0] == Rejected(reason="nobody_opposite")
    assert replying(facts)[0] == Committed(seq=3)


def test_answer_that_names_a_third_is_bound_to_the_topology() -> None:
    facts = owing()
    result, made = replying(facts, text="Ask @Bot3 too")
    assert result == Committed(seq=3)
    assert made.group.topology_version == 1
    waiting = opened(owing())
    waiting.may_start = False
    refused = reply(waiting, Reply(agent=1, root=1, text="Ask @Bot3 too", answers_ordinal=2))
    assert refused == Rejected(reason="topology_changing")


def test_name_of_the_other_side_is_kept_whatever_the_gate() -> None:
    facts = world(3, {"north": (1,), "south": (2, 3)})
    add_thread(facts, 1, opener=2, partner=1)
    _, made = replying(facts, text="@Bot2 yes, not @Bot3")
    assert made.group.messages[0].text == "@Bot2 yes, not"


# --- conclusions ------------------------------------------------------------------------------------------


def test_summary_waits_for_the_other_side() -> None:
    _, made = replying(owing(), move=MoveKind.PROPOSE)
    talk = made.threads[1]
    assert (talk.state, talk.summary_by, talk.summary_seq) == (ThreadState.PROPOSED, 1, 3)


def test_answer_that_goes_on_takes_the_summary_off_the_table() -> None:
    facts = owing(state=ThreadState.PROPOSED, summary_by=2, summary_seq=2)
    _, made = replying(facts)
    talk = made.threads[1]
    assert (talk.state, talk.summary_by, talk.summary_seq) == (ThreadState.OPEN, None, None)


def test_accepted_summary_closes_with_a_proposal_on_both_desks() -> None:
    facts = owing(state=ThreadState.PROPOSED, summary_by=2, summary_seq=2)
    result, made = replying(facts, move=MoveKind.ACCEPT)
    assert result == Committed(seq=3)
    assert made.threads.get(1) is None
    (decision,) = made.group.decisions
    assert (decision.outcome, decision.seq, decision.at) == (Outcome.PROPOSAL, 3, AT)
    assert made.group.proposals == [
        NewProposal(root=1, cycle=1, agents=(2, 1), summary_seq=2, at=AT)
    ]
    talk = Talk(closed_seq=3, root=1, channel=None)
    for one in (1, 2):
        assert made.desk(one) == Desk(unreviewed=((1, 1),), untold=(talk,))
    assert made.pairs[1, 2] == PairHistory(closed_seq=3, closed_at=AT, n_barren=0)
    assert list(made.concern.seats) == [2, 1]


def test_declined_talk_closes_without_a_proposal_and_is_counted() -> None:
    facts = owing()
    facts.pairs[1, 2] = PairHistory(closed_seq=0, closed_at=AT, n_barren=2)
    _, made = replying(facts, move=MoveKind.DECLINE)
    assert made.group.decisions[0].outcome is Outcome.NO_PROPOSAL
    assert made.pairs[1, 2].n_barren == 3


def test_last_message_of_a_cycle_closes_as_timeout() -> None:
    _, made = replying(owing(n_agent_messages=3), rules(thread_messages=4))
    assert made.group.decisions[0].outcome is Outcome.TIMEOUT
    _, goes_on = replying(owing(n_agent_messages=2), rules(thread_messages=4))
    assert goes_on.group.decisions == []


def test_answer_to_somebody_who_is_gone_closes_as_lost() -> None:
    facts = owing()
    facts.agents[2] = agent(2, status=Status.RETIRED)
    _, made = replying(facts)
    assert made.group.decisions[0].outcome is Outcome.LOST


def test_private_talk_is_told_to_its_own_memory_and_a_lone_one_makes_no_pair() -> None:
    facts = world(3, members=(1, 2))
    add_thread(facts, 1, opener=2, partner=1, channel=PRIVATE)
    _, made = replying(facts, move=MoveKind.DECLINE)
    assert made.desk(1).untold == (Talk(closed_seq=3, root=1, channel=PRIVATE),)
    lone = world(3)
    add_thread(lone, 1, opener=1, partner=None)
    lone.threads[1] = replace(lone.threads[1], opener=Side(agent=1, viewed=1, called=3))
    _, closed = replying(lone, rules(thread_messages=3))
    assert closed.group.decisions[0].outcome is Outcome.TIMEOUT
    assert closed.pairs.changed == {}
