"""Our brokers for django-q2: messages in the database, taken only by workers that are free.

django-q2's own takes messages in advance, locks each for a fixed time from then on, and so runs
some twice and others late. Here a cluster takes a message only while fewer than its workers have
one, the oldest first, and a worker renews the lock of the one it works on.
"""

from __future__ import annotations

import logging
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from django.db import connection
from django.utils import timezone
from django_q.brokers.orm import ORM
from django_q.conf import Conf
from django_q.signals import post_execute_in_worker, pre_execute

from engine import runs
from engine.store.database import TROUBLE
from engine.tasks.renewal import Renewals
from engine.workers import beat, worker_of

if TYPE_CHECKING:
    from datetime import datetime


log = logging.getLogger(__name__)

Message = tuple[int, str]

#: Several for each of the minutes that a watchdog waits.
BEAT_SECONDS: Final = 20.0


class FairBroker(ORM):  # type: ignore[misc]  # django-q2 has no types
    """Takes messages one by one for one cluster; lives in the process that hands them on.

    `_handed` are those it took, each with the end of the lock that it took it with: the worker that
    works on one moves that on.
    """

    def __init__(self, list_key: str | None = None) -> None:
        super().__init__(list_key)
        self._handed: dict[int, datetime] = {}
        self._unstarted: set[int] = set()
        self._beat_due_at = time.monotonic()

    def dequeue(self) -> list[Message] | None:
        """Return the next message for a free worker; None after a while without one."""
        try:
            message = self._next()
        except TROUBLE as error:
            log.warning("The queue cannot be read, and is tried again: %s", str(error).strip())
            connection.close()
            message = None
        if message is not None:
            return [message]
        time.sleep(Conf.POLL)
        return None

    def _next(self) -> Message | None:
        self._look_after_handed()
        if self._unstarted:
            return None
        now = timezone.now()
        self._show_life(now)
        if len(self._handed) >= Conf.WORKERS:
            return None
        row = self._rows().filter(key=self.list_key, lock__lt=now).order_by("pk").first()
        if row is None:
            return None
        lock = now + timedelta(seconds=Conf.RETRY)
        if not self._rows().filter(pk=row.pk, lock=row.lock).update(lock=lock):
            return None  # another cluster was quicker
        self._handed[row.pk] = lock
        return row.pk, row.payload

    def _show_life(self, now: datetime) -> None:
        """A cluster that takes messages and begins with none is silent: its watchdog hears that."""
        if time.monotonic() >= self._beat_due_at:
            beat(worker_of(self.list_key), now)
            self._beat_due_at = time.monotonic() + BEAT_SECONDS

    def _look_after_handed(self) -> None:
        """Forget what is done, or whose worker died; notice what no worker ever began."""
        if not self._handed:
            return
        now = timezone.now()
        found = self._rows().filter(pk__in=self._handed)
        locks = dict(found.values_list("pk", "lock"))
        for pk, lock in tuple(self._handed.items()):
            current = locks.get(pk)
            if current == lock:
                self._wait_for(pk, is_late=lock < now)
            elif current is None or current < now:
                del self._handed[pk]
                self._unstarted.discard(pk)

    def _wait_for(self, pk: int, *, is_late: bool) -> None:
        """A worker that was killed while it waited for a message leaves the others waiting for
        ever: a cluster in which that happened takes nothing more."""
        if is_late and pk not in self._unstarted:
            self._unstarted.add(pk)
            log.error(
                "No worker of this cluster has begun with message %s: it takes no more until one "
                "has. Restart it if this does not pass.",
                pk,
            )

    def _rows(self) -> Any:
        return self.get_connection()


class RunBroker(FairBroker):
    """The broker of the clusters that drive runs: before it takes a message it follows the
    schedules that are due, and sends the messages that are missing, so that a run whose driver died
    goes on at once, wherever a cluster is alive."""

    def _next(self) -> Message | None:
        runs.fire_due(timezone.now())
        runs.send_overdue()
        return super()._next()


_renewals = Renewals()


def _begun(sender: object, task: dict[str, Any], **_: object) -> None:
    _renewals.begin(task.get("ack_id"), seconds=Conf.RETRY)


def _over(sender: object, task: dict[str, Any], **_: object) -> None:
    _renewals.end()


pre_execute.connect(_begun, dispatch_uid="engine.tasks.begun")
post_execute_in_worker.connect(_over, dispatch_uid="engine.tasks.over")
