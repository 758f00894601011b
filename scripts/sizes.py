"""Finds functions and files that are too long to be read at a glance.

Migrations are exempt; so are functions of tests, where one scenario may take its room.
"""

from __future__ import annotations

import ast
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

FUNCTION_LINES = 40
FILE_LINES = 400
FOLDERS = ("simsite", "cohorts", "engine", "tests", "scripts", "benchmarks")


@dataclass(frozen=True, slots=True, kw_only=True)
class TooLong:
    """Something of `lines` lines where `limit` are allowed."""

    where: str
    lines: int
    limit: int

    def __str__(self) -> str:
        return f"{self.where} has {self.lines} lines; {self.limit} are allowed."


def source_files(root: Path) -> Iterator[Path]:
    """The Python files of the project, without migrations."""
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.py")):
            if "migrations" not in path.parts:
                yield path


def too_long(path: Path, *, name: str, functions: bool) -> Iterator[TooLong]:
    """What is too long in one file; functions are only looked at when asked."""
    text = path.read_text(encoding="utf-8")
    lines = len(text.splitlines())
    if lines > FILE_LINES:
        yield TooLong(where=name, lines=lines, limit=FILE_LINES)
    for node in ast.walk(ast.parse(text)) if functions else ():
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > FUNCTION_LINES:
                where = f"{name}:{node.lineno} {node.name}()"
                yield TooLong(where=where, lines=lines, limit=FUNCTION_LINES)


def main(root: Path) -> int:
    """Report to stdout; 1 when something is too long."""
    found: Sequence[TooLong] = [
        finding
        for path in source_files(root)
        for finding in too_long(
            path,
            name=str(path.relative_to(root)),
            functions=path.relative_to(root).parts[0] != "tests",
        )
    ]
    for finding in found:
        print(finding)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(__file__).resolve().parent.parent))
