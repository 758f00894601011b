"""The sign of life of workers, and the command by which a watchdog asks for it."""

from __future__ import annotations

import socket
from datetime import timedelta

import pytest
from django.db import OperationalError
from django.utils import timezone

from engine.management.commands import checkworker
from engine.workers import beat, silent_seconds, worker_of
from tests.doors import command
from tests.site.admin_world import NOON

pytestmark = pytest.mark.django_db

SECONDS_100 = timedelta(seconds=100)


def test_worker_is_silent_since_its_last_beat() -> None:
    beat("host runs", NOON)
    beat("host runs", NOON + timedelta(seconds=30))
    beat("other runs", NOON)

    assert silent_seconds("host runs", NOON + timedelta(seconds=45)) == 15.0
    assert silent_seconds("nobody", NOON) is None


def test_watchdog_hears_a_worker_that_works() -> None:
    beat(worker_of("runs"), timezone.now() - SECONDS_100)

    told = command("checkworker", "runs")

    assert told.code == 0
    assert told.out.startswith(f"The worker {socket.gethostname()} runs was heard of 1")


def test_watchdog_is_told_of_one_that_is_silent() -> None:
    beat(worker_of("runs", host="host"), timezone.now() - SECONDS_100)

    told = command("checkworker", "runs", "--host", "host", "--older-than", "90")

    assert told.code == 1
    assert "The worker host runs has been silent for 1" in told.err


def test_watchdog_is_told_of_one_that_was_never_heard_of() -> None:
    told = command("checkworker", "runs", "--host", "nowhere")

    assert told.code == 1
    assert told.err == "CommandError: The worker nowhere runs was never heard of.\n"


def test_watchdog_leaves_a_worker_alone_whose_database_is_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def away(*_: object) -> None:
        raise OperationalError("no answer")

    monkeypatch.setattr(checkworker, "silent_seconds", away)

    told = command("checkworker", "runs")

    assert told.code == 2
    assert told.err == "CommandError: The database does not answer.\n"
