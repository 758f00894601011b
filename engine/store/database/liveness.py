"""The liveness lock of a driver: it is held for as long as the driver's process lives.

A lease says how long a silent driver keeps its simulation; this lock says whether there still is a
driver. It is one per simulation and token, so that a driver that hangs neither stops a later one
from having its own, nor passes for it. On SQLite it is an `flock` on a file beside the database, on
PostgreSQL a session's advisory lock: kernel and server drop them with the process, however it dies.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
import threading
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from django.db import DEFAULT_DB_ALIAS, connection, connections

from engine.store.database.lease import boot_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.store.database.lease import LeaseState

#: Keeps our advisory locks apart from those of other programs in the same database.
KEY_PERSON = b"agents-liveness"
_IS_LOCKED = """
SELECT EXISTS (
    SELECT FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND granted
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND classid::bigint << 32 | objid::bigint = %s
)
"""


class Liveness:
    """A driver's sign of life, and the connection of its pulse.

    `taken_at`, in seconds since boot, is before the start of the lease that it belongs to.
    """

    def __init__(self) -> None:
        self.taken_at = boot_seconds()
        self._connection = connections.create_connection(DEFAULT_DB_ALIAS)
        self._connection.inc_thread_sharing()
        self._in_use = threading.Lock()
        self._is_released = False

    @contextmanager
    def beating(self) -> Iterator[None]:
        """Give the calling thread the connection for one beat; keep the lock after it."""
        try:
            with self._in_use:
                connections[DEFAULT_DB_ALIAS] = self._connection
                yield
                self._keep()
        finally:
            if self._is_released:
                self._connection.close()

    def release(self) -> None:
        """Give the lock back and close the connection: at once, or after a beat that hangs in it."""
        self._is_released = True
        if self._in_use.acquire(blocking=False):
            self._connection.close()
            self._in_use.release()

    def _keep(self) -> None:
        """Take the lock again if the connection has lost it."""


class _FileLiveness(Liveness):
    """The lock on a file, which nobody but its holder removes while it is held."""

    def __init__(self, file: Path, handle: int) -> None:
        super().__init__()
        self._file = file
        self._handle: int | None = handle

    def release(self) -> None:
        super().release()
        if self._handle is not None:
            self._file.unlink(missing_ok=True)
            os.close(self._handle)
            self._handle = None


class _SessionLiveness(Liveness):
    """The lock of a session of the server."""

    def __init__(self, key: int) -> None:
        super().__init__()
        self._key = key
        self._session: object = None

    def take(self) -> bool:
        with self._connection.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_lock(%s)", [self._key])
            is_taken = bool(cursor.fetchone()[0])
        if is_taken:
            self._session = self._connection.connection
        return is_taken

    def _keep(self) -> None:
        """After a reconnect the server may still have the old session; then it is tried again."""
        if self._connection.connection is not self._session:
            self.take()


def take_liveness(simulation_id: int, token: int) -> Liveness | None:
    """Take the lock for a token that is about to be taken; None if somebody else is about to."""
    if connection.vendor == "postgresql":
        return _take_session(_key(simulation_id, token))
    for dead in _files_below(simulation_id, token):
        if not _is_locked(dead):
            dead.unlink(missing_ok=True)
    return _take_file(_file(simulation_id, token))


def is_alive(simulation_id: int, token: int) -> bool:
    """Tell whether the process that took this token still lives, be it that it hangs."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(_IS_LOCKED, [_key(simulation_id, token)])
            return bool(cursor.fetchone()[0])
    return _is_locked(_file(simulation_id, token))


def is_driven(simulation_id: int, lease: LeaseState) -> bool:
    """Tell whether a lease has a driver: one that lives, and whose lease has not ended."""
    return not lease.is_expired and is_alive(simulation_id, lease.token)


# --- PostgreSQL ------------------------------------------------------------------------------------


def _take_session(key: int) -> Liveness | None:
    liveness = _SessionLiveness(key)
    if liveness.take():
        return liveness
    liveness.release()
    return None


def _key(simulation_id: int, token: int) -> int:
    """Return a number of 8 bytes, the width of an advisory lock, that no other pair is likely to have."""
    name = f"{simulation_id} {token}".encode()
    digest = blake2b(name, digest_size=8, person=KEY_PERSON).digest()
    return int.from_bytes(digest, "big", signed=True)


# --- SQLite ----------------------------------------------------------------------------------------


def _beside_the_database(simulation_id: int) -> Path:
    """Return what the paths of a simulation's locks begin with.

    A database in memory is its process's own, and so are its locks.
    """
    name = str(connection.settings_dict["NAME"])
    if ":memory:" in name or "mode=memory" in name:
        return Path(tempfile.gettempdir(), f"sim-{os.getpid()}.driver-{simulation_id}-")
    return Path(f"{Path(name).resolve()}.driver-{simulation_id}-")


def _file(simulation_id: int, token: int) -> Path:
    return Path(f"{_beside_the_database(simulation_id)}{token}")


def _files_below(simulation_id: int, token: int) -> Iterator[Path]:
    """Yield the lock files of earlier tokens, which nobody takes any more."""
    start = _beside_the_database(simulation_id)
    for file in start.parent.iterdir():
        number = file.name.removeprefix(start.name)
        if number != file.name and number.isdecimal() and int(number) < token:
            yield file


def _take_file(file: Path) -> Liveness | None:
    """Make and lock the file; begin again if its last holder removed it in between."""
    while True:
        # A program that this process starts must not inherit its life.
        handle = os.open(file, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        if not _lock(handle, fcntl.LOCK_EX):
            os.close(handle)
            return None
        if _names(file, handle):
            return _FileLiveness(file, handle)
        os.close(handle)


def _is_locked(file: Path) -> bool:
    """Tell whether somebody holds the file; it is never made by this question.

    Asked with a shared lock, so that two who ask do not take each other for a driver.
    """
    try:
        handle = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except PermissionError:
        return True  # of another user: nothing shows that it is dead
    try:
        return not _lock(handle, fcntl.LOCK_SH)
    finally:
        os.close(handle)


def _lock(handle: int, kind: int) -> bool:
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _names(file: Path, handle: int) -> bool:
    """Tell whether the path still leads to the open file."""
    with suppress(FileNotFoundError):
        return os.path.samestat(file.stat(), os.fstat(handle))
    return False
