"""Proposals, runs, turns, calls, messages and memories in the admin."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from django.contrib.auth.models import Permission, User
from django.urls import reverse
from django.utils import timezone

from cohorts.models import Agent
from engine.admin.figures import AGENTS_SHOWN
from engine.admin.pages import PAGED_AT_MOST, BoundedPaginator, number_of, seconds_in_words
from engine.export.summary import summarise
from engine.inbox import review_proposal
from engine.models import Inbox, Memory, Message, Proposal, Run, Turn
from tests.site.admin_rows import (
    HOSTILE,
    NOON,
    count_queries,
    make_rows,
    remember,
    see_topology,
    take_turn,
    talk,
)

if TYPE_CHECKING:
    from django.test import Client

pytestmark = pytest.mark.django_db
HISTORY = ("proposal", "run", "turn", "llmcall", "message", "memory")


@pytest.fixture
def admin_user() -> User:
    """Stand in for pytest-django's, whose password takes a second to hash."""
    return User.objects.create(username="admin", is_staff=True, is_superuser=True)


def person_with(client: Client, *codenames: str) -> Client:
    """Log somebody in who has these permissions and no more."""
    user = User.objects.create(username="somebody", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    client.force_login(user)
    return client


def list_url(name: str) -> str:
    return reverse(f"admin:engine_{name}_changelist")


def change_url(row: Proposal | Run | Memory | Message) -> str:
    return reverse(f"admin:engine_{row._meta.model_name}_change", args=[row.pk])


def review_url(proposal: Proposal) -> str:
    return reverse("admin:engine_proposal_review", args=[proposal.pk])


def page_of(client: Client, url: str, data: dict[str, object] | None = None) -> str:
    """Return the page that a GET, or a POST of data, leads to."""
    response = client.get(url) if data is None else client.post(url, data, follow=True)
    assert response.status_code == 200
    return response.content.decode()


@pytest.mark.parametrize(
    ("text", "number"),
    [("7", 7), (None, None), ("", None), ("-1", None), ("x", None), ("9" * 40, None), ("²", None)],
)
def test_number_of_reads_plain_numbers_alone(text: str | None, number: int | None) -> None:
    assert number_of(text) == number


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (None, "–"),
        (0.44, "0.4 s"),
        (12.3, "12 s"),
        (185, "3 min 5 s"),
        (7_800, "2 h 10 min"),
    ],
)
def test_seconds_in_words(seconds: float | None, words: str) -> None:
    assert seconds_in_words(seconds) == words


def test_bounded_paginator_counts_no_further_than_it_pages() -> None:
    Agent.objects.bulk_create(
        Agent(slug=f"a-{n}", bot_name=f"A{n}") for n in range(PAGED_AT_MOST + 3)
    )

    assert BoundedPaginator(Agent.objects.order_by("pk"), 50).count == PAGED_AT_MOST
    assert BoundedPaginator(Agent.objects.filter(slug="a-1"), 50).count == 1


@pytest.mark.parametrize("name", HISTORY)
def test_history_is_neither_made_nor_changed_nor_deleted(admin_client: Client, name: str) -> None:
    rows = make_rows()
    take_turn(rows, 1)
    talk(rows, 1)
    row = {"memory": remember(rows, "x")}.get(name)
    model = reverse(f"admin:engine_{name}_add")
    key = row.pk if row else 1

    assert admin_client.get(model).status_code == 403
    delete = reverse(f"admin:engine_{name}_delete", args=[key])
    assert admin_client.post(delete, {"post": "yes"}).status_code == 403
    page = page_of(admin_client, list_url(name))
    assert 'name="action"' not in page


@pytest.mark.parametrize("name", HISTORY)
def test_an_empty_list_says_what_to_do_next(admin_client: Client, name: str) -> None:
    empty = page_of(admin_client, list_url(name))
    sought = page_of(admin_client, f"{list_url(name)}?q=zzz") if name != "run" else empty

    assert 'class="sim-empty"' in empty
    assert "yet" in empty
    assert "Nothing here yet" not in empty
    assert name == "run" or "Nothing matches." in sought


@pytest.mark.parametrize("name", HISTORY)
def test_lists_are_for_who_may_view_them(client: Client, name: str) -> None:
    somebody = person_with(client, f"view_{name}")

    assert somebody.get(list_url(name)).status_code == 200
    others = [other for other in HISTORY if other != name]
    assert {somebody.get(list_url(other)).status_code for other in others} == {403}


