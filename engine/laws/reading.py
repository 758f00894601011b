"""Reading an export folder: files to rows, or what does not fit the format."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from engine.export.codec import FormatError, decode_row
from engine.export.schema import (
    AgentRow,
    ChangeRow,
    LlmCallRow,
    MessageRow,
    ProposalRow,
    Row,
    RunRow,
    ThreadRow,
    TopologyRow,
    TurnRow,
)
from engine.laws.export import Export
from engine.laws.law import Violation

if TYPE_CHECKING:
    from pathlib import Path

FORMAT_LAW = "format"
FORMAT_SAYS = (
    "every file of the export is there, UTF-8, one JSON object a line, with the fields, types "
    "and nulls of the format"
)

AnyRow = TypeVar("AnyRow", bound=Row)


class FolderReader:
    """Reads the files of one folder and keeps what does not fit them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.violations: list[Violation] = []

    def read(self) -> Export:
        """Return the rows that could be read; look at `violations` before using them."""
        return Export(
            runs=self._rows("runs.jsonl", RunRow),
            agents=self._rows("agents.jsonl", AgentRow),
            topology=self._rows("topology.jsonl", TopologyRow),
            changes=self._rows("changes.jsonl", ChangeRow),
            turns=self._rows("turns.jsonl", TurnRow),
            messages=self._rows("messages.jsonl", MessageRow),
            threads=self._rows("threads.jsonl", ThreadRow),
            proposals=self._rows("proposals.jsonl", ProposalRow),
            llm_calls=self._rows("llm_calls.jsonl", LlmCallRow),
        )

    def _rows(self, name: str, row_type: type[AnyRow]) -> tuple[AnyRow, ...]:
        """Return the rows of one file. Only LF ends a line: texts may hold other line breaks."""
        rows: list[AnyRow] = []
        try:
            with (self._folder / name).open("rb") as lines:
                for number, line in enumerate(lines, start=1):
                    self._append(rows, row_type, name, number, line)
        except OSError as exc:
            self._report(name, "whole file", f"it cannot be read ({exc.strerror}).")
        return tuple(rows)

    def _append(
        self, rows: list[AnyRow], row_type: type[AnyRow], name: str, number: int, line: bytes
    ) -> None:
        try:
            rows.append(decode_row(row_type, line.decode()))
        except UnicodeDecodeError:
            self._report(name, f"line {number}", "the line is not UTF-8.")
        except FormatError as exc:
            self._report(name, f"line {number}", f"{exc}.")

    def _report(self, name: str, where: str, sentence: str) -> None:
        self.violations.append(Violation(law=FORMAT_LAW, file=name, where=where, sentence=sentence))
