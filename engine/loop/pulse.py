"""The pulse: one thread with its own connection that looks at the database twice a second."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from engine.ports.store import Beat

log = logging.getLogger(__name__)


class Pulse:
    """Calls `beat` on its thread and `heard` on the loop with what it read; a context manager.

    There is no other poller. A beat that fails is told once and tried again: whether the lease
    is lost meanwhile is the store's to say.
    """

    def __init__(
        self,
        beat: Callable[[], Beat],
        heard: Callable[[Beat], None],
        *,
        seconds: float,
        close: Callable[[], None] = lambda: None,
    ) -> None:
        self._beat = beat
        self._heard = heard
        self._seconds = seconds
        self._close = close
        self._loop = asyncio.get_running_loop()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pulse", daemon=True)
        self._is_failing = False

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            while not self._over.wait(self._seconds):
                self._once()
        finally:
            self._close()

    def _once(self) -> None:
        try:
            beat = self._beat()
        except Exception:
            # Whatever it is, the next beat may work, and the pulse must outlive it.
            if not self._is_failing:
                log.exception("The pulse could not read the database; it goes on trying.")
            self._is_failing = True
            return
        self._is_failing = False
        self._loop.call_soon_threadsafe(self._heard, beat)
