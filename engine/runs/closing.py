"""The last write of a run: tried for a while, on a thread that the process can leave behind."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from engine.core.errors import Unanswered
from engine.store.database import DatabaseWorker, Patience

if TYPE_CHECKING:
    from collections.abc import Callable

Result = TypeVar("Result")

#: Who waits for the database looks this often, in seconds, whether it should go on.
LOOK_SECONDS = 0.1


def insist(work: Callable[[], Result], *, seconds: Callable[[], float]) -> Result:
    """Do the work again and again while its failure may pass; return its result.

    A database that hangs is waited for no longer than one that refuses. `seconds` is asked at
    every look, since a signal shortens the wait. Raises `Unanswered` when it is over.
    """
    patience = Patience(seconds())
    worker = DatabaseWorker("run-end")
    answer = worker.submit(patience.until_known, work)
    worker.shutdown(wait=False)
    n_looks = 0
    while n_looks == 0 or n_looks * LOOK_SECONDS < seconds():
        with suppress(TimeoutError):
            return answer.result(LOOK_SECONDS)
        n_looks += 1
    patience.end()
    raise Unanswered("The database did not answer.")
