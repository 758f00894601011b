"""The tasks that django-q2 carries to its workers. Messages carry only an id."""

from __future__ import annotations

from engine import runs
from engine.runs.progress import Silence


def drive_run(run_id: int) -> str:
    """Drive a run to its end, in this worker; return what came of it in a few words.

    Harmless whenever and however often it is called: who holds the lease drives, and nobody else.
    SIGINT and SIGTERM of the worker stop the run as they do in a terminal. Raises `EndUnwritten`
    when the database does not answer until the end; the run is then picked up again.
    """
    with runs.Stops() as stops:
        begun = runs.pick_up(run_id)
        if begun is None:
            return "nothing to do"
        driven = runs.drive(begun, Silence(), stops)
    return str(driven.ending.reason)
