"""Mail of alerts: plain, sent once, tried again, and never in anybody's way."""

from __future__ import annotations

from datetime import timedelta
from smtplib import SMTPRecipientsRefused
from typing import TYPE_CHECKING

import pytest
from django.contrib.auth.models import User
from django.core import mail as outbox
from django.core.mail.backends.locmem import EmailBackend

from engine.alerts import look, mailing, send_mails
from engine.models import AlertMail, AlertReader, Run
from tests.postgres import free_port
from tests.site.admin_world import NOON, Rows, make_rows, talk

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.core.mail import EmailMessage
    from pytest_django import Settings

pytestmark = pytest.mark.django_db

LATER = NOON + timedelta(minutes=10)
MINUTE = timedelta(minutes=1)


@pytest.fixture
def rows(settings: Settings) -> Rows:
    """Return a world with one reader of everything, and with a mail server."""
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    settings.SIM_SITE_URL = "https://sim.example.org"
    read_by("ada")
    return make_rows()


def read_by(name: str) -> None:
    person = User.objects.create(username=name, email=f"{name}@example.org")
    AlertReader.objects.create(person=person, kinds=["failed", "unreviewed"])


def fail(rows: Rows, detail: str = "The key is wrong.") -> Run:
    run = Run.objects.create(
        simulation=rows.simulation, status="failed", finished_at=NOON, detail=detail
    )
    look(LATER)
    return run


def subjects() -> list[str]:
    return [str(message.subject) for message in outbox.outbox]


def test_mail_says_what_happened_where_and_what_to_do(rows: Rows) -> None:
    run = fail(rows)

    assert send_mails(LATER) == 1

    (message,) = outbox.outbox
    assert message.subject == f"A run failed: run {run.pk} of main"
    assert message.to == ["ada@example.org"]
    assert message.body == (
        f"Run {run.pk} of main failed. The key is wrong.\n\n"
        "Next: Cure what the sentence says, then start a new run.\n"
        f"https://sim.example.org/admin/engine/run/{run.pk}/change/\n"
    )


def test_mail_of_proposals_leads_to_those_that_wait(rows: Rows) -> None:
    talk(rows, 1)
    look(NOON + timedelta(days=8))
    send_mails(NOON + timedelta(days=8))

    (message,) = outbox.outbox
    assert message.subject == "Proposals wait for review: main"
    assert f"?state__exact=pending&simulation__id__exact={rows.simulation.pk}" in message.body


def test_text_of_a_service_makes_no_header_and_no_line(rows: Rows) -> None:
    fail(rows, "busy\r\nBcc: eve@example.org\r\n\r\nNext: pay")
    send_mails(LATER)

    (message,) = outbox.outbox
    assert message.recipients() == ["ada@example.org"]
    raw = message.message().as_string()
    assert "\nBcc:" not in raw
    assert message.body.count("\nNext:") == 1
    assert message.content_subtype == "plain"


def test_mail_is_sent_once(rows: Rows) -> None:
    fail(rows)
    assert send_mails(LATER) == 1
    assert send_mails(LATER + timedelta(hours=2)) == 0

    (row,) = AlertMail.objects.all()
    assert (row.sent_at, row.n_tries, len(outbox.outbox)) == (LATER, 1, 1)


def test_mail_that_another_process_has_taken_is_left_to_it(
    rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail(rows)
    claim = mailing._claim

    def too_late(mail: AlertMail, now: object) -> bool:
        assert claim(AlertMail.objects.get(pk=mail.pk), LATER)
        return claim(mail, LATER)

    monkeypatch.setattr(mailing, "_claim", too_late)

    assert send_mails(LATER) == 0
    assert subjects() == []


def test_server_that_is_down_is_tried_again_and_stops_nothing(
    rows: Rows, settings: Settings
) -> None:
    read_by("bob")
    fail(rows)
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", free_port()

    assert send_mails(LATER) == 0

    # One attempt shows that nobody is there: the other mail keeps its turn.
    assert sorted(AlertMail.objects.values_list("n_tries", "next_try_at")) == [
        (0, LATER),
        (1, LATER + MINUTE),
    ]
    assert "ConnectionRefusedError" in AlertMail.objects.get(n_tries=1).error
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    assert send_mails(LATER + MINUTE) == 2
    assert set(AlertMail.objects.values_list("error", flat=True)) == {""}


def test_pause_between_tries_grows_to_an_hour_and_ends_after_a_week(
    rows: Rows, settings: Settings
) -> None:
    fail(rows)
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", free_port()
    pauses, now = [], LATER
    for _ in range(8):
        send_mails(now)
        later = AlertMail.objects.get().next_try_at
        pauses.append((later - now) // MINUTE)
        now = later

    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60]
    send_mails(LATER + timedelta(days=7))
    assert AlertMail.objects.get().n_tries == 8


def test_address_that_is_refused_holds_up_no_other(
    rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_by("bob")
    fail(rows)
    send = EmailBackend.send_messages

    def picky(backend: EmailBackend, messages: Sequence[EmailMessage]) -> int:
        if messages[0].to == ["ada@example.org"]:
            raise SMTPRecipientsRefused({"ada@example.org": (550, b"unknown")})
        return send(backend, messages)

    monkeypatch.setattr(EmailBackend, "send_messages", picky)

    assert send_mails(LATER) == 1
    assert [message.to for message in outbox.outbox] == [["bob@example.org"]]
    assert AlertMail.objects.get(sent_at=None).error.startswith("SMTPRecipientsRefused: ")
