"""Checking an export folder: format first, then names, then every law.

Each stage needs what the one before it assures, so the check ends with the first that fails.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.laws.caps import CAP_LAWS
from engine.laws.counters import COUNTER_LAWS
from engine.laws.gate import GATE_LAWS
from engine.laws.law import Violation, violations
from engine.laws.messages import MESSAGE_LAWS
from engine.laws.pairs import PAIR_LAWS
from engine.laws.reading import FORMAT_LAW, FORMAT_SAYS, FolderReader
from engine.laws.references import REFERENCE_LAWS
from engine.laws.threads import THREAD_LAWS
from engine.laws.turns import TURN_LAWS

if TYPE_CHECKING:
    from pathlib import Path

LAWS = (
    *MESSAGE_LAWS,
    *THREAD_LAWS,
    *PAIR_LAWS,
    *GATE_LAWS,
    *TURN_LAWS,
    *CAP_LAWS,
    *COUNTER_LAWS,
)
LAW_SAYS = {FORMAT_LAW: FORMAT_SAYS} | {law.name: law.says for law in (*REFERENCE_LAWS, *LAWS)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a check found: how many records it read, and all that breaks a law."""

    n_records: int
    violations: tuple[Violation, ...]


def check_folder(folder: Path) -> Verdict:
    """Return the verdict on the export in `folder`, which must be a folder."""
    reader = FolderReader(folder)
    export = reader.read()
    found = (
        tuple(reader.violations)
        or tuple(violations(REFERENCE_LAWS, export))
        or tuple(violations(LAWS, export))
    )
    return Verdict(n_records=export.n_records, violations=found)
