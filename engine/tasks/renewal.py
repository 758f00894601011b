"""The lock of the message that a worker works on, renewed for as long as it does."""

from __future__ import annotations

import logging
import threading
from datetime import timedelta

from django.db import connection
from django.utils import timezone
from django_q.models import OrmQ

from engine.store.database import TROUBLE

log = logging.getLogger(__name__)

#: So many renewals in the time that a lock holds.
RENEWALS = 3


class Renewals:
    """Renews one message's lock at a time, on a thread of its own; one for each worker process."""

    def __init__(self) -> None:
        self._stop: threading.Event | None = None

    def begin(self, message: int | None, *, seconds: float) -> None:
        """Renew from now on; a task that came by no message has no lock."""
        self.end()
        if message is None:
            return
        self._stop = threading.Event()
        renewing = _Renewing(message, seconds=seconds, stop=self._stop)
        threading.Thread(target=renewing.run, name="message-lock", daemon=True).start()

    def end(self) -> None:
        """Let the lock be: its message is about to be acknowledged."""
        if self._stop is not None:
            self._stop.set()
            self._stop = None


class _Renewing:
    """The work of the thread: the first renewal, at once, says that a worker has begun."""

    def __init__(self, message: int, *, seconds: float, stop: threading.Event) -> None:
        self._message = message
        self._seconds = seconds
        self._stop = stop

    def run(self) -> None:
        try:
            self._renew()
            while not self._stop.wait(self._seconds / RENEWALS):
                self._renew()
        finally:
            connection.close()

    def _renew(self) -> None:
        """Move the lock on; while the database is away the message may be seen by others."""
        lock = timezone.now() + timedelta(seconds=self._seconds)
        try:
            OrmQ.objects.filter(pk=self._message).update(lock=lock)
        except TROUBLE as error:
            log.warning("The lock of a message is not renewed: %s", str(error).strip())
            connection.close()
