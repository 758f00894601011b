"""Reading what people save from spreadsheets and editors: texts and tables, errors by line."""

from __future__ import annotations

import codecs
import csv
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

_BOMS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Problem:
    """What is wrong in a folder: where, and in one plain sentence what to do."""

    file: str
    line: int | None
    text: str

    def __str__(self) -> str:
        where = self.file if self.line is None else f"{self.file}, line {self.line}"
        return f"{where}: {self.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One record of a table: the line on which it begins, and its cells by column, stripped."""

    line: int
    cells: Mapping[str, str]

    def __getitem__(self, column: str) -> str:
        return self.cells[column]


FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n")
"""A cell that begins so is taken for a formula by spreadsheets, or hides one."""


def disarmed(text: str) -> str:
    """Return a text as a cell that no spreadsheet takes for a formula; `armed` undoes it."""
    text = text.replace("\0", "")
    return f"'{text}" if text.lstrip("'").startswith(FORMULA) else text


def armed(text: str) -> str:
    """Return the text that a disarmed cell stands for; another one as it is."""
    if text.startswith("'") and text.lstrip("'").startswith(FORMULA):
        return text[1:]
    return text


class UnreadableError(Exception):
    """A file that cannot be read as text; carries the problem."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem


def read_text(path: Path, name: str) -> str:
    """Return the text of a UTF-8 or UTF-16 file, with or without BOM, lines ended by "\\n".

    `name` is how problems call the file. Raises UnreadableError.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError as exc:
        raise UnreadableError(Problem(file=name, line=None, text="It is missing.")) from exc
    except OSError as exc:
        text = f"It cannot be read ({exc.strerror})."
        raise UnreadableError(Problem(file=name, line=None, text=text)) from exc
    encoding = next((encoding for bom, encoding in _BOMS if data.startswith(bom)), "utf-8")
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as exc:
        line = data.count(b"\n", 0, exc.start) + 1
        sentence = "It is neither UTF-8 nor UTF-16: save the file as UTF-8."
        raise UnreadableError(Problem(file=name, line=line, text=sentence)) from exc
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        sentence = "It holds a NUL character: remove it, or save the file as UTF-8."
        raise UnreadableError(Problem(file=name, line=line, text=sentence))
    return text.replace("\r\n", "\n").replace("\r", "\n")


def read_table(path: Path, name: str, columns: Sequence[str]) -> tuple[list[Row], list[Problem]]:
    """Return the rows of a file separated by commas, semicolons or tabs, and what is wrong.

    The first row names the columns, in any order and case, padded or not; blank rows are left
    out, and a row may end early. Rows are returned only if the columns are right.
    """
    try:
        records = list(_records(read_text(path, name), name))
    except UnreadableError as exc:
        return [], [exc.problem]
    if not records:
        sentence = f"It is empty: its first row must be {','.join(columns)}."
        return [], [Problem(file=name, line=1, text=sentence)]
    header = [cell.casefold() for cell in records[0][1]]
    problems = _header_problems(name, records[0][0], header, columns)
    if problems:
        return [], problems
    rows = [
        Row(line=line, cells=dict(zip(header, cells + [""] * len(header), strict=False)))
        for line, cells in records[1:]
    ]
    return rows, [
        Problem(file=name, line=line, text="It has more cells than the first row has columns.")
        for line, cells in records[1:]
        if any(cells[len(header) :])
    ]


def _records(text: str, name: str) -> Iterator[tuple[int, list[str]]]:
    """Yield (first line, stripped cells) of each record that is not blank."""
    first = text.lstrip("\n").partition("\n")[0]
    delimiter = max(",;\t", key=first.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    line = 1
    while True:
        try:
            cells = [cell.strip() for cell in next(reader)]
        except StopIteration:
            return
        except csv.Error as exc:
            sentence = (
                f"The row cannot be read ({exc}): look for a quotation mark without its pair."
            )
            raise UnreadableError(Problem(file=name, line=line, text=sentence)) from exc
        if any(cells):
            yield line, cells
        line = reader.line_num + 1


def _header_problems(
    name: str, line: int, header: Sequence[str], columns: Sequence[str]
) -> list[Problem]:
    named = [column for column in header if column]
    known = f"its columns are {', '.join(columns)}"
    missing = [column for column in columns if column not in named]
    unknown = [column for column in named if column not in columns]
    twice = [column for column in columns if named.count(column) > 1]
    sentences = [f"The column {column} is missing: {known}." for column in missing]
    sentences += [f"The column {column} is not known: {known}." for column in unknown]
    sentences += [f"The column {column} is there twice." for column in twice]
    return [Problem(file=name, line=line, text=sentence) for sentence in sentences]
