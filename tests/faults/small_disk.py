"""A real disk that is small, where this process may mount one, and databases on it."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.db import connection

from tests.faults.own_server import own_server
from tests.faults.society import run_sql

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class Disk:
    """A file system in memory, mounted on a folder of its own."""

    folder: Path

    def used(self) -> int:
        """Return how many bytes are taken."""
        return shutil.disk_usage(self.folder).used

    def resize(self, n_bytes: int) -> None:
        """Give the disk another size, at least what is on it."""
        _mount("-o", f"remount,size={n_bytes}", str(self.folder))


@contextmanager
def small_disk(n_bytes: int) -> Iterator[Disk]:
    """Mount an empty disk of this size, and take it away at the end."""
    with tempfile.TemporaryDirectory(prefix="sim-disk-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        _mount("-t", "tmpfs", "-o", f"size={n_bytes}", "tmpfs", name)
        try:
            yield Disk(folder)
        finally:
            subprocess.run(["umount", "--lazy", name], check=True)


@cache
def can_mount() -> bool:
    """Tell whether this process may mount a disk, as root of a machine may."""
    try:
        with small_disk(65536):
            return True
    except (OSError, subprocess.CalledProcessError):
        return False


def _mount(*words: str) -> None:
    subprocess.run(["mount", *words], check=True, capture_output=True)


@contextmanager
def on_disk(disk: Disk) -> Iterator[None]:
    """Put this test's SQLite file on a disk, where this process and the doors find it."""
    file = disk.folder / "sim.sqlite3"
    run_sql(f"VACUUM INTO '{file}'")
    stored: dict[str, Any] = connection.settings_dict
    before = stored["NAME"]
    connection.close()
    stored["NAME"] = str(file)
    try:
        yield
    finally:
        connection.close()
        stored["NAME"] = before


@contextmanager
def messages_on(disk: Disk) -> Iterator[None]:
    """Put the messages of a server of this test's own on a disk."""
    with own_server() as server:
        if server.user:
            shutil.chown(disk.folder, server.user)
        run_sql(
            f"CREATE TABLESPACE small LOCATION '{disk.folder}'",
            "ALTER TABLE engine_message SET TABLESPACE small",
        )
        yield
