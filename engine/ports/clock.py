"""The clock port: the only source of time below the composition root."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from datetime import datetime


class Clock(Protocol):
    """Time as the engine sees it: it may be virtual, and it never goes back."""

    def now(self) -> datetime:
        """Return the time now, aware and in UTC, never earlier than an answer before."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait until `seconds` of this clock's time have passed; let others run if not above 0."""
        ...

    def hold(self) -> AbstractContextManager[None]:
        """Keep time still inside, if this clock can, for a wait on something outside of it."""
        ...
