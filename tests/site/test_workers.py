"""The sign of life of workers, and the command by which a watchdog asks for it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from engine.workers import beat, silent_seconds
from tests.doors import command
from tests.site.admin_world import NOON

pytestmark = pytest.mark.django_db


def test_worker_is_silent_since_its_last_beat() -> None:
    beat("host", NOON)
    beat("host", NOON + timedelta(seconds=30))
    beat("other", NOON)

    assert silent_seconds("host", NOON + timedelta(seconds=45)) == 15.0
    assert silent_seconds("nobody", NOON) is None


def test_watchdog_hears_a_worker_that_works() -> None:
    beat("host", timezone.now() - timedelta(seconds=100))

    told = command("checkworker", "host")

    assert told.code == 0
    assert told.out.startswith("The worker host was heard of ")


def test_watchdog_is_told_of_one_that_is_silent() -> None:
    beat("host", timezone.now() - timedelta(seconds=100))

    told = command("checkworker", "host", "--older-than", "90")

    assert told.code == 1
    assert "The worker host has been silent for 1" in told.err


def test_watchdog_is_told_of_one_that_was_never_heard_of() -> None:
    told = command("checkworker", "nobody")

    assert told.code == 1
    assert told.err == "CommandError: The worker nobody was never heard of.\n"
