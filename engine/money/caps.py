"""Caps that people raise: a run's, heard by its driver at its next beat, and the money of a day."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils import timezone

from engine.core.prices import in_usd
from engine.models import DayCap, Run, RunControl
from engine.models.runs import LIVE

if TYPE_CHECKING:
    from collections.abc import Iterator

#: The largest amount that a column holds.
MOST = 2**63 - 1


class NotRaised(Exception):
    """A cap that cannot be raised like this; the message is one sentence for the person."""


def day_cap() -> int | None:
    """Return the most that all runs together may spend in a day, in nano-USD; None is no limit."""
    return DayCap.objects.values_list("max_nano_usd", flat=True).first()


def set_day_cap(max_nano_usd: int | None, *, who: str) -> None:
    """Set the money of a day, from now on, for every process of every host."""
    DayCap.objects.update_or_create(
        pk=1, defaults={"max_nano_usd": max_nano_usd, "changed_by": who}
    )


def raise_caps(
    run: Run, *, max_nano_usd: int | None = None, max_calls: int | None = None, who: str
) -> None:
    """Raise caps of a run that is live; raises `NotRaised` for one that is over, or no raise.

    A run that goes on hears it at its next beat; a paused one goes on when it is resumed.
    """
    if run.status not in LIVE:
        raise NotRaised(f"Run {run.pk} is {run.status}: only a run that goes on can spend more.")
    control, _ = RunControl.objects.get_or_create(run=run)
    asked = {"max_nano_usd": max_nano_usd, "max_calls": max_calls}
    raised = {name: cap for name, cap in asked.items() if cap is not None}
    if not raised:
        raise NotRaised("Give a new cap of money or of calls.")
    for sentence in _too_low(run, control, raised):
        raise NotRaised(sentence)
    RunControl.objects.filter(pk=control.pk).update(**raised, asked_by=who, asked_at=timezone.now())


def _too_low(run: Run, control: RunControl, raised: dict[str, int]) -> Iterator[str]:
    """Yield a sentence for each cap that is none yet, or is not below the new one."""
    for name, cap in raised.items():
        old = getattr(control, name)
        old = run.configuration.get(name) if old is None else old
        shown = in_usd if name == "max_nano_usd" else str
        what = "money" if name == "max_nano_usd" else "calls"
        if old is None:
            yield f"Run {run.pk} has no cap of {what}: there is nothing to raise."
        elif not old < cap <= MOST:
            yield f"Its cap of {what} is {shown(old)}: give more than that."