def test_lists_cost_the_same_for_one_row_and_for_many(admin_client: Client) -> None:
    rows = make_rows()
    talk(rows, 1)
    take_turn(rows, 1)
    remember(rows, "x")
    few = [count_queries(admin_client, list_url(name)) for name in HISTORY]

    for number in range(2, 12):
        talk(rows, 10 * number)
        take_turn(rows, number)
        agent = Agent.objects.create(slug=f"more-{number}", bot_name=f"More{number}")
        remember(rows, "x", agent=agent)
        Run.objects.create(simulation=rows.simulation, status="completed")

    assert [count_queries(admin_client, list_url(name)) for name in HISTORY] == few


def test_turns_and_calls_of_a_run_can_be_shown_alone(admin_client: Client) -> None:
    rows = make_rows()
    take_turn(rows, 41)
    other = Run.objects.create(simulation=rows.simulation)

    for name in ("turn", "llmcall", "message"):
        page = page_of(admin_client, f"{list_url(name)}?run__id__exact={other.pk}")
        assert "Nothing matches." in page
    assert "41 s" in page_of(admin_client, f"{list_url('turn')}?run__id__exact={rows.run.pk}")
    calls = page_of(admin_client, f"{list_url('llmcall')}?run__id__exact={rows.run.pk}")
    assert "$0.0015" in calls


def test_messages_of_people_and_agents_are_listed(admin_client: Client) -> None:
    rows = make_rows()
    proposal = talk(rows, 1)
    Message.objects.create(
        simulation=rows.simulation,
        channel=rows.channel,
        person="eve",
        text="Hi",
        visibility="public",
        written_at=NOON,
    )

    page = page_of(admin_client, list_url("message"))

    assert "eve (person)" in page
    assert "waits" in page
    assert "bob-lab" in page
    keys = [rows.simulation.pk, proposal.thread.pk]
    assert reverse("admin:engine_thread", args=keys) in page


# --- proposals ---------------------------------------------------------------------------------


def test_proposals_that_wait_come_first(admin_client: Client) -> None:
    rows = make_rows()
    first, second = talk(rows, 1), talk(rows, 11)
    review_proposal(second, version=1, state="accepted", person="eve")

    page = page_of(admin_client, list_url("proposal"))

    assert page.index(change_url(first)) < page.index(change_url(second))
    assert "waits for review" in page
    assert "accepted" in page


@pytest.mark.parametrize("state", ["accepted", "declined", "revised"])
def test_a_review_is_stored_with_its_note(admin_client: Client, state: str) -> None:
    proposal = talk(make_rows(), 1)
    Inbox.objects.all().delete()
    sent = {"version": 1, "state": state, "note": " Who pays? "}

    assert "Ask for a revision" in page_of(admin_client, change_url(proposal))
    page = page_of(admin_client, review_url(proposal), sent)

    proposal.refresh_from_db()
    assert (proposal.state, proposal.note, proposal.reviewed_by) == (state, "Who pays?", "admin")
    assert list(Inbox.objects.values_list("kind", "key")) == [("review", proposal.pk)]
    assert f"The proposal is {state}." in page
    assert "Ask for a revision" not in page
    assert "Who pays?" in page


def test_a_review_from_a_thread_leads_back_to_it(admin_client: Client) -> None:
    rows = make_rows()
    proposal = talk(rows, 1)

    response = admin_client.post(
        review_url(proposal), {"version": 1, "state": "accepted", "from_thread": "1"}
    )

    keys = [rows.simulation.pk, proposal.thread_id]
    assert response["Location"] == reverse("admin:engine_thread", args=keys)


def test_a_second_review_is_told_who_was_first(admin_client: Client) -> None:
    proposal = talk(make_rows(), 1)
    review_proposal(proposal, version=1, state="declined", person="eve")

    page = page_of(admin_client, review_url(proposal), {"version": 1, "state": "accepted"})

    assert "It is already reviewed, by eve: Declined." in page
    proposal.refresh_from_db()
    assert proposal.state == "declined"


def test_a_review_of_nonsense_is_refused(admin_client: Client) -> None:
    proposal = talk(make_rows(), 1)

    assert "A review accepts, declines" in page_of(
        admin_client, review_url(proposal), {"version": "x", "state": "perhaps"}
    )
    assert admin_client.get(review_url(proposal)).status_code == 405
    assert admin_client.post(review_url(Proposal(pk=999))).status_code == 404
    assert admin_client.get(change_url(Proposal(pk=999))).status_code == 404


