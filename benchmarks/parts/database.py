"""A database of its own for a benchmark: a file of SQLite, or one made in the PostgreSQL of
`DATABASE_URL` as Django makes one for tests, so that nobody's own tables are touched.

    with fresh_database():
        from engine.models import Simulation

`python -m tests.postgres -- python -m benchmarks.NAME` gives a benchmark a PostgreSQL.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import django
from django.core.management import call_command


@contextmanager
def fresh_database() -> Iterator[str]:
    """Set Django up and make the tables; gives the name and version of the database.

    Once a process: models are imported after it was entered.
    """
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "simsite.settings")
    with ExitStack() as left:
        if os.environ.get("DATABASE_URL", "").startswith("postgres"):
            django.setup()
            _make_in_server(left)
        else:
            folder = left.enter_context(tempfile.TemporaryDirectory())
            os.environ["DATABASE_URL"] = f"sqlite:///{Path(folder) / 'bench.sqlite3'}"
            django.setup()
            call_command("migrate", verbosity=0)
        left.callback(_close)
        yield _name_and_version()


def _make_in_server(left: ExitStack) -> None:
    from django.db import connection

    own = connection.settings_dict["NAME"]
    connection.creation.create_test_db(verbosity=0, autoclobber=True, serialize=False)
    left.callback(connection.creation.destroy_test_db, own, verbosity=0)


def _name_and_version() -> str:
    from django.db import connection

    query = "SELECT sqlite_version()" if connection.vendor == "sqlite" else "SHOW server_version"
    with connection.cursor() as cursor:
        cursor.execute(query)
        return f"{connection.display_name} {cursor.fetchone()[0]}"


def _close() -> None:
    from django.db import connections

    connections.close_all()
