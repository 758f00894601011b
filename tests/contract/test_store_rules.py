"""The rules that every store keeps, each with what is refused and that nothing of it stays."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from engine.core.errors import Fenced, RowRefused, TopologyMoved
from engine.core.group import NewMemory, NewProposal
from engine.core.records import (
    AgentState,
    Invitation,
    InvitationKind,
    InvitationState,
    Memory,
    Outcome,
)
from tests.contract.groups import (
    at,
    call,
    closed,
    decision,
    group,
    message,
    post,
    taken_in,
    thread,
    turn,
)
from tests.contract.site import Site, commit, memory_text, run

if TYPE_CHECKING:
    from engine.core.group import Group
    from engine.ports.store import Store

INVITATION = Invitation(agent=2, message=1, root=1, kind=InvitationKind.MENTION, by_person=False)


def opened(number: int, root: int, *, by: int = 2) -> Group:
    """Return a group with a root by agent 1 and an answer that opens its thread."""
    return group(
        number,
        messages=[post(root), message(root + 1, author=by, root=root, ordinal=2)],
        threads=[thread(root, by, 1)],
    )


def assert_refused(store: Store, refused: Group, error: type[Exception] = RowRefused) -> None:
    """See a group refused, nothing of it stored, and its number free for the next."""
    before = run(store.load())
    with pytest.raises(error):
        commit(store, refused)
    assert run(store.load()) == before
    commit(store, group(refused.number))
    assert run(store.load()).commit_no == refused.number


def test_store_takes_groups_by_number(site: Site) -> None:
    store = site.open_store()
    commit(store, opened(1, 1), group(2, seconds=7))
    loaded = run(store.load())
    assert (loaded.commit_no, loaded.last_seq, loaded.wrote_at) == (2, 2, at(7))


def test_store_leaves_a_group_it_has_stored(site: Site) -> None:
    store = site.open_store()
    commit(store, opened(1, 1))
    before = run(store.load())
    commit(store, opened(1, 1))
    assert run(store.load()) == before


@pytest.mark.parametrize("number", [3, 5])
def test_store_fences_a_number_out_of_turn(site: Site, number: int) -> None:
    store = site.open_store()
    commit(store, group(1))
    with pytest.raises(Fenced):
        commit(store, group(number))
    commit(store, group(2))


def test_store_of_a_new_driver_is_trusted(site: Site) -> None:
    assert site.open_store().is_trusted


def test_store_fences_an_earlier_driver(site: Site) -> None:
    early = site.open_store()
    commit(early, opened(1, 1))
    late = site.open_store()
    with pytest.raises(Fenced):
        commit(early, group(2, messages=[post(3)]))
    assert run(late.load()).last_seq == 2
    commit(late, group(2, messages=[post(3)]))
    assert run(late.load()).last_seq == 3


def test_store_refuses_a_second_message_of_one_seq(site: Site) -> None:
    store = site.open_store()
    commit(store, opened(1, 1))
    assert_refused(store, group(2, messages=[post(3), post(2)]))


def test_store_refuses_a_place_that_is_taken(site: Site) -> None:
    store = site.open_store()
    commit(store, opened(1, 1))
    assert_refused(store, group(2, messages=[post(3), message(4, author=1, root=1, ordinal=2)]))


def test_store_refuses_an_answer_to_an_unknown_root(site: Site) -> None:
    store = site.open_store()
    assert_refused(store, group(1, messages=[post(1), message(2, author=1, root=9, ordinal=2)]))


def test_store_refuses_an_unknown_author(site: Site) -> None:
    store = site.open_store()
    assert_refused(store, group(1, messages=[post(1), post(2, author=99)]))


def test_store_refuses_a_second_open_thread_of_a_pair(site: Site) -> None:
    store = site.open_store()
    commit(store, opened(1, 1))
    assert_refused(store, opened(2, 3))


def test_store_refuses_two_openings_of_a_pair_in_one_group(site: Site) -> None:
    store = site.open_store()
    made = opened(1, 1)
    made.messages += opened(1, 3).messages
    made.threads.append(replace(thread(3, 1, 2)))
    assert_refused(store, made)


def test_store_takes_a_thread_of_a_pair_whose_other_closes_with_it(site: Site) -> None:
    store = site.open_store()
    commit(store, opened(1, 1))
    ends = closed(thread(1, 2, 1), 4)
    made = opened(2, 3)
    made.threads.append(ends)
    made.decisions.append(decision(ends))
    commit(store, made)
    assert [one.root for one in run(store.load()).threads] == [3]


def test_store_takes_an_open_thread_again_and_again(site: Site) -> None:
    store = site.open_store()
    commit(store, opened(1, 1))
    changed = replace(thread(1, 2, 1), n_agent_messages=7)
    commit(store, group(2, threads=[changed]), group(3, threads=[changed]))
    assert run(store.load()).threads == (changed,)


def test_store_takes_threads_with_only_a_person_opposite(site: Site) -> None:
    store = site.open_store()
    commit(store, group(1, messages=[post(1), post(2)]))
    lonely = [thread(1, 2, None), thread(2, 2, None)]
    commit(store, group(2, threads=lonely))
    assert run(store.load()).threads == tuple(lonely)


def test_store_refuses_a_second_decision_of_a_cycle(site: Site) -> None:
    store = site.open_store()
    ends = closed(thread(1, 2, 1), 2)
    commit(store, opened(1, 1), group(2, threads=[ends], decisions=[decision(ends)]))
    assert_refused(store, group(3, messages=[post(3)], decisions=[decision(ends)]))


def test_store_takes_a_close_and_a_reopening_in_one_group(site: Site) -> None:
    store = site.open_store()
    ends = closed(thread(1, 2, 1), 2)
    again = thread(1, 2, 1, cycle=2)
    commit(store, opened(1, 1), group(2, threads=[again], decisions=[decision(ends)]))
    loaded = run(store.load())
    assert loaded.threads == (again,)
    assert [(agent, talk.closed_seq) for agent, talk in loaded.untold] == [(1, 2), (2, 2)]


def test_store_refuses_a_second_proposal_of_a_cycle(site: Site) -> None:
    store = site.open_store()
    proposal = NewProposal(root=1, cycle=1, agents=(2, 1), summary_seq=2, at=at(2))
    commit(store, opened(1, 1), group(2, proposals=[proposal]))
    assert run(store.load()).unreviewed == ((1, 1, 1), (2, 1, 1))
    assert_refused(store, group(3, messages=[post(3)], proposals=[proposal]))


def test_store_refuses_a_proposal_without_its_summary(site: Site) -> None:
    store = site.open_store()
    proposal = NewProposal(root=1, cycle=1, agents=(2, 1), summary_seq=9, at=at(2))
    commit(store, opened(1, 1))
    assert_refused(store, group(2, messages=[post(3)], proposals=[proposal]))


def test_store_keeps_one_invitation_per_agent_and_message(site: Site) -> None:
    store = site.open_store()
    commit(store, group(1, messages=[post(1)], invitations=[INVITATION]))
    assert run(store.load()).invitations == (INVITATION,)
    settled = replace(INVITATION, state=InvitationState.REFUSED, reason="not_permitted")
    commit(store, group(2, invitations=[settled]))
    assert run(store.load()).invitations == ()


def test_store_refuses_an_invitation_to_an_unknown_message(site: Site) -> None:
    store = site.open_store()
    commit(store, group(1, messages=[post(1)]))
    assert_refused(
        store, group(2, messages=[post(2)], invitations=[replace(INVITATION, message=9)])
    )


@pytest.mark.parametrize("channel", [None, 2])
def test_store_refuses_a_memory_version_that_exists(site: Site, channel: int | None) -> None:
    store = site.open_store()
    new = NewMemory(memory=Memory(agent=1, channel=channel, version=1, upto_seq=0), text="One.")
    commit(store, group(1, memories=[new]))
    assert_refused(store, group(2, messages=[post(1)], memories=[replace(new, text="Two.")]))
    assert memory_text(store, 1, channel) == "One."


def test_store_refuses_a_memory_that_a_person_edited(site: Site) -> None:
    store = site.open_store()
    site.edit_memory(agent=1, channel=None, text="By hand.")
    new = NewMemory(memory=Memory(agent=1, channel=None, version=1, upto_seq=0), text="One.")
    assert_refused(store, group(1, memories=[new]))
    assert memory_text(store, 1, None) == "By hand."


def test_store_refuses_to_take_in_a_message_twice(site: Site) -> None:
    store = site.open_store()
    message_id = site.write_message(channel=1, text="Hello")
    commit(store, group(1, taken_in=[taken_in(message_id, 1)]))
    assert_refused(store, group(2, messages=[post(2)], taken_in=[taken_in(message_id, 3)]))


@pytest.mark.parametrize(
    "rows",
    [
        {"threads": [thread(1, 2, 1), thread(1, 2, 1, cycle=2)]},
        {"invitations": [INVITATION, INVITATION]},
        {"states": [(1, AgentState()), (1, AgentState(cursor=1))]},
        {"turns": [turn(1), turn(1)]},
        {"calls": [call(1, 1), call(1, 1)]},
        {"subscriptions": [(1, 1), (1, 1)]},
        {
            "memories": [
                NewMemory(memory=Memory(agent=1, channel=None, version=version), text="x")
                for version in (1, 2)
            ]
        },
    ],
    ids=lambda rows: next(iter(rows)),
)
def test_store_refuses_a_row_that_stands_twice(site: Site, rows: dict[str, Any]) -> None:
    store = site.open_store()
    commit(store, group(1, messages=[post(1)]))
    assert_refused(store, group(2, **rows))


def test_store_refuses_a_poisoned_text_and_takes_its_neighbours_alone(site: Site) -> None:
    store = site.open_store()
    messages = [post(seq) for seq in range(1, 8)]
    messages[3] = replace(messages[3], text="a NUL \x00 inside")
    assert_refused(store, group(1, messages=messages))
    commit(store, group(2, messages=[one for one in messages if one.seq != 4]))
    assert run(store.load()).last_seq == 7


def test_store_refuses_a_group_under_another_topology(site: Site) -> None:
    store = site.open_store()
    version = run(store.load()).gate.version
    commit(store, group(1, messages=[post(1)], topology_version=version))
    site.move_topology()
    assert_refused(store, group(2, messages=[post(2)], topology_version=version), TopologyMoved)
    assert run(store.load_gate()).version > version
    newest = run(store.load_gate()).version
    commit(store, group(3, messages=[post(2)], topology_version=newest))


def test_store_takes_a_group_that_starts_nothing_under_any_topology(site: Site) -> None:
    store = site.open_store()
    site.move_topology()
    commit(store, group(1, messages=[post(1)]))
    assert run(store.load()).last_seq == 1


def test_store_counts_barren_closes_of_a_pair_since_its_last_proposal(site: Site) -> None:
    store = site.open_store()
    outcomes = [Outcome.LOST, Outcome.PROPOSAL, Outcome.NO_PROPOSAL, Outcome.TIMEOUT]
    for number, outcome in enumerate(outcomes, start=1):
        root = 2 * number - 1
        made = opened(number, root)
        ends = closed(made.threads[0], root + 1, outcome)
        made.threads = [ends]
        made.decisions = [decision(ends)]
        commit(store, made)
    ((pair, history),) = run(store.load()).pairs
    assert (pair, history.closed_seq, history.n_barren) == ((1, 2), 8, 2)
