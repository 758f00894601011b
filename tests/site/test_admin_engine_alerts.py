"""Alerts in the admin: what was told, and the page on which people say what they want mail of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.contrib.auth.models import User
from django.urls import reverse

from engine.admin.alerts import MAIL_IS_OFF
from engine.models import Alert, AlertMail, AlertReader
from tests.site.admin_world import HOSTILE, NOON, Rows, count_queries, list_url, make_rows, page_of

if TYPE_CHECKING:
    from django.test import Client
    from pytest_django import Settings

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin_user() -> User:
    """Stand in for pytest-django's, whose password takes a second to hash."""
    return User.objects.create(username="admin", is_staff=True, is_superuser=True)


def make_alert(
    rows: Rows, number: int = 1, *, kind: str = "failed", sentence: str = "It failed."
) -> Alert:
    return Alert.objects.create(
        key=f"failed {number}",
        kind=kind,
        simulation=rows.simulation,
        run=rows.run,
        at=NOON,
        sentence=sentence,
        next_step="Cure it.",
    )


def reader(name: str) -> AlertReader:
    person = User.objects.create(username=name, email=f"{name}@example.org", is_staff=True)
    return AlertReader.objects.create(person=person, kinds=["failed", "late"])


def test_list_of_alerts_says_what_happened_and_leads_on(admin_client: Client) -> None:
    rows = make_rows()
    alert = make_alert(rows)
    for n, name in enumerate(("ada", "bob")):
        AlertMail.objects.create(
            alert=alert, reader=reader(name), next_try_at=NOON, sent_at=NOON if n else None
        )

    page = page_of(admin_client, list_url("alert"))

    for part in (
        "1 Jan 2026 12:00",
        ">a run failed</span>",
        "It failed.",
        f'<a href="/admin/engine/run/{rows.run.pk}/change/">Cure it.</a>',
        "1 of 2 sent",
    ):
        assert part in page


def test_text_in_an_alert_stays_text(admin_client: Client) -> None:
    make_alert(make_rows(), sentence=HOSTILE)

    page = page_of(admin_client, list_url("alert"))

    assert "<script>alert(1)</script>" not in page
    assert "&lt;script&gt;alert(1)" in page


def test_list_of_alerts_costs_the_same_for_one_and_for_many(admin_client: Client) -> None:
    rows = make_rows()
    make_alert(rows)
    few = count_queries(admin_client, list_url("alert"))
    for number in range(2, 20):
        make_alert(rows, number)

    assert count_queries(admin_client, list_url("alert")) == few


def test_alerts_are_history(admin_client: Client) -> None:
    alert = make_alert(make_rows())

    assert admin_client.get(reverse("admin:engine_alert_add")).status_code == 403
    delete = reverse("admin:engine_alert_delete", args=[alert.pk])
    assert admin_client.post(delete, {"post": "yes"}).status_code == 403


def test_person_is_told_of_what_was_ticked(admin_client: Client) -> None:
    ada = User.objects.create(username="ada", email="ada@example.org", is_staff=True)
    User.objects.create(username="visitor", email="visitor@example.org")
    add = reverse("admin:engine_alertreader_add")
    page = page_of(admin_client, add)
    assert ">ada</option>" in page
    assert ">visitor</option>" not in page

    answer = admin_client.post(add, {"person": ada.pk, "kinds": ["failed", "unreviewed"]})

    assert answer.status_code == 302
    assert AlertReader.objects.get().kinds == ["failed", "unreviewed"]
    listed = page_of(admin_client, list_url("alertreader"))
    assert "a run failed, proposals wait for review" in listed
    assert "ada@example.org" in listed


def test_person_without_an_address_is_refused(admin_client: Client) -> None:
    eve = User.objects.create(username="eve", is_staff=True)

    answer = admin_client.post(
        reverse("admin:engine_alertreader_add"), {"person": eve.pk, "kinds": ["failed"]}
    )

    assert "eve has no e-mail address: enter it under Users" in answer.content.decode()
    assert not AlertReader.objects.exists()


def test_page_says_when_no_server_takes_mail(admin_client: Client, settings: Settings) -> None:
    add = reverse("admin:engine_alertreader_add")
    settings.EMAIL_BACKEND = "django.core.mail.backends.dummy.EmailBackend"
    assert MAIL_IS_OFF in page_of(admin_client, add)

    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    assert MAIL_IS_OFF not in page_of(admin_client, add)


def test_who_may_only_look_changes_no_reader(client: Client) -> None:
    row = reader("ada")
    viewer = User.objects.create(username="viewer", is_staff=True)
    client.force_login(viewer)

    assert client.get(list_url("alertreader")).status_code == 403
    assert client.get(reverse("admin:engine_alertreader_change", args=[row.pk])).status_code == 403
