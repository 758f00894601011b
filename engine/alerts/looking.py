"""One look at the rows: an alert for each event that nobody was told of yet."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import IntegrityError, transaction

from engine.alerts.events import FINDERS
from engine.models import Alert, AlertMail, AlertReader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from engine.alerts.events import Event

log = logging.getLogger(__name__)

NO_MAIL = "django.core.mail.backends.dummy.EmailBackend"


def look(now: datetime) -> list[Alert]:
    """Store an alert for each new event, with its mails, and return these alerts.

    A question that cannot be answered is logged, and the others are asked all the same.
    """
    events = [event for find in FINDERS for event in _found(find, now)]
    keys = [event.key for event in events]
    known = set(Alert.objects.filter(key__in=keys).values_list("key", flat=True))
    told = [_tell(event, now) for event in events if event.key not in known]
    return [alert for alert in told if alert is not None]


def _found(find: Callable[[datetime], Iterator[Event]], now: datetime) -> list[Event]:
    try:
        with transaction.atomic():
            return list(find(now))
    except Exception:  # whatever it is, the others must be asked
        log.exception("Alerts could not be looked for: %s.", find.__name__)
        return []


def _tell(event: Event, now: datetime) -> Alert | None:
    """Store an alert and its mails; None if another process was quicker."""
    try:
        with transaction.atomic():
            alert = Alert.objects.create(
                key=event.key,
                kind=event.kind,
                simulation_id=event.simulation_id,
                run_id=event.run_id,
                schedule_id=event.schedule_id,
                at=now,
                sentence=event.sentence,
                next_step=event.next_step,
            )
            AlertMail.objects.bulk_create(
                AlertMail(alert=alert, reader=reader, next_try_at=now)
                for reader in _readers(event.kind)
            )
    except IntegrityError:
        return None
    log.warning("%s %s", event.sentence, event.next_step)
    return alert


def _readers(kind: str) -> list[AlertReader]:
    """Return who gets mail of this kind; nobody where no server takes mail."""
    if settings.EMAIL_BACKEND == NO_MAIL:
        return []
    readers = AlertReader.objects.filter(person__is_active=True).exclude(person__email="")
    return [reader for reader in readers if kind in reader.kinds]
