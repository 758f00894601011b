"""`manage.py alerts`: looks once, or each minute until it is stopped."""

from __future__ import annotations

import io
import time
from typing import TYPE_CHECKING

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import OperationalError, connection
from django.utils import timezone

from engine.alerts import look
from engine.management.commands import alerts as command
from engine.models import Alert, AlertReader, Run, Simulation

if TYPE_CHECKING:
    from pytest_django import Settings

pytestmark = pytest.mark.django_db


def fail_a_run() -> None:
    simulation, _ = Simulation.objects.get_or_create(name="main")
    now = timezone.now()
    Run.objects.create(simulation=simulation, status="failed", started_at=now, finished_at=now)


def said_by(*arguments: str) -> str:
    out = io.StringIO()
    call_command("alerts", *arguments, stdout=out)
    return out.getvalue()


def test_alerts_are_looked_for_once() -> None:
    fail_a_run()

    assert said_by("--once") == "Alerts: 1 new. Mails: 0 sent.\n"
    assert said_by("--once") == ""
    assert Alert.objects.count() == 1


def test_alerts_are_looked_for_each_minute_until_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            raise KeyboardInterrupt
        fail_a_run()

    monkeypatch.setattr(time, "sleep", pause)

    assert said_by() == "Alerts: 1 new. Mails: 0 sent.\n" * 2
    assert pauses == [60.0] * 3


def test_alerts_are_looked_for_again_when_the_database_is_back(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    fail_a_run()

    def away(_: object) -> list[Alert]:
        raise OperationalError("the server is away")

    def pause(_: float) -> None:
        if Alert.objects.exists():
            raise KeyboardInterrupt
        monkeypatch.setattr(command, "look", look)

    monkeypatch.setattr(command, "look", away)
    monkeypatch.setattr(connection, "close", lambda: None)
    monkeypatch.setattr(time, "sleep", pause)

    assert said_by() == "Alerts: 1 new. Mails: 0 sent.\n"
    assert "the server is away" in caplog.text


def test_alerts_are_mailed(settings: Settings, mailoutbox: list[object]) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    ada = User.objects.create(username="ada", email="ada@example.org")
    AlertReader.objects.create(person=ada, kinds=["failed"])
    fail_a_run()

    assert said_by("--once") == "Alerts: 1 new. Mails: 1 sent.\n"
    assert len(mailoutbox) == 1
