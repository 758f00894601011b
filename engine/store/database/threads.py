"""Threads that work for the event loop, each with its own connection."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from django.db import DEFAULT_DB_ALIAS, connections

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.db.backends.base.base import BaseDatabaseWrapper

Result = TypeVar("Result")


class DatabaseThreads:
    """A fixed number of threads; `close` also closes their connections."""

    def __init__(self, n_threads: int, *, name: str) -> None:
        self._connections: list[BaseDatabaseWrapper] = []
        self._threads = ThreadPoolExecutor(
            n_threads, thread_name_prefix=name, initializer=self._enrol
        )

    async def do(self, work: Callable[[], Result]) -> Result:
        """Do the work on one of the threads, in the order of asking; await its result."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def close(self) -> None:
        """Let the threads finish what they were given, then end them."""
        self._threads.shutdown()
        for connection in self._connections:
            connection.close()

    def _enrol(self) -> None:
        """Keep the new thread's connection, and let the closing thread close it."""
        connection = connections[DEFAULT_DB_ALIAS]
        connection.inc_thread_sharing()
        self._connections.append(connection)
