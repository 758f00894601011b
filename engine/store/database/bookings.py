"""Reservations and settlements that come at the same moment go into one transaction, in order.

There is no timer: what waits is taken as soon as the thread is free.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, assert_never

from django.db import transaction

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from engine.core.effects import CallRecord, TurnRecord
    from engine.core.money import Caps, NoMoney
    from engine.store.database.promises import Promises


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserve:
    """A call that wants to leave."""

    call: CallRecord
    turn: TurnRecord
    caps: Caps


@dataclass(frozen=True, slots=True, kw_only=True)
class Settle:
    """A call that is over."""

    call: CallRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A call that was reserved and never left."""

    call: CallRecord


Booking = Reserve | Settle | Release


def book(promises: Promises, bookings: tuple[Booking, ...]) -> list[NoMoney | None]:
    """Carry bookings out in one transaction, the fence first; return what each was answered."""
    with transaction.atomic():
        promises.pass_fence()
        return [_book(promises, booking) for booking in bookings]


def _book(promises: Promises, booking: Booking) -> NoMoney | None:
    match booking:
        case Reserve():
            return promises.reserve(booking.call, booking.turn, booking.caps)
        case Settle():
            promises.settle(booking.call)
        case Release():
            promises.release(booking.call)
        case _:
            assert_never(booking)
    return None


@dataclass(slots=True, eq=False)
class _Entry:
    booking: Booking
    answer: asyncio.Future[NoMoney | None] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )


class Bookings:
    """The bookings of one driver; `work` carries out what waits, off the loop, one lot at a time."""

    def __init__(
        self, work: Callable[[tuple[Booking, ...]], Awaitable[list[NoMoney | None]]]
    ) -> None:
        self._work = work
        self._waiting: list[_Entry] = []
        self._working: asyncio.Task[None] | None = None

    async def reserve(self, booking: Reserve) -> NoMoney | None:
        """Return the answer to a reservation; a cancelled one is withdrawn, or released."""
        entry = self._enter(booking)
        try:
            return await asyncio.shield(entry.answer)
        except asyncio.CancelledError:
            if entry in self._waiting:
                self._waiting.remove(entry)
            else:
                self._enter(Release(call=booking.call))
            raise

    def settle(self, call: CallRecord) -> None:
        """Settle a call after everything that was asked before."""
        self._enter(Settle(call=call))

    def _enter(self, booking: Booking) -> _Entry:
        entry = _Entry(booking)
        self._waiting.append(entry)
        if self._working is None:
            self._working = asyncio.create_task(self._work_all(), name="bookings")
        return entry

    async def _work_all(self) -> None:
        try:
            while self._waiting:
                entries, self._waiting = self._waiting, []
                await self._work_off(entries)
        finally:
            self._working = None

    async def _work_off(self, entries: list[_Entry]) -> None:
        try:
            answers = await self._work(tuple(entry.booking for entry in entries))
        except BaseException as error:
            for entry in entries:
                entry.answer.set_exception(error)
                entry.answer.exception()  # a settlement has no asker
            if not isinstance(error, Exception):
                raise
            return
        for entry, answer in zip(entries, answers, strict=True):
            entry.answer.set_result(answer)
