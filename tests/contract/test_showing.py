"""What a driver shows of itself while it drives, and only while its lease is its own."""

from __future__ import annotations

import threading
from importlib import import_module
from typing import Any

import pytest
from django.db import connection, transaction

from engine import runs
from engine.core.config import RunConfig
from engine.models import RunLease
from engine.runs import showing
from engine.runs.progress import Silence
from engine.runs.start import begin
from tests.doors import make_world

#: `engine.runs` has a function of this name.
DRIVE = import_module("engine.runs.drive")

pytestmark = pytest.mark.django_db(transaction=True)


def test_driver_shows_its_turns_while_it_drives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DRIVE, "SHOWN_EVERY_SECONDS", 0.0)
    stored: list[dict[str, Any]] = []
    show = showing.show

    def noted(run_id: int, *, token: int, picture: dict[str, Any]) -> None:
        show(run_id, token=token, picture=picture)
        stored.append(RunLease.objects.values_list("counters", flat=True).get(run=run_id))

    monkeypatch.setattr(DRIVE, "show", noted)
    world = make_world()
    begun = begin(world, RunConfig(latency_seconds=0.4, max_turns=8, seed=3), who="ada")
    runs.drive(begun, Silence())

    busy = [picture for picture in stored if picture["slots"]]
    assert busy
    slot = busy[-1]["slots"][0]
    assert slot.keys() == {"agent", "turn", "since", "phase", "thread"}
    assert "slot_utilisation" not in busy[-1]  # a run keeps that only of its end
    assert {one["agent"] for picture in busy for one in picture["slots"]} <= {
        "ash",
        "elm",
        "fir",
        "oak",
    }
    assert any(one["phase"] for picture in busy for one in picture["slots"])
    assert max(picture["turns"] for picture in stored) > 0
    last = RunLease.objects.get(run=begun.run_id)
    assert "slots" not in last.counters


def test_picture_of_a_driver_that_lost_its_lease_is_not_written() -> None:
    world = make_world()
    begun = begin(world, RunConfig(), who="ada")
    RunLease.objects.filter(run=begun.run_id).update(token=begun.token + 1)
    showing.show(begun.run_id, token=begun.token, picture={"turns": 9})
    assert RunLease.objects.get(run=begun.run_id).counters == {}
    showing.show(begun.run_id, token=begun.token + 1, picture={"turns": 9})
    assert RunLease.objects.get(run=begun.run_id).counters == {"turns": 9}
    begun.liveness.release()


def shown_and_closed(run_id: int, token: int) -> None:
    try:
        showing.show(run_id, token=token, picture={"turns": 9})
    finally:
        connection.close()


def test_driver_does_not_wait_for_a_lock_to_show_itself() -> None:
    """With another connection in a transaction that holds the row, on SQLite the file."""
    world = make_world()
    begun = begin(world, RunConfig(), who="ada")
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        try:
            with transaction.atomic():
                RunLease.objects.filter(run=begun.run_id).update(counters={"held": 1})
                held.set()
                assert done.wait(timeout=30)
        finally:
            connection.close()

    holder = threading.Thread(target=hold)
    holder.start()
    assert held.wait(timeout=30)
    shower = threading.Thread(target=shown_and_closed, args=(begun.run_id, begun.token))
    shower.start()
    shower.join(timeout=8)  # SQLite would wait for twenty seconds
    has_waited = shower.is_alive()
    done.set()
    for thread in (holder, shower):
        thread.join(timeout=30)
    assert not has_waited
    assert RunLease.objects.get(run=begun.run_id).counters == {"held": 1}
    showing.show(begun.run_id, token=begun.token, picture={"turns": 9})
    assert RunLease.objects.get(run=begun.run_id).counters == {"turns": 9}
    begun.liveness.release()
