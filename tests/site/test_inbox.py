"""What people change beside a run: one transaction each, with its note for the driver."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cohorts.models import Agent
from cohorts.operations import save_agent
from engine import inbox
from engine.models import (
    Channel,
    Inbox,
    Memory,
    Message,
    Proposal,
    RosterEntry,
    Run,
    Simulation,
    Thread,
)
from tests.contract.groups import START

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.django_db


@pytest.fixture
def simulation() -> Simulation:
    return Simulation.objects.create(name="main")


@pytest.fixture
def channel(simulation: Simulation) -> Channel:
    made = Channel.objects.create(simulation=simulation, name="general")
    Inbox.objects.all().delete()
    return made


@pytest.fixture
def agents() -> list[Agent]:
    return [
        Agent.objects.create(slug=f"lab-{number}", bot_name=f"Bot{number}") for number in (1, 2)
    ]


@pytest.fixture
def proposal(simulation: Simulation, channel: Channel, agents: list[Agent]) -> Proposal:
    root = Message.objects.create(
        simulation=simulation,
        seq=1,
        ordinal=1,
        channel=channel,
        author=agents[0],
        is_bot=True,
        text="Let us try.",
        visibility="public",
        written_at=START,
        committed_at=START,
    )
    thread = Thread.objects.create(
        root=root,
        root_seq=1,
        simulation=simulation,
        channel=channel,
        opener=agents[1],
        partner=agents[0],
        opened_seq=1,
        opened_at=START,
        owed_since=START,
        topology_version=0,
        state="closed",
        outcome="proposal",
        closed_seq=1,
        closed_at=START,
    )
    return Proposal.objects.create(
        simulation=simulation,
        thread=thread,
        cycle=1,
        proposer=agents[1],
        confirmer=agents[0],
        summary=root,
        proposed_at=START,
    )


def notes() -> list[tuple[str, int, int | None]]:
    return list(Inbox.objects.order_by("pk").values_list("kind", "key", "channel_id"))


def test_message_waits_without_its_place(channel: Channel) -> None:
    root = inbox.write_message(channel=channel, person="Ada", text="Hello")
    answer = inbox.write_message(channel=channel, person="Ada", text="Well", root=root)
    assert (root.seq, root.ordinal, root.visibility, root.is_bot) == (None, None, "public", False)
    assert (answer.root, str(answer)) == (root, "a message that waits")
    assert notes() == []


def test_message_of_nothing_is_refused(channel: Channel) -> None:
    with pytest.raises(inbox.RefusedChangeError, match="empty"):
        inbox.write_message(channel=channel, person="Ada", text=" \n")
    assert not Message.objects.exists()


@pytest.mark.parametrize("poison", ["\0", "\ud800"], ids=["nul", "half-a-pair"])
def test_text_that_no_database_holds_is_refused(
    simulation: Simulation, channel: Channel, proposal: Proposal, poison: str
) -> None:
    before = Message.objects.count()
    text = f"Hello{poison}"
    sentence = r"holds a character that cannot be stored \(a NUL or half of a pair\): leave it out"
    with pytest.raises(inbox.RefusedChangeError, match=f"The message {sentence}"):
        inbox.write_message(channel=channel, person="Ada", text=text)
    with pytest.raises(inbox.RefusedChangeError, match=f"The note {sentence}"):
        inbox.review_proposal(proposal, version=1, state="accepted", person="Ada", note=text)
    with pytest.raises(inbox.RefusedChangeError, match=f"The memory {sentence}"):
        inbox.edit_memory(
            simulation=simulation,
            agent=proposal.proposer,
            channel=None,
            version=0,
            text=text,
            person="Ada",
        )
    assert (Message.objects.count(), Memory.objects.count(), notes()) == (before, 0, [])


def test_text_of_too_many_characters_is_refused(channel: Channel, proposal: Proposal) -> None:
    sentence = "The message has 20,001 characters, and 20,000 are possible: shorten it"
    before = Message.objects.count()
    with pytest.raises(inbox.RefusedChangeError, match=sentence):
        inbox.write_message(channel=channel, person="Ada", text="x" * 20_001)
    inbox.write_message(channel=channel, person="Ada", text="x" * 20_000)
    assert Message.objects.count() == before + 1
    with pytest.raises(inbox.RefusedChangeError, match="The note has 4,001 characters"):
        inbox.review_proposal(proposal, version=1, state="accepted", person="Ada", note="x" * 4_001)


def test_message_under_what_is_no_root_of_the_channel_is_refused(
    simulation: Simulation, channel: Channel
) -> None:
    root = inbox.write_message(channel=channel, person="Ada", text="Hello")
    answer = inbox.write_message(channel=channel, person="Ada", text="Well", root=root)
    other = Channel.objects.create(simulation=simulation, name="other")
    for where, what in ((other, root), (channel, answer)):
        with pytest.raises(inbox.RefusedChangeError, match="not in this channel"):
            inbox.write_message(channel=where, person="Ada", text="Lost", root=what)
    assert Message.objects.count() == 2


def test_review_stands_once_and_leaves_one_note(proposal: Proposal) -> None:
    done = inbox.review_proposal(proposal, version=1, state="accepted", person="Ada", note="Go.")
    assert (done.state, done.version, done.reviewed_by, done.note) == ("accepted", 2, "Ada", "Go.")
    assert done.reviewed_at is not None
    again = inbox.review_proposal(proposal, version=1, state="accepted", person="Ada")
    assert again.note == "Go."
    with pytest.raises(inbox.RefusedChangeError, match="already reviewed, by Ada: Accepted"):
        inbox.review_proposal(proposal, version=1, state="declined", person="Bob")
    assert notes() == [("review", proposal.pk, None)]


def test_review_of_another_version_is_refused(proposal: Proposal) -> None:
    with pytest.raises(inbox.RefusedChangeError, match="by somebody else: Pending"):
        inbox.review_proposal(proposal, version=9, state="accepted", person="Ada")
    assert notes() == []


def test_review_that_is_none_is_refused(proposal: Proposal) -> None:
    with pytest.raises(inbox.RefusedChangeError, match="accepts, declines or asks"):
        inbox.review_proposal(proposal, version=1, state="pending", person="Ada")


def test_memory_edit_is_a_new_version_with_a_note(
    simulation: Simulation, channel: Channel, agents: list[Agent]
) -> None:
    def edit(text: str, *, version: int, where: Channel | None = None) -> Memory:
        return inbox.edit_memory(
            simulation=simulation,
            agent=agents[0],
            channel=where,
            version=version,
            text=text,
            person="Ada",
        )

    Memory.objects.create(
        simulation=simulation,
        agent=agents[0],
        version=1,
        text="Old.",
        upto_seq=9,
        written_at=START,
    )
    edited = edit("New.", version=1)
    assert (edited.version, edited.upto_seq, edited.person) == (2, 9, "Ada")
    secret = edit("Secret.", version=0, where=channel)
    assert (secret.version, secret.upto_seq) == (1, 0)
    with pytest.raises(inbox.RefusedChangeError, match="changed meanwhile"):
        edit("Late.", version=1)
    agent = agents[0].pk
    assert notes() == [("memory", agent, None), ("memory", agent, channel.pk)]


def test_saved_agent_is_noted_where_it_takes_part(
    simulation: Simulation, channel: Channel, agents: list[Agent]
) -> None:
    chosen = Simulation.objects.create(name="chosen", roster_chosen=True)
    Simulation.objects.create(name="elsewhere", roster_chosen=True)
    RosterEntry.objects.create(simulation=chosen, agent=agents[0])
    assert notes() == [("agent", agents[0].pk, None)]
    Inbox.objects.all().delete()
    agents[0].public_profile = "We grow crystals."
    save_agent(agents[0], who="Ada")
    told = Inbox.objects.order_by("simulation").values_list("simulation__name", "key")
    assert list(told) == [("chosen", agents[0].pk), ("main", agents[0].pk)]


def test_unchanged_agent_leaves_no_note(channel: Channel, agents: list[Agent]) -> None:
    save_agent(agents[0], who="Ada")
    assert notes() == []


def test_saved_channel_is_noted(simulation: Simulation) -> None:
    channel = Channel.objects.create(simulation=simulation, name="general")
    channel.topic = "Crystals"
    channel.save()
    assert notes() == [("channel", channel.pk, None)] * 2


@pytest.mark.parametrize(
    ("made", "shown"),
    [
        (lambda p: f"{p}".rstrip("0123456789"), "proposal "),
        (lambda p: p.thread, "thread 1"),
        (lambda p: p.summary, "message 1"),
        (lambda p: Inbox(simulation=p.simulation, kind="agent", key=3), "agent 3"),
        (lambda p: Run(pk=4, simulation=p.simulation), "run 4 of main"),
    ],
)
def test_rows_name_themselves(
    proposal: Proposal, made: Callable[[Proposal], object], shown: str
) -> None:
    assert str(made(proposal)).replace(f"thread {proposal.thread_id}", "thread 1") == shown
