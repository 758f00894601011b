"""What needs a PostgreSQL, or a disk to mount, is collected where it can be had."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.db import connection

from tests.faults.small_disk import can_mount

FOLDER = Path(__file__).parent
collect_ignore = [] if can_mount() else ["test_small_disk.py"]
collect_ignore_glob = [] if connection.vendor == "postgresql" else ["test_postgresql_*.py"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if FOLDER in item.path.parents:
            item.add_marker(pytest.mark.both_databases)
