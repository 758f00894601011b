"""What a run came to, in the few lines that a terminal shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.export.summary import summarise
from engine.models import Run

if TYPE_CHECKING:
    from collections.abc import Mapping


def report(run_id: int) -> str:
    """Return how a run ended, why, and what it made, in two lines."""
    run = Run.objects.select_related("simulation").get(pk=run_id)
    summary: Mapping[str, Any] = summarise(run_id)
    sentence = f" {run.detail}" if run.detail else ""
    threads = ", ".join(f"{n} {kind}" for kind, n in summary["threads"].items() if n)
    return (
        f"Run {run.pk} of {run.simulation.name} is {run.status} ({run.end_reason}).{sentence}\n"
        f"{summary['turns']} turns, {summary['messages']} messages, "
        f"threads: {threads or 'none'}, {summary['proposals']} proposals."
    )
