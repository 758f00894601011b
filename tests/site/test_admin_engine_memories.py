"""Memories in the admin: read, edited and cleared."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.contrib.auth.models import User

from engine.models import Inbox, Memory
from tests.site.admin_world import (
    HOSTILE,
    NOON,
    change_url,
    list_url,
    make_rows,
    page_of,
    person_with,
    remember,
)

if TYPE_CHECKING:
    from django.test import Client

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin_user() -> User:
    """Stand in for pytest-django's, whose password takes a second to hash."""
    return User.objects.create(username="admin", is_staff=True, is_superuser=True)


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


def test_memory_longer_than_possible_is_refused_in_a_sentence(admin_client: Client) -> None:
    memory = remember(make_rows(), "x")

    page = page_of(admin_client, change_url(memory), {"version": 1, "text": "y" * 100_001})

    assert "The text has 100,001 characters, and 100,000 are possible: shorten it." in page
    assert Memory.objects.count() == 1


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
