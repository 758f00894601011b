"""What a turn changes for its own agent: read, kept, joined, remembered, missed, closed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.core.door.notices import close, join, miss, post_chance, remember, take_notice
from engine.core.effects import (
    Close,
    Committed,
    Dealt,
    Join,
    Miss,
    PostChance,
    Rejected,
    Remember,
    TakeNotice,
)
from engine.core.group import NewMemory
from engine.core.records import (
    AgentState,
    Desk,
    InvitationState,
    Memory,
    Outcome,
    Side,
    Talk,
)
from tests.core.facts import (
    AT,
    PRIVATE,
    PUBLIC,
    add_invitation,
    add_root,
    add_thread,
    draft,
    later,
    rules,
    world,
)


def test_join_subscribes_to_what_one_may_post_in() -> None:
    made = draft(world(2, members=(1,), joined=False))
    assert join(made, Join(agent=1, channels=(PRIVATE, PUBLIC, 77))) == Committed()
    assert made.subscriptions[1] == (PUBLIC, PRIVATE)
    assert made.group.subscriptions == [(1, PRIVATE), (1, PUBLIC)]
    assert join(made, Join(agent=2, channels=(PRIVATE,))) == Rejected(reason="joined_already")
    assert join(made, Join(agent=1, channels=(PUBLIC,))) == Rejected(reason="joined_already")


def test_notice_changes_cursor_bank_and_invitations_at_once() -> None:
    facts = world(2)
    for seq in (1, 2, 3, 4):
        add_root(facts, seq, author=2)
    facts.states[1] = AgentState(cursor=2, bank=(1, 2))
    called = add_invitation(facts, 1, 4)
    made = draft(facts)
    notice = TakeNotice(
        agent=1,
        cursor=4,
        keep=(2, 3, 99),
        drop=(1,),
        dealt=(Dealt(message=4, reason="not_entitled"),),
    )
    assert take_notice(made, notice) == Committed()
    assert made.state(1) == AgentState(cursor=4, bank=(2, 3))
    assert made.desk(1).invitations == ()
    assert made.changed_invitations[1, 4] == replace(
        called, state=InvitationState.REFUSED, reason="not_entitled"
    )


def test_notice_never_moves_the_cursor_back() -> None:
    facts = world(2)
    facts.states[1] = AgentState(cursor=5)
    made = draft(facts)
    take_notice(made, TakeNotice(agent=1, cursor=3))
    take_notice(made, TakeNotice(agent=1))
    assert made.state(1).cursor == 5


def test_notice_keeps_at_most_the_newest_twenty() -> None:
    facts = world(2)
    for seq in range(1, 23):
        add_root(facts, seq, author=2)
    made = draft(facts)
    take_notice(made, TakeNotice(agent=1, keep=tuple(range(1, 23))))
    assert made.state(1).bank == tuple(range(3, 23))


def test_notice_keeps_no_root_that_the_gate_forbids_by_now() -> None:
    facts = world(3, {"north": (1, 2), "south": (3,)})
    add_root(facts, 1, author=2)
    add_root(facts, 2, author=3)
    made = draft(facts)
    take_notice(made, TakeNotice(agent=1, keep=(1, 2)))
    assert made.state(1).bank == (1,)


@pytest.mark.parametrize(
    ("used", "n_messages", "streak", "interval", "seconds", "streak_after"),
    [
        (True, 1, 3, 0, 0, 0),
        (True, 1, 3, 900, 900, 0),
        (False, 1, 0, 0, 300, 1),
        (True, 0, 0, 0, 300, 1),
        (False, 0, 1, 0, 600, 2),
        (False, 0, 1, 900, 1800, 2),
        (False, 0, 4, 0, 1500, 5),
        (False, 0, 9, 0, 1500, 10),
    ],
)
def test_chance_is_used_up_whatever_came_of_it(
    *, used: bool, n_messages: int, streak: int, interval: float, seconds: float, streak_after: int
) -> None:
    facts = world(2)
    facts.states[1] = AgentState(skip_streak=streak)
    made = draft(facts, rules(post_interval_seconds=interval))
    made.n_messages_of_hand_in = n_messages
    assert post_chance(made, PostChance(agent=1, used=used)) == Committed()
    assert made.state(1) == AgentState(next_post_at=later(seconds), skip_streak=streak_after)


TALKS = (
    Talk(closed_seq=3, root=1, channel=None),
    Talk(closed_seq=5, root=2, channel=PRIVATE),
    Talk(closed_seq=7, root=4, channel=None),
)


def remembering(upto: int = 3, n_talks: int = 1, version: int = 2) -> Remember:
    return Remember(
        agent=1, channel=None, text="New", upto_seq=upto, base_version=version, n_talks=n_talks
    )


def test_memory_takes_in_the_talks_it_was_told() -> None:
    facts = world(2)
    facts.desks[1] = Desk(untold=TALKS)
    facts.memories[1, None] = Memory(agent=1, channel=None, version=2, upto_seq=1)
    made = draft(facts)
    assert remember(made, remembering()) == Committed()
    memory = Memory(agent=1, channel=None, version=3, upto_seq=3)
    assert made.memories[1, None] == memory
    assert made.group.memories == [NewMemory(memory=memory, text="New")]
    assert made.desk(1).untold == TALKS[1:]


def test_memory_that_a_person_changed_meanwhile_is_written_again() -> None:
    facts = world(2)
    facts.desks[1] = Desk(untold=TALKS)
    made = draft(facts)
    assert remember(made, remembering()) == Rejected(reason="changed_meanwhile")
    assert remember(made, remembering(version=0)) == Committed()


def test_memory_that_missed_a_talk_meanwhile_is_written_again() -> None:
    facts = world(2)
    facts.desks[1] = Desk(untold=TALKS)
    made = draft(facts)
    refused = remember(made, remembering(upto=7, n_talks=1, version=0))
    assert refused == Rejected(reason="changed_meanwhile")
    assert remember(made, remembering(upto=7, n_talks=2, version=0)) == Committed()
    assert made.desk(1).untold == (TALKS[1],)


def test_second_miss_in_a_row_closes_as_lost() -> None:
    facts = world(2)
    add_thread(facts, 1, opener=2, partner=1)
    made = draft(facts)
    assert miss(made, Miss(agent=1, root=1, cycle=1)) == Committed()
    assert made.threads[1].partner == Side(agent=1, viewed=1, misses=1)
    assert miss(made, Miss(agent=1, root=1, cycle=1)) == Committed()
    assert made.threads.get(1) is None
    assert [row.outcome for row in made.group.decisions] == [Outcome.LOST]


def test_miss_of_the_opener_counts_on_its_own_side() -> None:
    facts = world(2)
    add_thread(facts, 1, opener=1, partner=2, last_agent=2)
    made = draft(facts)
    miss(made, Miss(agent=1, root=1, cycle=1))
    assert [side.misses for side in made.threads[1].sides] == [1, 0]


def test_miss_of_what_is_over_is_refused() -> None:
    facts = world(3)
    add_thread(facts, 1, opener=2, partner=1)
    made = draft(facts)
    for effect in (
        Miss(agent=1, root=9, cycle=1),
        Miss(agent=3, root=1, cycle=1),
        Miss(agent=1, root=1, cycle=2),
    ):
        assert miss(made, effect) == Rejected(reason="not_owed")


def test_close_ends_the_cycle_it_names() -> None:
    facts = world(2)
    add_thread(facts, 1, opener=2, partner=1)
    made = draft(facts)
    assert close(made, Close(root=1, cycle=2, outcome=Outcome.TIMEOUT)) == Rejected(
        reason="closed_already"
    )
    assert close(made, Close(root=1, cycle=1, outcome=Outcome.TIMEOUT)) == Committed()
    assert close(made, Close(root=1, cycle=1, outcome=Outcome.TIMEOUT)) == Rejected(
        reason="closed_already"
    )
    (decision,) = made.group.decisions
    assert (decision.outcome, decision.seq, decision.at) == (Outcome.TIMEOUT, 2, AT)
