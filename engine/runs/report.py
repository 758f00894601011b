"""What a run came to, in the few lines that a terminal shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.core.prices import NANO, in_usd
from engine.export.summary import summarise
from engine.models import LlmCall, Run

if TYPE_CHECKING:
    from collections.abc import Mapping


def report(run_id: int) -> str:
    """Return how a run ended, why, and what it made, in two lines; in a third what it cost."""
    run = Run.objects.select_related("simulation").get(pk=run_id)
    summary: Mapping[str, Any] = summarise(run_id)
    sentence = f" {run.detail}" if run.detail else ""
    threads = ", ".join(f"{n} {kind}" for kind, n in summary["threads"].items() if n)
    return (
        f"Run {run.pk} of {run.simulation.name} is {run.status} ({run.end_reason}).{sentence}\n"
        f"{summary['turns']} turns, {summary['messages']} messages, "
        f"threads: {threads or 'none'}, {summary['proposals']} proposals.{_spent(run, summary)}"
    )


def _spent(run: Run, summary: Mapping[str, Any]) -> str:
    """Return what a run was billed, in a line of its own; nothing where all was free."""
    paid = LlmCall.objects.filter(run=run, reserved_on__isnull=False)
    if not paid.exists():
        return ""
    n_unpriced = paid.filter(cost_nano_usd__isnull=True).count()
    unpriced = (
        f"; {n_unpriced} calls are unpriced, nobody knows what they cost" if n_unpriced else ""
    )
    return f"\nSpent: {in_usd(round(summary['cost_usd'] * NANO))}{unpriced}."
