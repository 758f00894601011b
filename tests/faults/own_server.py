"""A PostgreSQL of one test's own, which may be stopped under a driver."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from django.db import connection

from tests.doors import manage
from tests.postgres import binaries_of, started

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.postgres import Server


@contextmanager
def own_server() -> Iterator[Server]:
    """Start a server with empty tables; this process and the doors speak to it meanwhile."""
    stored = connection.settings_dict
    before = dict(stored)
    with started(binaries_of("any")) as server:
        connection.close()
        stored |= {
            "HOST": "127.0.0.1",
            "PORT": server.port,
            "USER": "sim",
            "PASSWORD": "",
            "NAME": "postgres",
        }
        try:
            assert manage("migrate", "--verbosity", "0").code == 0
            yield server
        finally:
            connection.close()
            stored |= before


@contextmanager
def outage(server: Server, mode: str, *, seconds: float) -> Iterator[None]:
    """Stop a server; it is back so many seconds after the block has ended, whatever happens."""
    connection.close()
    server.stop(mode)
    try:
        yield
        time.sleep(seconds)  # how long it is away is the fault itself
    finally:
        server.start()
