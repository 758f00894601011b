"""`/healthz`: live, ready, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.db import OperationalError, connection
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client, override_settings

if TYPE_CHECKING:
    from pytest_django import DjangoAssertNumQueries


def test_live_asks_nobody() -> None:
    response = Client().get("/healthz/live")

    assert (response.status_code, response.content) == (200, b"ok\n")
    assert response["Cache-Control"] == "no-store"


@pytest.mark.django_db
def test_ready_asks_the_database_and_its_migrations(
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    with django_assert_max_num_queries(2):
        response = Client().get("/healthz")
    assert (response.status_code, response.content) == (200, b"ok\n")

    MigrationRecorder(connection).record_unapplied("engine", "0001_initial")

    response = Client().get("/healthz/ready")
    assert (response.status_code, response.content) == (
        503,
        b"not ready: migrations are missing, run `manage.py migrate`\n",
    )


def test_ready_says_that_the_database_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    def away(_: object) -> None:
        raise OperationalError("password=secret host=db")

    monkeypatch.setattr(MigrationRecorder, "applied_migrations", away)

    response = Client().get("/healthz")

    assert (response.status_code, response.content) == (
        503,
        b"not ready: the database does not answer\n",
    )
    assert Client().get("/healthz/live").status_code == 200


@override_settings(SECURE_SSL_REDIRECT=True, ALLOWED_HOSTS=["sim.example.org"])
def test_probe_calls_by_address_and_without_https() -> None:
    response = Client().get("/healthz/live", headers={"host": "10.0.0.7:8000"})

    assert response.status_code == 200
    assert "Set-Cookie" not in response
    redirected = Client().get("/admin/", headers={"host": "sim.example.org"})
    assert redirected["Location"] == "https://sim.example.org/admin/"


def test_probe_only_reads() -> None:
    assert Client().post("/healthz/live").status_code == 405
    assert Client().head("/healthz/live").status_code == 200


@pytest.mark.django_db
def test_other_paths_are_handed_on() -> None:
    assert Client().get("/admin/login/").status_code == 200
    assert Client().get("/healthz/other").status_code == 404
