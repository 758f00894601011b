"""The database that the tests run on is the one that was asked for, as the settings make it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from django.db import connection, transaction

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.django_db
def test_database_is_the_one_that_the_environment_names() -> None:
    asked = os.environ.get("DATABASE_URL", "").partition(":")[0]

    assert connection.vendor == ("postgresql" if asked.startswith("p") else "sqlite")


@pytest.mark.django_db(transaction=True)
def test_database_keeps_a_reader_and_a_writer_apart() -> None:
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("PRAGMA journal_mode")
            assert cursor.fetchone() == ("wal",)
            cursor.execute("PRAGMA busy_timeout")
            assert cursor.fetchone() == (20000,)
        else:
            cursor.execute("SHOW transaction_isolation")
            assert cursor.fetchone() == ("read committed",)


@pytest.mark.django_db(transaction=True)
def test_sqlite_transaction_takes_the_write_lock_first() -> None:
    statements: list[str] = []

    def record(
        execute: Callable[..., object], sql: str, params: object, many: object, context: object
    ) -> object:
        statements.append(sql)
        return execute(sql, params, many, context)

    with connection.execute_wrapper(record), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT 1")

    expected = ["BEGIN IMMEDIATE", "SELECT 1"] if connection.vendor == "sqlite" else ["SELECT 1"]
    assert statements == expected
