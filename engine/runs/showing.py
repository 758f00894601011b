"""What a driver shows of itself with its lease, for pages that look at a live run.

It is a picture and no record: written with the pulse, at most so often, and gone with the run. A page
that reads it needs one row, however long the run is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from engine.models import RunLease

if TYPE_CHECKING:
    from engine.loop.engine import Engine

#: A driver shows itself no more often.
SHOWN_EVERY_SECONDS: Final = 1.0


def picture_of(engine: Engine) -> dict[str, Any]:
    """Return what an engine does now; to be called on its loop."""
    budget, figures, tally = engine.rules.budget, engine.figures, engine.tally
    return {
        "at": engine.clock.now().isoformat(),
        "turns": figures.n_turns,
        "messages": tally.n_messages,
        "calls": budget.n_calls,
        "calls_in_flight": budget.n_open,
        "spent_nano_usd": budget.spent_nano_usd,
        "open_threads": len(engine.world.threads),
        "ended_threads": dict(tally.threads),
        "kept_back": tally.n_gate_filtered,
        "failures_in_row": engine.line.n_failures_in_row,
        "ready": engine.scheduler.n_ready,
        "slots": [
            {
                "agent": doing.agent,
                "turn": number,
                "since": doing.since.isoformat(),
                "phase": doing.phase,
                "thread": doing.thread,
            }
            for number, doing in sorted(engine.line.doing.items())
        ],
        **figures.as_counters(),
    }


def show(run_id: int, *, token: int, picture: dict[str, Any]) -> None:
    """Write a picture beside the lease, if that is still ours and not given back."""
    held = RunLease.objects.filter(run=run_id, token=token).exclude(owner="")
    held.update(counters=picture)
