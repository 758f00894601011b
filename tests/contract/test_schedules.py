"""One run for each time of a schedule, whoever follows it and however many at the same moment."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

import pytest
from django.db import IntegrityError, connections, transaction

from engine.models import Occasion, Run, RunSchedule, Simulation
from engine.runs import firing
from engine.runs.firing import fire_due
from tests.site.schedule_rows import NINE, make_schedule

if TYPE_CHECKING:
    from collections.abc import Callable

CLUSTERS = 4


def follow(now: datetime) -> int:
    return len(fire_due(now))


def at_once(work: Callable[[], int]) -> list[int]:
    """Do the same work in several threads that begin together; return what each gave back."""
    barrier = threading.Barrier(CLUSTERS)

    def one(_: int) -> int:
        barrier.wait()
        try:
            return work()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(CLUSTERS) as pool:
        return list(pool.map(one, range(CLUSTERS)))


@pytest.mark.django_db(transaction=True)
def test_time_gets_one_run_whatever_the_number_of_clusters(is_soak: bool) -> None:
    for number in range(5):
        simulation = Simulation.objects.create(name=f"world-{number}")
        make_schedule(simulation, name=f"schedule {number}", kind="every", every_minutes=60)
    n_rounds = 50 if is_soak else 4
    for round_ in range(n_rounds):
        now = NINE + round_ * timedelta(hours=1)
        at_once(partial(follow, now))
        # What one cluster has locked the others leave to it, so all of it is decided by now.
        assert Occasion.objects.filter(intended_at=now).count() == 5
        Run.objects.update(status="completed")
    assert Run.objects.count() == 5 * n_rounds
    assert Run.objects.filter(occasion=None).count() == 0


@pytest.mark.django_db(transaction=True)
def test_cluster_that_read_a_schedule_before_another_followed_it_begins_nothing() -> None:
    """Its constraint holds, whatever the row lock and the time that it is settled until say."""
    schedule = make_schedule()
    assert len(fire_due(NINE)) == 1
    Run.objects.update(status="completed")
    RunSchedule.objects.update(next_at=schedule.next_at, settled_until=schedule.settled_until)
    assert fire_due(NINE) == []
    assert (Run.objects.count(), Occasion.objects.count()) == (1, 1)
    with pytest.raises(IntegrityError), transaction.atomic():
        Occasion.objects.create(schedule=schedule, intended_at=NINE, decided_at=NINE, outcome="run")


@pytest.mark.django_db(transaction=True)
def test_run_and_occasion_are_stored_together_or_not_at_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make_schedule()

    def die(*_: object, **__: object) -> None:
        assert Run.objects.count() == 1
        raise RuntimeError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(firing, "next_due", die)
        assert fire_due(NINE) == []
    assert (Run.objects.count(), Occasion.objects.count()) == (0, 0)
    assert len(fire_due(NINE)) == 1


@pytest.mark.django_db(transaction=True)
def test_schedule_that_somebody_holds_keeps_no_other_waiting() -> None:
    """On SQLite, where one writer holds the whole file, its own writes do not wait for itself."""
    held = make_schedule(Simulation.objects.create(name="other"), name="a held one")
    make_schedule()
    is_held, is_done = threading.Event(), threading.Event()

    def hold() -> None:
        with transaction.atomic():
            list(RunSchedule.objects.select_for_update().filter(pk=held.pk))
            is_held.set()
            is_done.wait(30)
        connections.close_all()

    if not connections["default"].features.has_select_for_update_skip_locked:
        assert len(fire_due(NINE)) == 2
        return
    holder = threading.Thread(target=hold)
    holder.start()
    assert is_held.wait(30)
    try:
        assert [one.schedule.name for one in fire_due(NINE)] == ["mornings"]
    finally:
        is_done.set()
        holder.join()
    assert [one.schedule.name for one in fire_due(NINE)] == ["a held one"]
