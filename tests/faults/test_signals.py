"""SIGTERM while the model takes its time: what is in flight finishes, or is cancelled and booked."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from engine.models import LlmCall, Turn
from tests.doors import faulty_run, told, wait_until
from tests.faults.society import see_it_stopped, see_laws_kept, talkative_world

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(600)]


def n_in_flight() -> int:
    return Turn.objects.filter(outcome="running").count()


def test_calls_of_two_seconds_finish_within_the_grace(tmp_path: Path) -> None:
    talkative_world()
    with faulty_run("answers=2", "--seed", "3", "--json") as process:
        wait_until(lambda: n_in_flight() == 4)
        process.send_signal(signal.SIGTERM)
        left = told(process)
    see_it_stopped(left)
    assert not LlmCall.objects.exclude(error="").exists()
    assert not Turn.objects.exclude(outcome__in=["worked", "nothing", "skipped"]).exists()
    assert sum(left.summary["llm_calls"].values()) == LlmCall.objects.count()
    see_laws_kept(tmp_path)


def test_endless_calls_are_cancelled_and_booked(tmp_path: Path) -> None:
    """After the grace, which is half a second here."""
    simulation = talkative_world()
    simulation.settings["stop_grace_seconds"] = 0.5
    simulation.save()
    with faulty_run("answers=100000", "--seed", "3", "--json") as process:
        wait_until(lambda: n_in_flight() == 4)  # each has joined its channel, and asks
        process.send_signal(signal.SIGTERM)
        left = told(process)
    assert (left.code, left.summary["status"]) == (0, "stopped")
    assert list(Turn.objects.values_list("outcome", flat=True)) == ["cancelled"] * 4
    assert list(LlmCall.objects.values_list("error", flat=True)) == ["cancelled"] * 4
    assert sum(left.summary["llm_calls"].values()) == 4
    see_laws_kept(tmp_path)
