"""Figures of a run that no row holds: waits beside their bound, and how full the slots were."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from engine.core.scheduler import Grant


@dataclass(slots=True, kw_only=True)
class Figures:
    """Counts since the run began.

    The longest wait stands beside the bound of that very wait: with N agents eligible at some
    moment of it and S slots, ⌈N/S⌉ turns of the longest length. Utilisation is the time in which
    slots were busy over the time in which they could have been.
    """

    n_slots: int
    max_turn_seconds: float
    n_turns: int = 0
    n_empty_turns: int = 0
    longest_wait_seconds: float = 0.0
    wait_bound_seconds: float = 0.0
    n_busy: int = 0
    _busy_seconds: float = 0.0
    _wanted_seconds: float = 0.0
    _wanted: int = 0
    _sampled_at: datetime | None = None

    def granted(self, grant: Grant) -> None:
        """Count a selection and keep the longest wait."""
        self.n_turns += 1
        if grant.waited_seconds >= self.longest_wait_seconds:
            self.longest_wait_seconds = grant.waited_seconds
            rounds = ceil(grant.n_rivals / self.n_slots)
            self.wait_bound_seconds = rounds * self.max_turn_seconds

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
            "longest_wait_seconds": round(self.longest_wait_seconds, 6),
            "wait_bound_seconds": self.wait_bound_seconds,
            "slot_utilisation": self.slot_utilisation,
            "empty_turns": self.n_empty_turns,
        }