def test_reviewing_needs_its_permission(client: Client) -> None:
    proposal = talk(make_rows(), 1)
    reader = person_with(client, "view_proposal")

    page = page_of(reader, change_url(proposal))

    assert "reviewing them needs the permission" in page
    assert "Read the whole thread" not in page
    assert reader.post(review_url(proposal), {"version": 1, "state": "accepted"}).status_code == 403
    proposal.refresh_from_db()
    assert proposal.state == "pending"


def test_reviewing_is_open_to_who_may_change_proposals(client: Client) -> None:
    proposal = talk(make_rows(), 1)
    reviewer = person_with(client, "view_proposal", "change_proposal")

    assert (
        reviewer.post(review_url(proposal), {"version": 1, "state": "accepted"}).status_code == 302
    )
    proposal.refresh_from_db()
    assert proposal.state == "accepted"


def test_proposal_page_is_for_who_may_view_proposals(client: Client) -> None:
    proposal = talk(make_rows(), 1)

    assert person_with(client, "view_message").get(change_url(proposal)).status_code == 403


# --- runs --------------------------------------------------------------------------------------


def test_list_of_runs_says_how_each_went(admin_client: Client) -> None:
    rows = make_rows()
    for number in range(1, 4):
        take_turn(rows, number)
    talk(rows, 1)
    Run.objects.filter(pk=rows.run.pk).update(summary=summarise(rows.run.pk))

    page = page_of(admin_client, list_url("run"))

    for cell in (
        ">stopped</span>",
        "somebody stopped it",
        "1 Jan 2026 12:00",
        "1 min 35 s",
        'class="field-turns">3<',
        'class="field-llm_calls">3<',
        'class="field-threads">1<',
        'class="field-proposals">1<',
        'class="field-started_by">root<',
    ):
        assert cell in page


def test_live_run_is_counted_from_its_rows_and_not_from_an_old_summary(
    admin_client: Client,
) -> None:
    rows = make_rows()
    stale = summarise(rows.run.pk)
    Run.objects.update(status="running", end_reason="", finished_at=None, summary=stale)
    Run.objects.update(started_at=timezone.now() - timedelta(hours=3))
    take_turn(rows, 1)
    talk(rows, 1)

    lists = page_of(admin_client, list_url("run"))
    page = page_of(admin_client, change_url(rows.run))

    assert 'class="field-turns">1<' in lists
    assert 'class="field-proposals">1<' in lists
    assert "3 h 0 min" in lists
    assert "<dt>Turns</dt><dd>1</dd>" in page


def test_run_that_has_not_begun_shows_dashes(admin_client: Client) -> None:
    rows = make_rows()
    queued = Run.objects.create(simulation=rows.simulation)

    page = page_of(admin_client, change_url(queued))

    assert "<dt>Duration</dt><dd>–</dd>" in page
    assert "No agent has had a turn in this run yet." in page
    assert "The run has not read the cohorts yet." in page
    assert "Nothing was refused." in page
    assert "queued" in page_of(admin_client, list_url("run"))


def test_run_page_shows_all_that_is_known(admin_client: Client) -> None:
    rows = make_rows()
    take_turn(rows, 1)
    take_turn(rows, 2)
    take_turn(rows, 3, agent=rows.bob)
    talk(rows, 1)
    see_topology(rows, 4)
    Run.objects.update(detail="Stopped by <b>eve</b>.")
    summary = summarise(rows.run.pk) | {
        "longest_wait_seconds": 3.0,
        "wait_bound_seconds": 1200.0,
        "slot_utilisation": 0.5,
    }
    Run.objects.update(summary=summary)

    page = page_of(admin_client, change_url(rows.run))

    for text in (
        "3.0 s (bound: 20 min 0 s)",
        "somebody stopped it: Stopped by &lt;b&gt;eve&lt;/b&gt;.",
        "<dt>Slots in use</dt><dd>50%</dd>",
        "<dt>Cost</dt><dd>$0.0045</dd>",
        '<th scope="row">ended with a proposal</th><td>1</td>',
        '<th scope="row">scan</th><td>3</td>',
        '<th scope="row">pair_taken</th><td>3</td>',
        '<th scope="row">ada-lab</th><td>2</td><td>0</td><td>2</td><td>2</td><td>4</td>',
        "policy open, cohorts in force",
        "<dt>makers (2)</dt><dd>ada-lab, bob-lab</dd>",
        "<dt>crowd (60)</dt>",
        "a49 and 10 more",
        "<dt>New posts per agent and day</dt><dd>3</dd>",
        "<dt>At most so much money</dt><dd>$2.5000</dd>",
    ):
        assert text in page, text
    assert page.index(">ada-lab</th>") < page.index(">bob-lab</th>")


