"""How full the slots of a run were, while enough agents were eligible to fill them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from engine.loop.figures import Figures


@dataclass(kw_only=True)
class Meter(Figures):
    """Figures that also keep the time in which slots could be full.

    `utilisation` is that up to the last grant: behind it slots run empty because the run ends.
    """

    utilisation: float = 0.0
    busy_seconds: float = 0.0
    slot_seconds: float = 0.0

    def granted(self) -> None:
        super().granted()
        self.utilisation = self.busy_seconds / self.slot_seconds if self.slot_seconds else 0.0

    def sample(self, now: datetime, *, n_busy: int, n_ready: int) -> None:
        if self._sampled_at is not None and self._wanted == self.n_slots:
            seconds = (now - self._sampled_at).total_seconds()
            self.busy_seconds += seconds * self.n_busy
            self.slot_seconds += seconds * self.n_slots
        super().sample(now, n_busy=n_busy, n_ready=n_ready)
