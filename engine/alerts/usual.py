"""How long a run usually takes, and when another length is worth a word."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Final

from engine.models import Run

if TYPE_CHECKING:
    from collections.abc import Sequence

#: The usual time is the middle one of the last completed runs of the same kind.
COMPARED: Final = 20
COMPARED_AT_LEAST: Final = 3
SLOW_TIMES: Final = 2
#: Below these nobody minds, however much it is in proportion.
SLOW_AT_LEAST_SECONDS: Final = 300.0
QUICK_PART: Final = 1 / 10
QUICK_FROM_SECONDS: Final = 60.0


def usual_seconds(run: Run) -> float:
    """Return how long earlier runs of this simulation with the same model took; 0 if unknown."""
    earlier = Run.objects.filter(
        simulation=run.simulation_id,
        pk__lt=run.pk,
        status=Run.Status.COMPLETED,
        started_at__isnull=False,
        finished_at__isnull=False,
        configuration__llm=run.configuration.get("llm"),
    )
    times = earlier.order_by("-pk").values_list("started_at", "finished_at")[:COMPARED]
    return middle([(ended - began).total_seconds() for began, ended in times if began and ended])


def middle(seconds: Sequence[float]) -> float:
    """Return the median of enough lengths, else 0."""
    return median(seconds) if len(seconds) >= COMPARED_AT_LEAST else 0.0


def is_slow(took: float, usual: float) -> bool:
    return usual > 0 and took > SLOW_TIMES * usual and took >= SLOW_AT_LEAST_SECONDS


def is_quick(took: float, usual: float) -> bool:
    return usual >= QUICK_FROM_SECONDS and took < QUICK_PART * usual
