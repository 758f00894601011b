"""Counts of what a run has stored, for whoever watches it; the rows are the record."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.core.group import Group


@dataclass(slots=True)
class Tally:
    """`calls` by phase, `threads` closed by outcome, `rejected` effects by reason."""

    n_messages: int = 0
    n_gate_filtered: int = 0
    calls: Counter[str] = field(default_factory=Counter)
    threads: Counter[str] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)

    def add(self, group: Group) -> None:
        """Count a group that was stored; a turn counts once, at its end."""
        self.n_messages += len(group.messages)
        self.calls.update(call.phase for call in group.calls)
        self.threads.update(str(decision.outcome) for decision in group.decisions)
        for turn in group.turns:
            if turn.finished_at is not None:
                self.n_gate_filtered += turn.n_gate_filtered
                self.rejected.update(dict(turn.rejected))
