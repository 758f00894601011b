"""Mail of alerts: sent when the alert stands, tried again when the server would not take it."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from smtplib import SMTPDataError, SMTPRecipientsRefused
from typing import TYPE_CHECKING, Final, Self
from urllib.parse import urlsplit

from django.conf import settings
from django.core.mail import EmailMessage, get_connection
from django.db.models import F
from django.urls import reverse

from engine.models import AlertMail

if TYPE_CHECKING:
    from django.core.mail.backends.base import BaseEmailBackend

    from engine.models import Alert

log = logging.getLogger(__name__)

#: The most that are sent at once: the next call goes on.
AT_ONCE: Final = 50
LONGEST_PAUSE: Final = timedelta(hours=1)
#: After so long the admin tells it better than a mail.
TRIED_FOR: Final = timedelta(days=7)
ERROR_CHARACTERS: Final = 300
#: What says nothing about the server, and so about no other mail.
OF_ONE_MAIL: Final = (SMTPDataError, SMTPRecipientsRefused, ValueError)


def send_mails(now: datetime) -> int:
    """Send the mails that wait; return how many were taken. Never raises what a server does.

    Call it outside of a transaction: what is sent must stand. A server that does not answer holds
    the caller up for `EMAIL_TIMEOUT` once, and then the rest waits too.
    """
    waiting = AlertMail.objects.filter(
        sent_at__isnull=True, next_try_at__lte=now, alert__at__gt=now - TRIED_FOR
    )
    mails = waiting.select_related("alert__simulation", "alert__schedule", "reader__person")
    n_sent = 0
    with _Server() as server:
        for mail in mails.order_by("next_try_at", "pk")[:AT_ONCE]:
            if server.is_away:
                break
            if _claim(mail, now):
                n_sent += server.send(mail, now)
    return n_sent


def _claim(mail: AlertMail, now: datetime) -> bool:
    """Put the next try off, and return whether this process was the one that did."""
    pause = min(timedelta(minutes=2**mail.n_tries), LONGEST_PAUSE)
    row = AlertMail.objects.filter(pk=mail.pk, sent_at__isnull=True, n_tries=mail.n_tries)
    return row.update(n_tries=F("n_tries") + 1, next_try_at=now + pause) == 1


def message(mail: AlertMail) -> EmailMessage:
    """Return the mail as plain text; its subject holds only our own words and checked names."""
    alert = mail.alert
    host = urlsplit(settings.SIM_SITE_URL).hostname
    return EmailMessage(
        subject=f"{alert.get_kind_display().capitalize()}: {_where(alert)}",
        body=f"{alert.sentence}\n\nNext: {alert.next_step}\n{settings.SIM_SITE_URL}{page_of(alert)}\n",
        to=[mail.reader.person.email],
        # The same for every try, so that a second copy can be known as one.
        headers={"Message-ID": f"<alert-{alert.pk}-{mail.reader_id}@{host}>"},
    )


def _where(alert: Alert) -> str:
    if alert.run_id is not None:
        return f"run {alert.run_id} of {alert.simulation}"
    return str(alert.simulation if alert.schedule is None else alert.schedule)


def page_of(alert: Alert) -> str:
    """Return the path of the page on which one can do something about an alert."""
    if alert.run_id is not None:
        return reverse("admin:engine_run_change", args=[alert.run_id])
    if alert.schedule_id is not None:
        return reverse("admin:engine_runschedule_change", args=[alert.schedule_id])
    query = f"?state__exact=pending&simulation__id__exact={alert.simulation_id}"
    return reverse("admin:engine_proposal_changelist") + query


class _Server:
    """The mail server for one round, which ends when it cannot be reached."""

    def __init__(self) -> None:
        self.is_away = False
        self._connection: BaseEmailBackend = get_connection()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def send(self, mail: AlertMail, now: datetime) -> bool:
        """Send one mail and note how it went."""
        row = AlertMail.objects.filter(pk=mail.pk)
        try:
            self._connection.open()
            self._connection.send_messages([message(mail)])
        except (OSError, ValueError) as error:  # what smtplib raises is an OSError too
            self.is_away = not isinstance(error, OF_ONE_MAIL)
            log.warning("The mail of alert %s was not taken: %s.", mail.alert_id, _name(error))
            row.update(error=f"{_name(error)}: {error}"[:ERROR_CHARACTERS])
            return False
        row.update(sent_at=now, error="")
        return True


def _name(error: Exception) -> str:
    return type(error).__name__
