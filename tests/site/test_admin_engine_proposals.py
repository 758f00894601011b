"""Proposals in the admin: the list, those that wait first, and the review."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.contrib.auth.models import User
from django.urls import reverse

from engine.inbox import review_proposal
from engine.models import Inbox, Proposal
from tests.site.admin_world import (
    change_url,
    list_url,
    make_rows,
    page_of,
    person_with,
    review_url,
    talk,
)

if TYPE_CHECKING:
    from django.test import Client

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin_user() -> User:
    """Stand in for pytest-django's, whose password takes a second to hash."""
    return User.objects.create(username="admin", is_staff=True, is_superuser=True)


def test_proposals_that_wait_come_first(admin_client: Client) -> None:
    rows = make_rows()
    first, second = talk(rows, 1), talk(rows, 11)
    review_proposal(second, version=1, state="accepted", person="eve")

    page = page_of(admin_client, f"{list_url('proposal')}?box=all")

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
    long = {"version": 1, "state": "accepted", "note": "n" * 4_001}
    assert "shorten it" in page_of(admin_client, review_url(proposal), long)
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


@pytest.mark.parametrize(
    ("reason", "sentence"),
    [
        ("pair_taken", "the two talk with each other in another thread"),
        ("partner_full", "one of the two is in as many threads as it may be"),
        ("partner_gone", "one of the two has left"),
    ],
)
def test_a_revision_that_could_not_begin_says_why(
    admin_client: Client, reason: str, sentence: str
) -> None:
    proposal = talk(make_rows(), 1)
    review_proposal(proposal, version=1, state="revised", person="eve")
    assert "The revision could not begin" not in page_of(admin_client, change_url(proposal))
    Proposal.objects.update(refused=reason)
    page = page_of(admin_client, change_url(proposal))
    assert f"The revision could not begin: {sentence}." in page
