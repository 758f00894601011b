"""Keep and prune: what takes space, what would go, and that exactly that goes."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.utils import timezone

from engine.admin.keep import page as keep_page
from engine.models import CallText, LlmCall, Message
from tests.site.admin_world import (
    Rows,
    count_queries,
    make_rows,
    page_of,
    person_with,
    take_turn,
    talk,
)

if TYPE_CHECKING:
    from django.test import Client

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]

KEEP = "/admin/engine/simulation/keep/"


@pytest.fixture
def admin_user() -> User:
    """Stand in for pytest-django's, whose password takes a second to hash."""
    return User.objects.create(username="admin", is_staff=True, is_superuser=True)


@pytest.fixture
def rows() -> Rows:
    """Return a run with the words of three calls, of which one is new."""
    rows = make_rows()
    talk(rows, 1)
    for number in (1, 2, 3):
        take_turn(rows, number)
    LlmCall.objects.update(started_at=timezone.now() - timedelta(days=60))
    LlmCall.objects.filter(turn=3).update(started_at=timezone.now())
    for call in LlmCall.objects.all():
        CallText.objects.create(call=call)
    return rows


def asked(page: str) -> str:
    found = re.search(r'name="asked" value="([^"]*)"', page)
    assert found is not None
    return found[1]


def test_what_was_shown_goes_and_the_calls_stay(admin_client: Client, rows: Rows) -> None:
    page = page_of(admin_client, f"{KEEP}?days=30&simulation={rows.simulation.pk}")
    assert "The words of 2 calls from before" in page
    assert CallText.objects.count() == 3

    done = admin_client.post(KEEP, {"asked": asked(page)}, follow=True).content.decode()

    assert "The words of 2 calls of main before" in done
    assert list(CallText.objects.values_list("call__turn", flat=True)) == [3]
    assert (LlmCall.objects.count(), Message.objects.count()) == (3, 3)
    assert "are deleted" in LogEntry.objects.get().change_message


def test_much_goes_in_parts(
    admin_client: Client, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keep_page, "AT_ONE_CLICK", 1)
    page = page_of(admin_client, f"{KEEP}?days=30")
    done = admin_client.post(KEEP, {"asked": asked(page)}, follow=True).content.decode()
    assert "The words of 1 calls of all simulations" in done
    assert "1 more are left" in done
    assert CallText.objects.count() == 2


def test_page_says_what_takes_space(admin_client: Client, rows: Rows) -> None:
    page = page_of(admin_client, KEEP)
    assert "MiB" in page
    assert re.search(r"<td>3</td></tr>", page)
    assert 'name="asked"' not in page
    assert "errorlist" in page_of(admin_client, f"{KEEP}?days=-1")


def test_old_or_broken_yes_deletes_nothing(admin_client: Client, rows: Rows) -> None:
    page = admin_client.post(KEEP, {"asked": "x"}, follow=True).content.decode()
    assert "look again before anything goes" in page
    assert CallText.objects.count() == 3


def test_who_may_only_look_deletes_nothing(client: Client, rows: Rows) -> None:
    person_with(client, "view_run")
    page = page_of(client, f"{KEEP}?days=30")
    assert 'name="asked"' not in page
    assert client.post(KEEP, {"asked": "x"}).status_code == 403
    assert CallText.objects.count() == 3


def test_number_of_queries_does_not_grow(admin_client: Client, rows: Rows) -> None:
    few = count_queries(admin_client, KEEP)
    for number in range(10, 40):
        take_turn(rows, number)
    assert count_queries(admin_client, KEEP) == few <= 16
