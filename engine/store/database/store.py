"""The Django store: every query off the event loop, every write on one thread.

A lost connection and a lock are waited out (see `session`), by sending the same work again: what a
commit whose answer was lost had done is told by its number (see `writing`).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeVar

from django.db import DataError, IntegrityError

from cohorts.audit import is_recorded, record_outside_changes
from engine.core.errors import RowRefused, Unanswered
from engine.store.database import reading
from engine.store.database.beat import Pulse
from engine.store.database.bookings import Booking, Bookings, Reserve, book
from engine.store.database.lease import boot_seconds
from engine.store.database.loading import load
from engine.store.database.mail import read_mail
from engine.store.database.promises import Promises
from engine.store.database.session import TROUBLE, Courtesy, Patience
from engine.store.database.texts import read_texts
from engine.store.database.threads import DatabaseThread
from engine.store.database.together import Together
from engine.store.database.topology import load_gate
from engine.store.database.writing import Writer

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.core.effects import CallRecord, Effect, TurnRecord
    from engine.core.gate import Gate
    from engine.core.group import Group
    from engine.core.money import Caps, NoMoney
    from engine.core.records import Talk
    from engine.ports.store import Beat, Loaded, StoredMessage, Texts, ToldTalk, Wanted

Result = TypeVar("Result")

#: The topology is recorded and read at most this often before it is taken as it is.
GATE_ROUNDS = 5
#: A row that no statement can hold: text that is no text, a number beyond the column.
UNFIT = (IntegrityError, DataError, UnicodeError, OverflowError)


class DjangoStore:
    """One simulation's rows, driven by one run that holds the lease `token`."""

    def __init__(
        self,
        *,
        simulation_id: int,
        run_id: int,
        token: int,
        policy: str,
        lease_seconds: float = 30.0,
        renew_seconds: float = 5.0,
        taken_at: float | None = None,
        patience_seconds: float = 300.0,
        max_calls_in_flight: int | None = None,
    ) -> None:
        """`taken_at`, in seconds since boot, is before the lease began; None is now."""
        self._simulation = simulation_id
        self._policy = policy
        self._writer = Writer(simulation=simulation_id, run=run_id, token=token)
        self._promises = Promises(
            simulation=simulation_id, run=run_id, token=token, max_in_flight=max_calls_in_flight
        )
        self._pulse = Pulse(
            simulation=simulation_id,
            run=run_id,
            token=token,
            lease_seconds=lease_seconds,
            renew_seconds=renew_seconds,
            taken_at=boot_seconds() if taken_at is None else taken_at,
        )
        self._patience = Patience(patience_seconds)
        self._courtesy = Courtesy()
        self._write_thread = DatabaseThread("store-writer")
        # One for each kind of reading: texts come in the order of asking, on which a turn's calls
        # depend, and never wait for a world or a topology.
        self._text_thread = DatabaseThread("store-texts")
        self._world_thread = DatabaseThread("store-world")
        self._texts: Together[Wanted, Texts] = Together(self._read_texts)
        self._bookings = Bookings(self._book)

    @property
    def is_trusted(self) -> bool:
        return self._pulse.is_trusted

    async def load(self) -> Loaded:
        return await self._read_world(partial(load, self._simulation, self._policy))

    async def load_gate(self) -> Gate:
        """Read the topology; what moved it from outside the application is recorded first.

        A change that comes between the two is recorded too, so that no version is adopted that
        the audit does not know; under a storm of changes the newest one read is taken.
        """
        for _ in range(GATE_ROUNDS):
            await self._write_thread.do(partial(self._patience.until_known, record_outside_changes))
            gate = await self._read_world(partial(load_gate, self._simulation, self._policy))
            if await self._read_world(partial(is_recorded, gate.version)):
                break
        return gate

    async def commit(self, group: Group) -> None:
        await self._write_thread.do(partial(self._commit, group))

    async def reserve(self, call: CallRecord, *, turn: TurnRecord, caps: Caps) -> NoMoney | None:
        assert call.reserved_on is not None
        self._pulse.day = call.reserved_on
        return await self._bookings.reserve(Reserve(call=call, turn=turn, caps=caps))

    def settle(self, call: CallRecord) -> None:
        self._bookings.settle(call)

    async def read_mail(self) -> tuple[Effect, ...]:
        return await self._read_world(partial(read_mail, self._simulation))

    async def read(self, wanted: Wanted) -> Texts:
        return await self._texts.ask(wanted)

    async def search(
        self, words: tuple[str, ...], *, channels: tuple[int, ...], most: int
    ) -> tuple[StoredMessage, ...]:
        work = partial(reading.search, self._simulation, words, channels=channels, most=most)
        return await self._read(work)

    async def told_talks(self, talks: tuple[Talk, ...], *, agent: int) -> tuple[ToldTalk, ...]:
        return await self._read(partial(reading.told_talks, self._simulation, talks, agent=agent))

    def beat(self) -> Beat:
        try:
            return self._pulse.beat()
        except TROUBLE as exc:
            raise Unanswered(str(exc).strip()) from exc

    def abandon(self) -> None:
        """Wait for the database no more: what is on its way raises `Unanswered`; on the loop."""
        self._patience.end()
        for thread in self._threads:
            thread.abandon()

    def close(self) -> None:
        """End the threads, each after what it has begun, and close their connections.

        Nobody waits for a reading any more: one that fails now is not tried again.
        """
        self._patience.end()
        for thread in self._threads:
            thread.close()

    @property
    def _threads(self) -> tuple[DatabaseThread, ...]:
        return self._write_thread, self._text_thread, self._world_thread

    async def _read_texts(self, asked: tuple[Wanted, ...]) -> dict[Wanted, Texts]:
        return await self._read(partial(read_texts, self._simulation, asked))

    async def _read(self, work: Callable[[], Result]) -> Result:
        return await self._text_thread.do(partial(self._patience.until_known, work))

    async def _read_world(self, work: Callable[[], Result]) -> Result:
        return await self._world_thread.do(partial(self._patience.until_known, work))

    async def _book(self, bookings: tuple[Booking, ...]) -> list[NoMoney | None]:
        return await self._write_thread.do(
            partial(self._patience.until_known, partial(self._book_now, bookings))
        )

    def _book_now(self, bookings: tuple[Booking, ...]) -> list[NoMoney | None]:
        self._courtesy.wait()
        answers = book(self._promises, bookings)
        self._pulse.schedule = self._promises.schedule
        return answers

    def _commit(self, group: Group) -> None:
        try:
            self._patience.until_known(partial(self._write, group))
        except UNFIT as exc:
            raise RowRefused(str(exc)) from exc

    def _write(self, group: Group) -> None:
        self._courtesy.wait()
        self._writer.write(group)
