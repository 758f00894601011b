"""Proposals, runs, turns, calls, messages and memories in the admin."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from django.contrib.auth.models import Permission, User
from django.urls import reverse

from cohorts.models import Agent
from engine.admin.pages import PAGED_AT_MOST, BoundedPaginator, number_of, seconds_in_words
from engine.models import CallText, LlmCall, Message, Run
from tests.site.admin_world import (
    NOON,
    count_queries,
    list_url,
    make_rows,
    page_of,
    person_with,
    remember,
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
    # Proposals are reviewed in batches, and not deleted.
    assert ('name="action"' in page) is (name == "proposal")
    assert "delete_selected" not in page


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


@pytest.mark.parametrize(
    ("name", "same", "other"),
    [("turn", "outcome=worked", "outcome=failed"), ("llmcall", "phase=scan", "phase=reply")],
)
def test_turns_and_calls_are_filtered_by_words(
    admin_client: Client, name: str, same: str, other: str
) -> None:
    take_turn(make_rows(), 1)

    assert "ada-lab" in page_of(admin_client, f"{list_url(name)}?{same}")
    assert "Nothing matches." in page_of(admin_client, f"{list_url(name)}?{other}")


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


def test_words_of_a_call_are_for_those_who_may_read_them(client: Client) -> None:
    """Private instructions stand in them. What was said is shown as text, and makes nothing."""
    rows = make_rows()
    take_turn(rows, 1)
    call = LlmCall.objects.get()
    CallText.objects.create(
        call=call, asked=json.dumps(["Rules.", "<b>Never sell.</b>"]), said='[{"type": "text"}]'
    )
    page = reverse("admin:engine_llmcall_change", args=[call.pk])

    assert "Never sell." not in page_of(person_with(client, "view_llmcall"), page)

    reader = User.objects.get(username="somebody")
    reader.user_permissions.add(Permission.objects.get(codename="view_calltext"))
    assert "&lt;b&gt;Never sell.&lt;/b&gt;" in page_of(client, page)
    CallText.objects.all().delete()
    assert "not kept" in page_of(client, page)
