"""Stops by signal, heard from before a run's first write until its row says how it ended."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType, TracebackType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stops:
    """Counts what SIGINT and SIGTERM ask for while it is entered, and ends nothing by itself.

    Only a process's main thread may hear signals; entered in another one it hears none.
    """

    def __init__(self) -> None:
        self.n_asked = 0
        self._listener: Callable[[], object] | None = None
        self._before: dict[signal.Signals, signal.Handlers | Callable[..., object] | int | None]
        self._before = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._hear) for number in _SIGNALS}
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)

    @contextmanager
    def told_to(self, listener: Callable[[], object]) -> Iterator[None]:
        """Let a listener know of each stop from now on; it runs wherever the main thread is."""
        self._listener = listener
        try:
            yield
        finally:
            self._listener = None

    def _hear(self, _number: int, _frame: FrameType | None) -> None:
        self.n_asked += 1
        if self._listener is not None:
            self._listener()
