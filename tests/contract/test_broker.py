"""The brokers: who is handed which message, and what becomes of the lock of one that is worked on."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import OperationalError
from django.utils import timezone
from django_q.conf import Conf
from django_q.models import OrmQ

from engine import runs
from engine.models import WorkerBeat
from engine.tasks import broker as brokers
from engine.tasks.broker import FairBroker, RunBroker
from engine.tasks.renewal import Renewals
from engine.workers import worker_of
from tests.doors import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Conf, "POLL", 0)
    monkeypatch.setattr(Conf, "WORKERS", 2)
    monkeypatch.setattr(Conf, "RETRY", 60)


def put(*payloads: str, key: str = "sim") -> None:
    past = timezone.now() - timedelta(seconds=1)
    OrmQ.objects.bulk_create(OrmQ(key=key, payload=one, lock=past) for one in payloads)


def taken(broker: FairBroker) -> str | None:
    found = broker.dequeue()
    return None if found is None else found[0][1]


def is_locked(payload: str) -> bool:
    lock = OrmQ.objects.get(payload=payload).lock
    assert lock is not None
    return bool(lock > timezone.now())


def move_lock(payload: str, *, seconds: float) -> None:
    OrmQ.objects.filter(payload=payload).update(lock=timezone.now() + timedelta(seconds=seconds))


def test_cluster_takes_the_oldest_and_no_more_than_its_workers_can() -> None:
    put("a", "b", "c")
    put("other", key="elsewhere")
    broker = FairBroker("sim")
    assert [taken(broker), taken(broker), taken(broker)] == ["a", "b", None]
    broker.acknowledge(OrmQ.objects.get(payload="a").pk)
    assert [taken(broker), taken(broker)] == ["c", None]


def test_what_one_cluster_leaves_another_takes_and_no_message_goes_to_both() -> None:
    put("a", "b", "c")
    east, west = FairBroker("sim"), FairBroker("sim")
    assert [taken(east), taken(west), taken(east), taken(west)] == ["a", "b", "c", None]


def test_message_that_another_cluster_takes_at_this_moment_is_left_to_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    put("a")
    broker = FairBroker("sim")
    rows = broker._rows
    n_looks = 0

    def taken_meanwhile() -> Any:
        nonlocal n_looks
        n_looks += 1
        if n_looks == 2:
            move_lock("a", seconds=9)
        return rows()

    monkeypatch.setattr(broker, "_rows", taken_meanwhile)
    assert taken(broker) is None
    assert n_looks == 2


def test_message_of_a_worker_that_died_is_seen_again() -> None:
    put("a")
    east, west = FairBroker("sim"), FairBroker("sim")
    assert taken(east) == "a"
    move_lock("a", seconds=30)
    assert taken(west) is None
    move_lock("a", seconds=-1)
    assert taken(west) == "a"
    assert taken(east) is None


def test_cluster_whose_workers_begin_with_nothing_takes_no_more(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Conf, "RETRY", -1)  # the lock is over at once
    put("a", "b")
    broker = FairBroker("sim")
    assert taken(broker) == "a"
    assert [taken(broker), taken(broker)] == [None, None]
    assert [record.message[:37] for record in caplog.records] == [
        "No worker of this cluster has begun w"
    ]
    move_lock("a", seconds=30)  # a worker has begun after all
    assert taken(broker) is None
    OrmQ.objects.get(payload="a").delete()
    assert taken(broker) == "b"


def test_cluster_is_heard_of_until_its_workers_begin_with_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(brokers, "BEAT_SECONDS", 0)
    monkeypatch.setattr(Conf, "RETRY", -1)  # the lock is over at once
    put("a")
    broker = FairBroker("sim")
    beats = WorkerBeat.objects.filter(worker=worker_of("sim"))

    assert taken(broker) == "a"
    beats.update(at=LONG_AGO)
    taken(broker)
    assert beats.get().at == LONG_AGO

    OrmQ.objects.get(payload="a").delete()
    taken(broker)
    assert beats.get().at > LONG_AGO


def test_cluster_is_heard_of_while_its_workers_are_busy_and_not_at_every_look(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Conf, "WORKERS", 1)
    put("a")
    broker = FairBroker("sim")
    assert taken(broker) == "a"
    beats = WorkerBeat.objects.filter(worker=worker_of("sim"))
    beats.update(at=LONG_AGO)

    assert taken(broker) is None
    assert beats.get().at == LONG_AGO

    monkeypatch.setattr(broker, "_beat_due_at", 0.0)
    assert taken(broker) is None
    assert beats.get().at > LONG_AGO


def test_database_that_is_away_is_asked_again(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    put("a")
    broker = FairBroker("sim")

    def away() -> Any:
        raise OperationalError("the server is away")

    monkeypatch.setattr(broker, "_rows", away)
    assert taken(broker) is None
    assert "the server is away" in caplog.text
    monkeypatch.undo()
    assert taken(broker) == "a"


def test_broker_of_runs_looks_for_what_is_overdue_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "send_overdue", lambda: put("a", key="runs"))
    assert taken(RunBroker("runs")) == "a"


def test_worker_renews_the_lock_of_its_message_until_it_is_done() -> None:
    put("a")
    message = OrmQ.objects.get()
    renewals = Renewals()
    renewals.begin(message.pk, seconds=0.3)
    wait_until(lambda: is_locked("a"))
    first = OrmQ.objects.get().lock
    assert first is not None
    wait_until(lambda: OrmQ.objects.filter(lock__gt=first).exists())
    renewals.end()
    wait_until(lambda: not renewing())
    wait_until(lambda: not is_locked("a"))


def test_task_without_a_message_renews_nothing() -> None:
    brokers._begun(None, {})
    assert not renewing()
    brokers._over(None, {})


def test_renewal_outlasts_a_database_that_is_away(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    put("a")
    away = threading.Event()
    objects = OrmQ.objects

    class Away:
        def filter(self, **_: object) -> Any:
            away.set()
            monkeypatch.setattr(OrmQ, "objects", objects)
            raise OperationalError("the server is away")

    monkeypatch.setattr(OrmQ, "objects", Away())
    renewals = Renewals()
    renewals.begin(objects.get().pk, seconds=0.3)
    assert away.wait(30)
    wait_until(lambda: is_locked("a"))
    renewals.end()
    wait_until(lambda: not renewing())
    assert "the server is away" in caplog.text


def renewing() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "message-lock"]
