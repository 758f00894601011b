"""The pulse: one thread with its own connection that looks at the database twice a second."""

from __future__ import annotations

import asyncio
import logging
import threading
from contextlib import suppress
from contextvars import copy_context
from typing import TYPE_CHECKING, Self, TypeVar

from engine.core.errors import Unanswered

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from engine.ports.store import Beat

Told = TypeVar("Told")

log = logging.getLogger(__name__)

#: At the end a beat that is under way is waited for this long, in seconds.
LAST_BEAT_SECONDS = 1.0


class Pulse:
    """Calls `beat` on its thread and `heard` on the loop with what it read; a context manager.

    There is no other poller. A beat that fails is told once and tried again. While none comes
    through, `silent` is called on the loop with the seconds since the last one: counted in looks
    of a second thread, so that time in which the whole process was stopped is not held against
    the database.
    """

    def __init__(
        self,
        beat: Callable[[], Beat],
        heard: Callable[[Beat], None],
        *,
        seconds: float,
        silent: Callable[[float], None] = lambda _: None,
    ) -> None:
        self._beat = beat
        self._heard = heard
        self._silent = silent
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()
        self._over = threading.Event()
        self._beating = _thread("pulse", self._run)
        self._watching = _thread("pulse-watch", self._watch)
        self._is_failing = False
        self._n_looks = 0

    def __enter__(self) -> Self:
        self._beating.start()
        self._watching.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._watching.join()
        # A beat may hang with its database; it must not hold up the end of the process.
        self._beating.join(LAST_BEAT_SECONDS)

    def _run(self) -> None:
        """Beat at once, and then in every interval."""
        self._once()
        while not self._over.wait(self._seconds):
            self._once()

    def _once(self) -> None:
        try:
            beat = self._beat()
        except Unanswered as error:
            if not self._is_failing:
                log.warning("The database does not answer the pulse, which goes on: %s", error)
            self._is_failing = True
            return
        except Exception:
            # Whatever it is, the next beat may work, and the pulse must outlive it.
            if not self._is_failing:
                log.exception("The pulse could not read the database; it goes on trying.")
            self._is_failing = True
            return
        self._is_failing = False
        self._n_looks = 0
        self._tell(self._heard, beat)

    def _watch(self) -> None:
        while not self._over.wait(self._seconds):
            self._n_looks += 1
            if self._n_looks > 1:
                self._tell(self._silent, self._n_looks * self._seconds)

    def _tell(self, listener: Callable[[Told], None], what: Told) -> None:
        with suppress(RuntimeError):  # the loop may be closed before a beat that hung comes back
            self._loop.call_soon_threadsafe(listener, what)


def _thread(name: str, work: Callable[[], None]) -> threading.Thread:
    """Return a thread that ends with the process, and logs about what its maker is about."""
    return threading.Thread(target=copy_context().run, args=(work,), name=name, daemon=True)
