"""Connections of long-lived threads, consistent snapshots, and which failures pass by themselves."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from django.db import (
    InterfaceError,
    InternalError,
    OperationalError,
    close_old_connections,
    connection,
    transaction,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

#: What time cures, of the errors that a database can report.
TROUBLE = (OperationalError, InterfaceError, InternalError)


def ready_connection() -> None:
    """Give the thread a connection that works; a good one is kept, whatever its age.

    A web process may close its connections after each request; a driver that did so would
    connect anew for every group (3 ms on PostgreSQL).
    """
    connection.close_at = None
    close_old_connections()


def passes(trouble: Exception) -> bool:
    """Tell whether the same work may succeed on a new connection.

    On SQLite only a lock does. On PostgreSQL everything that is no fault of the statement: a lost
    connection, a lock timeout, a deadlock, a server that restarts.
    """
    if connection.vendor == "sqlite":
        return "locked" in str(trouble) or "busy" in str(trouble)
    return True


@contextmanager
def snapshot() -> Iterator[None]:
    """Read everything inside as of one moment, without holding up whoever writes.

    A caller's own transaction is taken as it is.
    """
    if connection.in_atomic_block:
        yield
        return
    connection.ensure_connection()
    if connection.vendor == "sqlite":
        with _deferred(), transaction.atomic():
            yield
        return
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        yield


@contextmanager
def _deferred() -> Iterator[None]:
    """Let SQLite's next transaction begin as a reader: IMMEDIATE would lock the file."""
    usual = connection.transaction_mode
    connection.transaction_mode = "DEFERRED"
    try:
        yield
    finally:
        connection.transaction_mode = usual