def test_run_page_costs_the_same_for_many_and_cuts_the_agents(admin_client: Client) -> None:
    rows = make_rows()
    take_turn(rows, 1)
    see_topology(rows, 1)
    few = count_queries(admin_client, change_url(rows.run))
    assert "Only the agents with most turns" not in page_of(admin_client, change_url(rows.run))

    agents = [Agent(slug=f"m-{n}", bot_name=f"M{n}") for n in range(AGENTS_SHOWN)]
    Agent.objects.bulk_create(agents)
    Turn.objects.bulk_create(
        Turn(
            simulation=rows.simulation,
            run=rows.run,
            number=number,
            agent=agent,
            agent_version=1,
            selected_at=NOON,
            waited_seconds=0,
            outcome="nothing",
        )
        for number, agent in enumerate(Agent.objects.filter(slug__startswith="m-"), start=2)
    )
    for version in range(2, 6):
        see_topology(rows, version)

    assert count_queries(admin_client, change_url(rows.run)) == few
    assert "Only the agents with most turns" in page_of(admin_client, change_url(rows.run))


# --- memories ----------------------------------------------------------------------------------


def test_list_of_memories_shows_the_newest_version_of_each(admin_client: Client) -> None:
    rows = make_rows()
    remember(rows, "old words")
    remember(rows, "new words", version=2)
    remember(rows, "", agent=rows.bob)
    private = Memory.objects.create(
        simulation=rows.simulation,
        agent=rows.ada,
        channel=rows.channel,
        version=1,
        text="private words",
        written_at=NOON,
    )

    page = page_of(admin_client, list_url("memory"))

    assert "new words" in page
    assert "old words" not in page
    assert "(empty)" in page
    assert "private talks in #general" in page
    assert "private words" in page_of(admin_client, change_url(private))


def test_memory_is_edited_as_a_new_version_with_a_note(admin_client: Client) -> None:
    rows = make_rows()
    memory = remember(rows, "Bob has boats.")
    Inbox.objects.all().delete()

    assert "Bob has boats.</textarea>" in page_of(admin_client, change_url(memory))
    page = page_of(admin_client, change_url(memory), {"version": 1, "text": "Bob has no boats."})

    newest = Memory.objects.get(version=2)
    assert (newest.text, newest.person) == ("Bob has no boats.", "admin")
    assert list(Inbox.objects.values_list("kind", "key")) == [("memory", rows.ada.pk)]
    assert "The memory is stored" in page
    assert "Bob has boats." in page


def test_memory_is_cleared(admin_client: Client) -> None:
    memory = remember(make_rows(), "Bob has boats.")

    page = page_of(admin_client, change_url(memory), {"version": 1, "text": "x", "clear": "1"})

    assert Memory.objects.get(version=2).text == ""
    assert "The memory is cleared" in page


def test_memory_that_changed_meanwhile_is_not_overwritten(admin_client: Client) -> None:
    rows = make_rows()
    memory = remember(rows, "old")
    remember(rows, "by the agent itself", version=2)

    page = page_of(admin_client, change_url(memory), {"version": 1, "text": "mine"})

    assert "The memory has changed meanwhile" in page
    assert "by the agent itself</textarea>" in page
    assert Memory.objects.count() == 2


def test_memory_is_shown_as_harmless_text(admin_client: Client) -> None:
    page = page_of(admin_client, change_url(remember(make_rows(), HOSTILE)))

    assert "&lt;script&gt;" in page
    assert "<script>alert" not in page


def test_memory_page_is_guarded(client: Client, admin_client: Client) -> None:
    memory = remember(make_rows(), "x")
    assert admin_client.get(change_url(Memory(pk=999))).status_code == 404

    reader = person_with(client, "view_memory")
    assert "<textarea" not in page_of(reader, change_url(memory))
    assert reader.post(change_url(memory), {"version": 1, "text": "y"}).status_code == 403
    User.objects.get(username="somebody").user_permissions.clear()
    assert reader.get(change_url(memory)).status_code == 403
    assert Memory.objects.count() == 1
