"""What a driver shows of itself with its lease, for pages that look at a live run.

It is a picture and no record: written with the pulse, at most so often, and gone with the run. A page
that reads it needs one row, however long the run is.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from django.db import OperationalError, connection, transaction

from engine.models import RunLease

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.loop.engine import Engine

#: A driver shows itself no more often.
SHOWN_EVERY_SECONDS: Final = 1.0
#: Who holds a lock for longer is not waited for, in milliseconds.
LOCKED_FOR_MS: Final = 20

log = logging.getLogger(__name__)


def picture_of(engine: Engine) -> dict[str, Any]:
    """Return what an engine does now; to be called on its loop.

    None of it is what a run keeps at its end: a picture must not pass for that when its driver dies.
    """
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
    }


def show(run_id: int, *, token: int, picture: dict[str, Any]) -> None:
    """Write a picture beside the lease, if that is still ours and not given back.

    Whoever has locked the row, or the file, is not waited for: the pulse has more to do, and the next
    picture comes in a second.
    """
    try:
        with _without_waiting(), transaction.atomic():
            if connection.vendor == "postgresql":
                with connection.cursor() as cursor:
                    cursor.execute(f"SET LOCAL lock_timeout = {LOCKED_FOR_MS}")
            RunLease.objects.filter(run=run_id, token=token).exclude(owner="").update(
                counters=picture
            )
    except OperationalError as error:
        log.debug("A picture was not written: %s", error)


@contextmanager
def _without_waiting() -> Iterator[None]:
    """Let SQLite refuse at once where another process writes, and wait again afterwards."""
    if connection.vendor != "sqlite":
        yield
        return
    usual = round(1000 * connection.settings_dict["OPTIONS"].get("timeout", 5))
    with connection.cursor() as cursor:
        cursor.execute(f"PRAGMA busy_timeout = {LOCKED_FOR_MS}")
        try:
            yield
        finally:
            cursor.execute(f"PRAGMA busy_timeout = {usual}")
