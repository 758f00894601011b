"""Figures of a run that no row holds: how full the slots were."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime


@dataclass(slots=True, kw_only=True)
class Figures:
    """Counts since this driver took the run.

    Utilisation is the time in which slots were busy over the time in which they could have been.
    """

    n_slots: int
    n_turns: int = 0
    n_empty_turns: int = 0
    n_busy: int = 0
    _busy_seconds: float = 0.0
    _wanted_seconds: float = 0.0
    _wanted: int = 0
    _sampled_at: datetime | None = None

    def granted(self) -> None:
        """Count a selection."""
        self.n_turns += 1

    def sample(self, now: datetime, *, n_busy: int, n_ready: int) -> None:
        """Note how many slots are busy and how many agents wait, from `now` on."""
        if self._sampled_at is not None:
            seconds = (now - self._sampled_at).total_seconds()
            self._busy_seconds += seconds * self.n_busy
            self._wanted_seconds += seconds * self._wanted
        self._sampled_at = now
        self.n_busy = n_busy
        self._wanted = min(self.n_slots, n_busy + n_ready)

    @property
    def slot_utilisation(self) -> float | None:
        """Busy over wanted slot time, 0 to 1; None while no slot was wanted for any time."""
        return self._busy_seconds / self._wanted_seconds if self._wanted_seconds else None

    def as_counters(self) -> dict[str, float | int | None]:
        """Return what the page and the run's summary show of them."""
        return {
            "slot_utilisation": self.slot_utilisation,
            "empty_turns": self.n_empty_turns,
        }
