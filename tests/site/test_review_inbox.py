"""The inbox of proposals: what waits, for whom, put off, and decided in batches."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.utils import timezone

from engine.inbox import review_proposal
from engine.models import Inbox, LlmCall, Proposal
from tests.site.admin_world import (
    HOSTILE,
    Rows,
    change_url,
    count_queries,
    list_url,
    make_rows,
    page_of,
    person_with,
    take_turn,
    talk,
)

if TYPE_CHECKING:
    from django.test import Client

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin_user() -> User:
    """Stand in for pytest-django's, whose password takes a second to hash."""
    return User.objects.create(username="admin", is_staff=True, is_superuser=True)


@pytest.fixture
def rows() -> Rows:
    return make_rows()


def act(client: Client, action: str, *chosen: Proposal, note: str = "") -> str:
    form = {"action": action, "_selected_action": [one.pk for one in chosen], "note": note}
    return client.post(f"{list_url('proposal')}?box=all", form, follow=True).content.decode()


def shown(client: Client, box: str = "") -> list[str]:
    """Return which of three proposals a box shows."""
    page = page_of(client, f"{list_url('proposal')}{f'?box={box}' if box else ''}")
    every = Proposal.objects.order_by("pk")
    return [name for name, one in zip("abc", every, strict=False) if change_url(one) in page]


def test_inbox_shows_what_waits_and_for_whom(admin_client: Client, rows: Rows) -> None:
    first, second, third = (talk(rows, seq) for seq in (1, 11, 21))
    act(admin_client, "take", first)
    act(admin_client, "put_off_a_week", second)
    review_proposal(third, version=1, state="accepted", person="eve")
    assert shown(admin_client) == ["a"]
    # Noon in twenty-four hours, on every page.
    assert "1 Jan 2026, 12:00" in page_of(admin_client, list_url("proposal"))
    assert shown(admin_client, "mine") == ["a"]
    assert shown(admin_client, "free") == []
    assert shown(admin_client, "snoozed") == ["b"]
    assert shown(admin_client, "all") == ["a", "b", "c"]
    act(admin_client, "hand_back", first)
    act(admin_client, "wake", second)
    assert shown(admin_client, "free") == ["a", "b"]
    assert shown(admin_client, "mine") == []


def test_what_is_put_off_comes_back_by_itself_and_was_never_declined(
    admin_client: Client, rows: Rows
) -> None:
    proposal = talk(rows, 1)
    act(admin_client, "put_off_a_day", proposal)
    proposal.refresh_from_db()
    assert proposal.state == "pending"
    assert proposal.snoozed_until is not None
    assert timedelta(hours=23) < proposal.snoozed_until - timezone.now() < timedelta(hours=25)
    Proposal.objects.update(snoozed_until=timezone.now() - timedelta(minutes=1))
    assert shown(admin_client) == ["a"]


def test_batch_is_reviewed_with_one_note_and_told_to_the_drivers(
    admin_client: Client, rows: Rows
) -> None:
    first, second, third = (talk(rows, seq) for seq in (1, 11, 21))
    review_proposal(third, version=1, state="declined", person="eve")
    Inbox.objects.all().delete()

    page = act(admin_client, "accept", first, second, third, note="Good work.")

    assert "2 proposals are accepted." in page
    assert "It is already reviewed, by eve" in page
    stored = Proposal.objects.order_by("pk").values_list("state", "reviewed_by", "note")
    assert list(stored) == [
        ("accepted", "admin", "Good work."),
        ("accepted", "admin", "Good work."),
        ("declined", "eve", ""),
    ]
    assert sorted(Inbox.objects.values_list("kind", "key")) == [
        ("review", first.pk),
        ("review", second.pk),
    ]
    assert LogEntry.objects.filter(change_message="Reviewed: accepted.").count() == 2


def test_one_of_a_batch_is_declined_too(admin_client: Client, rows: Rows) -> None:
    assert "1 proposal is declined." in act(admin_client, "decline", talk(rows, 1))


def test_who_may_only_read_has_no_batch(client: Client, rows: Rows) -> None:
    proposal = talk(rows, 1)
    person_with(client, "view_proposal")
    for action in ("accept", "take", "put_off_a_day"):
        act(client, action, proposal)
    proposal.refresh_from_db()
    assert (proposal.state, proposal.assigned_to, proposal.snoozed_until) == ("pending", "", None)


def test_page_tells_what_a_proposal_rests_on(admin_client: Client, rows: Rows) -> None:
    proposal = talk(rows, 1, HOSTILE)
    for number in (2, 3):
        take_turn(rows, number, agent=rows.bob if number == 2 else rows.ada)
    LlmCall.objects.update(thread=1, started_at=proposal.proposed_at, model="claude-x")
    page = page_of(admin_client, change_url(proposal))
    for part in (
        "ada-lab version 1, bob-lab version 1",
        "version 4, shared: makers",
        "<dt>claude-x</dt><dd>2 calls, $0.0030</dd>",
        "Said last",
    ):
        assert part in page
    assert "<script>alert" not in page
    LlmCall.objects.all().delete()
    assert "<dt>claude-x" not in page_of(admin_client, change_url(proposal))


def test_list_costs_the_same_for_many(admin_client: Client, rows: Rows) -> None:
    talk(rows, 1)
    few = count_queries(admin_client, list_url("proposal"))
    for seq in range(11, 200, 10):
        talk(rows, seq)
    assert count_queries(admin_client, list_url("proposal")) == few <= 15
