"""Writes an export folder: one consistent snapshot, whole or not at all."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from engine.export.codec import encode_row
from engine.export.rows import ROWS
from engine.export.schema import FILES
from engine.store.database.session import snapshot

if TYPE_CHECKING:
    from engine.export.rows import Scope

#: What a folder made for one user only would not be.
FOLDER_MODE = 0o755


class RefusedFolderError(Exception):
    """The folder cannot take an export; the message is one sentence."""


def write_export(scope: Scope, folder: Path) -> dict[str, int]:
    """Write all files of an export into a new or empty folder; return the lines of each.

    The files are written beside the folder, which takes them at once: whoever looks in sees
    nothing or everything, also if we are killed. Raises `RefusedFolderError`.
    """
    _check(folder)
    beside = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        with snapshot():
            n_lines = {one.name: _write_file(scope, beside / one.name) for one in FILES}
        beside.chmod(FOLDER_MODE)
        beside.replace(folder)
    except OSError as exc:
        raise RefusedFolderError(f"{folder} could not be written: {exc.strerror}.") from exc
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return n_lines


def _check(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise RefusedFolderError(f"{folder} is a file: name a new or empty folder.")
    if folder.exists() and any(folder.iterdir()):
        raise RefusedFolderError(f"{folder} is not empty: name a new or empty folder.")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise RefusedFolderError(f"{folder.parent} cannot be made: {exc.strerror}.") from exc


def _write_file(scope: Scope, path: Path) -> int:
    n_lines = 0
    with path.open("wb") as lines:
        for row in ROWS[path.name](scope):
            lines.write(encode_row(row))
            n_lines += 1
    return n_lines
