"""A promise that another process has not committed yet: it is waited for, and then it counts."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from django.db import connection, transaction

from engine.core.money import DayMoney, NoMoney
from engine.models import LlmCall, Purse, Run, Simulation
from engine.money import set_day_cap
from engine.store.database import give_back_lease, read_lease, rows, take_lease
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


def other_run(*, seconds: float) -> Run:
    """Return a run of another simulation, whose driver's lease ends so soon."""
    other = Simulation.objects.create(pk=2, name="other")
    run = Run.objects.create(simulation=other, status="running")
    known = read_lease(other.pk).token
    assert take_lease(other.pk, run.pk, known_token=known, owner="elsewhere:7", seconds=seconds)
    return run


def reserved_call(run: Run) -> None:
    LlmCall.objects.create(**{**rows.call_row(paid(1, 50), run=run.pk), "state": "reserved"})


def test_call_that_another_process_is_about_to_reserve_has_its_place(
    django_site: DjangoSite,
) -> None:
    """The row of the day makes them wait for each other, whatever they cost."""
    django_site.set_max_in_flight(1)
    asker = Asker(django_site.open_store())
    other = other_run(seconds=60)
    day = Purse.objects.create(name=f"day {MONDAY.isoformat()}")
    with transaction.atomic():
        Purse.objects.filter(pk=day.pk).update(reserved_nano_usd=50)
        thread = asker.begin()
        wait_until(somebody_waits)
        reserved_call(other)
    thread.join()
    assert asker.answers == [NoMoney(reason="too_many_calls")]


def test_calls_of_a_dead_driver_keep_no_place_once_its_lease_is_over(
    django_site: DjangoSite,
) -> None:
    django_site.set_max_in_flight(1)
    store = django_site.open_store()
    other = other_run(seconds=60)
    reserved_call(other)
    assert reserve(store, paid(1, 10)) == NoMoney(reason="too_many_calls")
    give_back_lease(other.simulation_id, token=1)
    assert reserve(store, paid(1, 10)) is None
