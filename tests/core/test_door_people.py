"""What people do: their messages and reviews, and whom each of them calls."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from engine.core.door.hand_in import prepare
from engine.core.door.people import (
    reviewed,
    take_in,
)
from engine.core.draft import Draft
from engine.core.effects import (
    Close,
    Committed,
    HandIn,
    Rejected,
    Result,
    Reviewed,
    TakeIn,
    Verdict,
)
from engine.core.participation import debts
from engine.core.records import (
    InvitationKind,
    InvitationState,
    Outcome,
    Side,
    Status,
    Thread,
    ThreadState,
)
from engine.core.world import World
from tests.core.facts import (
    AT,
    PUBLIC,
    add_root,
    add_thread,
    agent,
    draft,
    root,
    thread,
    world,
)


def writing(facts: World, text: str, seq: int | None = None, **fields: Any) -> tuple[Result, Draft]:
    values: dict[str, Any] = {"message_id": 40, "channel": PUBLIC, "written_at": AT} | fields
    made = draft(facts)
    return take_in(made, TakeIn(root=seq, text=text, **values)), made


def kinds(made: Draft) -> dict[int, InvitationKind]:
    return {row.agent: row.kind for row in made.changed_invitations.values()}


# --- messages -----------------------------------------------------------------------------------------


def test_persons_root_is_for_everybody_or_for_whom_it_names_first() -> None:
    result, made = writing(world(3), "Hello all")
    assert result == Committed(seq=1)
    assert made.roots[1] == root(1, None)
    assert (made.group.taken_in[0].message_id, made.group.taken_in[0].ordinal) == (40, 1)
    assert made.concern.roots == [root(1, None)]
    _, named = writing(world(3), "@Bot2 and @Bot3")
    assert named.roots[1].addressed == 2
    assert kinds(named) == {2: InvitationKind.MENTION}


def test_message_to_nowhere_is_refused() -> None:
    assert writing(world(2), "Hello", channel=77)[0] == Rejected(reason="unknown_channel")
    assert writing(world(2), "Hello", 9)[0] == Rejected(reason="root_gone")


def test_answer_to_an_agents_root_calls_its_author() -> None:
    facts = world(3)
    add_root(facts, 1, author=2)
    result, made = writing(facts, "And then?", 1)
    assert result == Committed(seq=2)
    assert made.roots[1].n_messages == 2
    assert kinds(made) == {2: InvitationKind.ANSWER}
    _, named = writing(facts, "@Bot2 and then?", 1)
    assert kinds(named) == {2: InvitationKind.ANSWER}


def test_answer_that_names_another_calls_that_one_to_answer_the_root() -> None:
    facts = world(3)
    add_root(facts, 1, author=2)
    _, made = writing(facts, "@Bot3 this is for you", 1)
    assert kinds(made) == {3: InvitationKind.MENTION}


def test_answer_under_a_persons_root_calls_nobody_unnamed() -> None:
    facts = world(3)
    add_root(facts, 1, author=None)
    assert kinds(writing(facts, "More", 1)[1]) == {}
    assert kinds(writing(facts, "@Bot3 more", 1)[1]) == {3: InvitationKind.MENTION}


@pytest.mark.parametrize(
    "fields",
    [{"addressed": 2}, {"author": 2, "answered_by": (1,)}, {"answered_by": (1, 2)}],
)
def test_agent_without_a_place_answers_by_a_root_of_its_own(fields: dict[str, Any]) -> None:
    facts = world(3)
    facts.roots[1] = root(1, fields.pop("author", None), **fields)
    _, made = writing(facts, "@Bot3 what do you say?", 1)
    assert kinds(made)[3] is InvitationKind.REFERENCE


def test_agent_that_may_not_deal_with_the_first_answers_by_a_root_of_its_own() -> None:
    facts = world(3, {"north": (1,), "south": (3,)})
    facts.roots[1] = root(1, None, answered_by=(1,))
    assert kinds(writing(facts, "@Bot3 and you?", 1)[1]) == {3: InvitationKind.REFERENCE}
    assert kinds(writing(facts, "@Bot2 and you?", 1)[1]) == {2: InvitationKind.MENTION}


@pytest.mark.parametrize(
    ("text", "called", "asked"),
    [
        ("Go on", [0, 0], 3),
        ("@Bot1 go on", [3, 0], 0),
        ("@Bot1 @Bot2 go on", [3, 3], 0),
        ("@Bot3 look", [0, 0], 0),
    ],
)
def test_word_in_a_thread_calls_whom_it_names_or_whose_turn_it_is(
    text: str, called: list[int], asked: int
) -> None:
    facts = world(3)
    add_thread(facts, 1, opener=1, partner=2)
    result, made = writing(facts, text, 1)
    assert result == Committed(seq=3)
    assert [side.called for side in made.threads[1].sides] == called
    assert made.threads[1].asked == asked
    expected = {3: InvitationKind.REFERENCE} if "@Bot3" in text else {}
    assert kinds(made) == expected


def test_word_in_a_thread_of_one_calls_that_one() -> None:
    facts = world(3)
    add_thread(facts, 1, opener=1, partner=None)
    assert debts(writing(facts, "Go on", 1)[1], 1) == (writing(facts, "Go on", 1)[1].threads[1],)
    _, made = writing(facts, "@Bot3 join in", 1)
    assert made.threads[1].opener.called == 0
    assert kinds(made) == {3: InvitationKind.MENTION}


def closed(**fields: Any) -> Thread:
    made = thread(1, 1, 2, state=ThreadState.CLOSED, outcome=Outcome.NO_PROPOSAL)
    return replace(made, closed_seq=4, closed_at=AT, **fields)


def reopening(facts: World, text: str, known: Thread | None = None) -> tuple[Result, Draft]:
    facts.last_seq = 4
    known_root = root(1, 2, n_messages=2, answered_by=(1,))
    return writing(facts, text, 1, known_root=known_root, known_thread=known or closed())


def test_closed_thread_reopens_for_a_side_that_is_named() -> None:
    result, made = reopening(world(3), "@Bot1 once more")
    assert result == Committed(seq=5)
    talk = made.threads[1]
    assert (talk.cycle, talk.state, talk.outcome, talk.n_agent_messages) == (
        2,
        ThreadState.OPEN,
        None,
        0,
    )
    assert talk.opener == Side(agent=1, viewed=2, called=3)
    assert talk.partner == Side(agent=2, viewed=2)
    assert (talk.opened_seq, talk.last_agent, talk.closed_seq) == (5, None, None)
    assert (made.desk(1).threads, made.desk(2).threads) == ((1,), (1,))


def test_closed_thread_reopens_for_both_sides_when_both_are_named() -> None:
    _, made = reopening(world(3), "@Bot1 @Bot2 once more")
    assert [side.called for side in made.threads[1].sides] == [3, 3]


def test_closed_thread_of_one_reopens_for_that_one() -> None:
    _, made = reopening(world(3), "@Bot1 once more", replace(closed(), partner=None))
    assert made.threads[1].partner is None
    assert made.threads[1].opener.called == 3


def test_closed_thread_stays_closed_when_nobody_is_named() -> None:
    result, made = reopening(world(3), "Thanks")
    assert result == Committed(seq=5)
    assert (made.threads.get(1), kinds(made)) == (None, {})


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda facts: add_thread(facts, 3, opener=2, partner=1), "pair_taken"),
        (
            lambda facts: [add_thread(facts, seq, opener=3, partner=2) for seq in (10, 12, 14)],
            "partner_full",
        ),
        (lambda facts: facts.agents.update({2: agent(2, status=Status.RETIRED)}), "partner_gone"),
    ],
)
def test_reopening_is_refused_with_a_reason_on_record(change: Any, reason: str) -> None:
    facts = world(3)
    change(facts)
    _, made = reopening(facts, "@Bot1 once more")
    assert made.threads.changed.get(1) is None
    (refused,) = made.changed_invitations.values()
    assert (refused.agent, refused.state, refused.reason) == (
        1,
        InvitationState.REFUSED,
        reason,
    )
    assert made.desk(1).invitations == ()


def test_word_to_a_thread_that_closed_after_it_was_read_is_read_again() -> None:
    facts = world(3)
    add_root(facts, 1, author=2, answered_by=(1,))
    result, made = writing(facts, "@Bot1 more", 1, known_thread=thread(1, 1, 2))
    assert result == Rejected(reason="read_again")
    assert (made.group.taken_in, facts.last_seq) == ([], 1)


def test_thread_that_closes_in_the_same_group_is_reopened_as_it_closed() -> None:
    facts = world(3)
    talk = add_thread(facts, 1, opener=1, partner=2)
    made = draft(facts)
    word = TakeIn(
        message_id=40,
        channel=PUBLIC,
        root=1,
        text="@Bot2 more",
        written_at=AT,
        known_root=facts.roots[1],
        known_thread=talk,
    )
    effects = (Close(root=1, cycle=1, outcome=Outcome.TIMEOUT), word)
    assert prepare(made, HandIn(effects=effects)).results == (Committed(), Committed(seq=3))
    assert made.threads[1].cycle == 2


# --- reviews --------------------------------------------------------------------------------------------


def review(
    facts: World, verdict: Verdict, *, cycle: int = 1, known: Thread | None = None
) -> tuple[Result, Draft]:
    for one in (1, 2):
        facts.desks[one] = replace(facts.desk(one), unreviewed=((1, 1), (7, 2)))
    made = draft(facts)
    effect = Reviewed(
        note=50,
        root=1,
        cycle=cycle,
        verdict=verdict,
        guidance="Say who pays",
        known_root=root(1, 2, n_messages=4, answered_by=(1,)),
        known_thread=known or closed(summary_by=2),
    )
    return reviewed(made, effect), made


@pytest.mark.parametrize("verdict", [Verdict.ACCEPTED, Verdict.DECLINED])
def test_review_takes_the_proposal_off_both_desks(verdict: Verdict) -> None:
    result, made = review(world(3), verdict)
    assert result == Committed()
    assert [made.desk(one).unreviewed for one in (1, 2)] == [((7, 2),), ((7, 2),)]
    assert (made.group.notes, list(made.concern.agents)) == ([50], [1, 2])
    assert made.threads.get(1) is None


def test_revision_begins_a_cycle_in_which_the_proposer_owes() -> None:
    result, made = review(world(3), Verdict.REVISED)
    assert result == Committed()
    talk = made.threads[1]
    assert (talk.cycle, talk.guidance, talk.summary_by) == (2, "Say who pays", None)
    assert [side.called for side in talk.sides] == [0, 4]


def test_revision_of_a_cycle_that_is_not_the_last_reopens_nothing() -> None:
    _, made = review(world(3), Verdict.REVISED, known=closed(cycle=2))
    assert made.threads.get(1) is None


def test_revision_of_a_thread_that_is_open_again_reopens_nothing() -> None:
    facts = world(3)
    add_thread(facts, 1, opener=1, partner=2)
    result, made = review(facts, Verdict.REVISED)
    assert (result, made.threads.changed) == (Committed(), {})


def test_revision_is_refused_while_the_pair_talks_elsewhere() -> None:
    facts = world(3)
    add_thread(facts, 5, opener=1, partner=2)
    result, made = review(facts, Verdict.REVISED)
    assert result == Rejected(reason="pair_taken")
    assert made.group.notes == [50]
