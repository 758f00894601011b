"""Most of what whole clusters do is seen on both databases."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.db import connection

FOLDER = Path(__file__).parent
SEEN_ON_ONE = "test_stuck.py"
# A process that is stopped inside a transaction holds SQLite's file until it goes on, and ten
# drivers hold each other up there.
collect_ignore_glob = [] if connection.vendor == "postgresql" else ["test_postgresql_*.py"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if FOLDER in item.path.parents and item.path.name != SEEN_ON_ONE:
            item.add_marker(pytest.mark.both_databases)
