"""Connections of long-lived threads, consistent snapshots, and failures that pass by themselves."""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from django.db import (
    DEFAULT_DB_ALIAS,
    InterfaceError,
    InternalError,
    OperationalError,
    close_old_connections,
    connection,
    connections,
    transaction,
)
from django.db.backends.base.base import BaseDatabaseWrapper

from engine.core.errors import DiskFull, StoreError, Unanswered

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from django.db.backends.utils import CursorWrapper

Result = TypeVar("Result")

log = logging.getLogger(__name__)

#: What time cures, of the errors that a database can report.
TROUBLE = (OperationalError, InterfaceError, InternalError)
#: PostgreSQL's code for a full disk.
DISK_FULL = "53100"
#: Its codes for a session that it ended, since its transaction was idle or lasted for too long.
ENDED = frozenset({"25P03", "25P04"})
COURTESY_SECONDS = 0.005
#: Seconds before work that met a passing failure is sent again; the last one repeats.
PAUSES = (0.02, 0.1, 0.5, 1.0)
IDLE_IN_TRANSACTION = "10s"
LOCK_TIMEOUT = "5s"


class _Thread(threading.local):
    """The session of this thread that `ready_connection` has set up."""

    session: object = None


_thread = _Thread()


def ready_connection() -> None:
    """Give the thread a connection that works; a good one is kept, whatever its age.

    A web process may close its connections after each request; a driver that did so would
    connect anew for every group (3 ms on PostgreSQL). It is asked whether it works once it has
    failed: the work tells that too, and is done again. Nor is anything logged that it asks: with
    DEBUG on, that takes longer than to answer it.
    """
    if connection.errors_occurred:
        close_old_connections()
    connection.ensure_connection()
    connection.close_at = None
    if connection.connection is not _thread.session:
        _log_nothing(connections[DEFAULT_DB_ALIAS])
        if connection.vendor == "postgresql":
            _bound_waits()
        _thread.session = connection.connection


@contextmanager
def quick_cursor() -> Iterator[Any]:
    """Give a cursor for statements that are asked again and again, inside a transaction or not.

    PostgreSQL's own kind: the server compiles a statement once and is sent only its values, which
    Django's cursor would write into the text each time, in ten times the time.
    """
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            yield cursor
        return
    from psycopg import Cursor  # noqa: PLC0415 - not loaded where there is no server

    connection.ensure_connection()
    session: Any = connection.connection
    session.prepare_threshold = 1
    with connection.wrap_database_errors, Cursor(session) as cursor:
        yield cursor


def _log_nothing(ours: BaseDatabaseWrapper) -> None:
    """Keep DEBUG's log of queries off a driver's connection; who forces one still has it."""

    def make_debug_cursor(cursor: Any) -> CursorWrapper:
        if ours.force_debug_cursor:
            return BaseDatabaseWrapper.make_debug_cursor(ours, cursor)
        return ours.make_cursor(cursor)

    vars(ours).setdefault("make_debug_cursor", make_debug_cursor)


def _bound_waits() -> None:
    """Let the server end what a stopped driver leaves open, and what waits for a lock too long."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT set_config('idle_in_transaction_session_timeout', %s, false),"
            " set_config('lock_timeout', %s, false)",
            [IDLE_IN_TRANSACTION, LOCK_TIMEOUT],
        )


def passes(trouble: Exception) -> bool:
    """Tell whether the same work may succeed on a new connection.

    On SQLite only a lock does. On PostgreSQL everything that is no fault of the statement: a lost
    connection, a lock timeout, a deadlock, a server that restarts. A full disk is for a person.
    """
    if is_full(trouble):
        return False
    if connection.vendor == "sqlite":
        return "locked" in str(trouble)
    if getattr(trouble.__cause__, "sqlstate", None) in ENDED:
        return True  # Django has a new session by now, which is usable
    return not isinstance(trouble, InternalError) or not connection.is_usable()


def is_full(trouble: Exception) -> bool:
    """Tell whether the database's disk, or its quota, has no room for what was to be stored."""
    told = trouble.__cause__
    return (
        getattr(told, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL
        or getattr(told, "sqlstate", None) == DISK_FULL
    )


def lasting(trouble: Exception) -> StoreError:
    """Return what to raise for a failure that does not pass."""
    return DiskFull() if is_full(trouble) else StoreError(str(trouble))


class Patience:
    """How long failures are waited out; `end` ends it early, from any thread and for all work."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._over = threading.Event()

    def end(self) -> None:
        """Wait for nothing any more: work that fails from now on is given up."""
        self._over.set()

    def until_known(self, work: Callable[[], Result]) -> Result:
        """Do the work on a good connection, again and again while its failure may pass.

        Raises `Unanswered` when patience is over, `DiskFull` or `StoreError` for what time does not cure.
        """
        n_failures, first_at = 0, 0.0
        while True:
            try:
                ready_connection()
                return work()
            except TROUBLE as exc:
                if not passes(exc):
                    raise lasting(exc) from exc
                first_at = first_at or time.monotonic()
                self._pause(n_failures, first_at, str(exc))
            connection.close()
            n_failures += 1

    def _pause(self, n_failures: int, first_at: float, trouble: str) -> None:
        """Wait before the next try; there is one more after a stop of the whole process."""
        if time.monotonic() - first_at >= self._seconds:
            raise Unanswered(f"The database did not answer for {self._seconds:g} s.")
        if n_failures == 1:
            log.warning("The database does not answer, and is tried again: %s", trouble.strip())
        if self._over.wait(PAUSES[min(n_failures, len(PAUSES) - 1)]):
            raise Unanswered("The database did not answer.")


class Courtesy:
    """Leaves SQLite's file to other processes for a moment after one of them has written.

    Its lock is not fair: a driver whose groups follow each other at once would starve them.
    """

    def __init__(self) -> None:
        self._seen: int | None = None

    def wait(self) -> None:
        """Wait 5 ms if another connection wrote since the last call of this thread."""
        if connection.vendor != "sqlite":
            return
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA data_version")
            version = cursor.fetchone()[0]
        if self._seen not in {None, version}:
            time.sleep(COURTESY_SECONDS)
        self._seen = version


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
    sqlite: Any = connections[DEFAULT_DB_ALIAS]  # the stubs do not know the attribute
    usual = sqlite.transaction_mode
    sqlite.transaction_mode = "DEFERRED"
    try:
        yield
    finally:
        sqlite.transaction_mode = usual
