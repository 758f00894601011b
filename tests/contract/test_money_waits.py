"""A promise that another process has not committed yet: it is waited for, and then it counts."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from django.db import connection, transaction

from engine.core.money import DayMoney, NoMoney
from engine.models import Purse
from engine.money import set_day_cap
from tests.contract.test_money import MONDAY, paid, reserve
from tests.doors import wait_until

if TYPE_CHECKING:
    from engine.ports.store import Store
    from tests.contract.site import DjangoSite

pytestmark = pytest.mark.django_db(transaction=True)


@dataclass
class Asker:
    """Reserves from a thread of its own."""

    store: Store
    answers: list[NoMoney | None] = field(default_factory=list)

    def begin(self) -> threading.Thread:
        thread = threading.Thread(target=self._ask)
        thread.start()
        return thread

    def _ask(self) -> None:
        self.answers.append(reserve(self.store, paid(1, 60)))


def somebody_waits() -> bool:
    """Tell whether a statement waits for a lock; on SQLite whoever wants to write does anyway."""
    if connection.vendor != "postgresql":
        return True
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        return bool(cursor.fetchone()[0])


def test_promise_counts_what_another_process_is_about_to_commit(django_site: DjangoSite) -> None:
    store = django_site.open_store()
    set_day_cap(100, who="Ada")
    day = Purse.objects.create(name=f"day {MONDAY.isoformat()}")
    asker = Asker(store)
    with transaction.atomic():
        Purse.objects.filter(pk=day.pk).update(reserved_nano_usd=50)
        thread = asker.begin()
        wait_until(somebody_waits)
    thread.join()
    spent = DayMoney(day=MONDAY, spent=0, reserved=50, cap=100)
    assert asker.answers == [NoMoney(reason="day_cap", day=spent)]
