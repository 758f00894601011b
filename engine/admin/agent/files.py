"""Agents as files: taken away, and loaded after a look at what would change."""

from __future__ import annotations

import csv
import io
import shutil
import tempfile
import zipfile
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final

from django.http import FileResponse

from cohorts.exporter import TABLE_COLUMNS, table_rows, write_roster
from cohorts.roster import AGENTS, COHORTS, Roster, read_roster
from cohorts.tables import Problem, armed, disarmed, read_table

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO

    from django.core.files.uploadedfile import UploadedFile

LARGEST_BYTES: Final = 20 * 2**20
FILES_AT_MOST: Final = 50_000
_TOO_LARGE: Final = "It is larger than 20 MB unpacked: leave out what is no roster."
_KINDS: Final = "Load a roster folder as .zip, or a table of agents as .csv or .xlsx."
EXPORTS: Final = ("zip", "csv", "xlsx")


def read_upload(upload: UploadedFile[Any]) -> tuple[Roster, list[Problem]]:
    """Return the roster of a file that somebody sent, and all that is wrong with it."""
    name = str(upload.name or "").lower()
    if (upload.size or 0) > LARGEST_BYTES:
        return Roster(), [_problem(name, _TOO_LARGE)]
    with _folder() as folder:
        if name.endswith(".zip"):
            problem = _unpack(upload, folder)
        elif name.endswith(".xlsx"):
            problem = _from_workbook(upload, folder / "table.csv")
        elif name.endswith(".csv"):
            (folder / "table.csv").write_bytes(upload.read())
            problem = None
        else:
            problem = _problem(name or "the file", _KINDS)
        if problem is not None:
            return Roster(), [problem]
        problems = _from_table(folder) if (folder / "table.csv").exists() else []
        if problems:
            return Roster(), problems
        return read_roster(_root(folder))


def _unpack(upload: UploadedFile[Any], folder: Path) -> Problem | None:
    """Unpack what belongs to a roster, and nothing outside of the folder."""
    try:
        with zipfile.ZipFile(upload) as archive:
            members = [one for one in archive.infolist() if not one.is_dir()]
            if (
                sum(one.file_size for one in members) > LARGEST_BYTES
                or len(members) > FILES_AT_MOST
            ):
                return _problem(str(upload.name), _TOO_LARGE)
            for one in members:
                parts = PurePosixPath(one.filename.replace("\\", "/")).parts
                if parts and ".." not in parts and one.filename.endswith((".csv", ".md")):
                    target = folder.joinpath(*[part for part in parts if part != "/"])
                    target.parent.mkdir(parents=True, exist_ok=True)
                    with archive.open(one) as packed:
                        target.write_bytes(packed.read(LARGEST_BYTES))
    except (zipfile.BadZipFile, RuntimeError, OSError, NotImplementedError):
        return _problem(str(upload.name), "It is no zip file that can be read: pack it again.")
    return None


def _root(folder: Path) -> Path:
    """Return where the tables are: here, or in the one folder that was packed."""
    found = sorted(folder.rglob(AGENTS), key=lambda path: len(path.parts))
    return found[0].parent if found else folder


def _from_workbook(upload: UploadedFile[Any], table: Path) -> Problem | None:
    """Write the first sheet of a workbook as a table; formulas and macros are not looked at."""
    try:
        book = _openpyxl().load_workbook(upload, read_only=True, data_only=True)
        with table.open("w", encoding="utf-8", newline="") as file:
            lines = csv.writer(file)
            for row in book.worksheets[0].iter_rows(values_only=True):
                lines.writerow(["" if cell is None else str(cell) for cell in row])
        book.close()
    except Exception:  # noqa: BLE001 - a broken workbook makes its reader raise anything
        return _problem(str(upload.name), "It is no workbook that can be read: save it as .xlsx.")
    return None


def _from_table(folder: Path) -> list[Problem]:
    """Make a roster folder of one table, whose lines keep their numbers where they can."""
    rows, problems = read_table(folder / "table.csv", "the table", TABLE_COLUMNS)
    if problems:
        return problems
    for kind in ("public", "private"):
        (folder / kind).mkdir()
    agents: list[list[str]] = [list(TABLE_COLUMNS[:4])]
    cohorts: list[list[str]] = [["cohort", "description", "agent_id"]]
    for row in rows:
        slug = row["agent_id"]
        agents.append([row[name] for name in TABLE_COLUMNS[:4]])
        cohorts += [[name.strip(), "", slug] for name in row["cohorts"].split(";") if name.strip()]
        if slug and "/" not in slug and not slug.startswith("."):
            for kind, column in (("public", "public_profile"), ("private", "private_instructions")):
                (folder / kind / f"{slug}.md").write_text(armed(row[column]), encoding="utf-8")
    for name, lines in ((AGENTS, agents), (COHORTS, cohorts)):
        with (folder / name).open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows(lines)
    return []


def pack_agents(kind: str) -> FileResponse:
    """Return all agents that are not retired as a file: a packed folder, or one table."""
    packed: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - the answer closes it
    {"zip": _pack_folder, "csv": _pack_csv, "xlsx": _pack_workbook}[kind](packed)
    packed.seek(0)
    return FileResponse(packed, as_attachment=True, filename=f"agents.{kind}")


def _pack_folder(packed: IO[bytes]) -> None:
    with _folder() as folder, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        write_roster(folder / "roster")
        for path in sorted((folder / "roster").rglob("*")):
            if path.is_file():
                archive.write(path, path.relative_to(folder))


def _pack_csv(packed: IO[bytes]) -> None:
    text = io.TextIOWrapper(packed, encoding="utf-8-sig", newline="")
    table = csv.writer(text)
    table.writerow(TABLE_COLUMNS)
    table.writerows([disarmed(cell) for cell in row] for row in table_rows())
    text.detach()


def _pack_workbook(packed: IO[bytes]) -> None:
    book = _openpyxl().Workbook(write_only=True)
    sheet = book.create_sheet("agents")
    sheet.append(TABLE_COLUMNS)
    for row in table_rows():
        sheet.append([_storable(disarmed(cell)) for cell in row])
    book.save(packed)


def _openpyxl() -> Any:
    """Return the library of workbooks; only who has one to read or write pays for its import."""
    return import_module("openpyxl")


def _storable(text: str) -> str:
    """Leave out the characters that a workbook cannot hold."""
    return "".join(c for c in text if c in "\t\n\r" or ord(c) >= 32)[:32_000]


@contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="roster-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _problem(name: str, text: str) -> Problem:
    return Problem(file=name, line=None, text=text)
