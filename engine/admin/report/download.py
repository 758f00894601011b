"""A run as a file to take away: the export's own lines, or tables for a spreadsheet."""

from __future__ import annotations

import csv
import json
import shutil
import tempfile
import zipfile
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from django.core.exceptions import PermissionDenied
from django.http import FileResponse, Http404

from cohorts.tables import disarmed
from engine.export.rows import Scope
from engine.export.schema import FILES
from engine.export.writer import write_export

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO

    from django.http import HttpRequest

    from engine.models import Run

KINDS: Final = ("jsonl", "csv")


def download_view(model_admin: Any, request: HttpRequest, run_id: int, kind: str) -> FileResponse:
    """Send a run as a zip of JSON Lines, or of CSV tables that a spreadsheet opens."""
    run = model_admin.find(request, str(run_id))
    if not request.user.has_perms(["engine.view_message", "engine.view_llmcall"]):
        raise PermissionDenied
    if kind not in KINDS:
        raise Http404
    packed = pack(run, kind)
    return FileResponse(packed, as_attachment=True, filename=f"run-{run.pk}-{kind}.zip")


def pack(run: Run, kind: str) -> IO[bytes]:
    """Return a temporary file with the export of a run; lines are written one by one."""
    # The answer closes it when it is sent.
    packed = tempfile.TemporaryFile()  # noqa: SIM115
    folder = Path(tempfile.mkdtemp(prefix="export-"))
    try:
        lines = folder / f"run-{run.pk}"
        write_export(Scope(simulation=run.simulation, run=run), lines)
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for one in FILES:
                if kind == "jsonl":
                    archive.write(lines / one.name, f"run-{run.pk}/{one.name}")
                else:
                    _write_table(archive, lines / one.name)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    packed.seek(0)
    return packed


def _write_table(archive: zipfile.ZipFile, lines: Path) -> None:
    """Write a file of lines as a table: a column for each field, nested values as JSON."""
    with (
        archive.open(f"{lines.stem}.csv", "w", force_zip64=True) as raw,
        TextIOWrapper(raw, encoding="utf-8-sig", newline="") as text,
    ):
        table = csv.writer(text)
        columns: list[str] = []
        for row in _rows(lines):
            if not columns:
                columns = list(row)
                table.writerow(columns)
            table.writerow([cell_of(row.get(name)) for name in columns])


def _rows(lines: Path) -> Iterator[dict[str, Any]]:
    with lines.open(encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def cell_of(value: object) -> str:
    """Return a value as a cell that no spreadsheet takes for a formula."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return str(value)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return disarmed(text)
