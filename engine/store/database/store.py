"""The Django store: every query off the event loop, every write on one thread.

A lost connection and a lock are waited out here, by sending the same work again: what a commit
whose answer was lost had done is told by its number (see `writing`).
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from django.db import DataError, IntegrityError, connection

from cohorts.audit import is_recorded, record_outside_changes
from engine.core.errors import Fenced, RowRefused, StoreError
from engine.store.database import reading
from engine.store.database.beat import Pulse
from engine.store.database.loading import load
from engine.store.database.mail import read_mail
from engine.store.database.session import TROUBLE, Courtesy, passes, ready_connection
from engine.store.database.texts import read_texts
from engine.store.database.threads import DatabaseThreads
from engine.store.database.together import Together
from engine.store.database.topology import load_gate
from engine.store.database.writing import Writer

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.core.effects import Effect
    from engine.core.gate import Gate
    from engine.core.group import Group
    from engine.core.records import Talk
    from engine.ports.store import Beat, Loaded, Texts, ToldTalk, Wanted

Result = TypeVar("Result")

#: Seconds before work that met a passing failure is sent again; the last one repeats.
PAUSES = (0.02, 0.1, 0.5, 1.0)
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
    ) -> None:
        self._simulation = simulation_id
        self._policy = policy
        self._writer = Writer(simulation=simulation_id, run=run_id, token=token)
        self._pulse = Pulse(
            simulation=simulation_id,
            run=run_id,
            token=token,
            lease_seconds=lease_seconds,
            renew_seconds=renew_seconds,
        )
        self._courtesy = Courtesy()
        self._write_thread = DatabaseThreads(1, name="store-writer")
        # One for each kind of reading: texts come in the order of asking, on which a turn's calls
        # depend, and never wait for a world or a topology.
        self._text_thread = DatabaseThreads(1, name="store-texts")
        self._world_thread = DatabaseThreads(1, name="store-world")
        self._texts: Together[Wanted, Texts] = Together(self._read_texts)

    async def load(self) -> Loaded:
        return await self._read_world(partial(load, self._simulation, self._policy))

    async def load_gate(self) -> Gate:
        """Read the topology; what moved it from outside the application is recorded first.

        A change that comes between the two is recorded too, so that no version is adopted that
        the audit does not know; under a storm of changes the newest one read is taken.
        """
        for _ in range(GATE_ROUNDS):
            await self._write_thread.do(partial(self._until_known, record_outside_changes))
            gate = await self._read_world(partial(load_gate, self._simulation, self._policy))
            if await self._read_world(partial(is_recorded, gate.version)):
                break
        return gate

    async def commit(self, group: Group) -> None:
        await self._write_thread.do(partial(self._commit, group))

    async def read_mail(self) -> tuple[Effect, ...]:
        return await self._read_world(partial(read_mail, self._simulation))

    async def read(self, wanted: Wanted) -> Texts:
        return await self._texts.ask(wanted)

    async def told_talks(self, talks: tuple[Talk, ...], *, agent: int) -> tuple[ToldTalk, ...]:
        return await self._read(partial(reading.told_talks, self._simulation, talks, agent=agent))

    def beat(self) -> Beat:
        return self._pulse.beat()

    def close(self) -> None:
        """End the threads, each after what it has begun, and close their connections."""
        self._write_thread.close()
        self._text_thread.close()
        self._world_thread.close()

    async def _read_texts(self, asked: tuple[Wanted, ...]) -> dict[Wanted, Texts]:
        return await self._read(partial(read_texts, self._simulation, asked))

    async def _read(self, work: Callable[[], Result]) -> Result:
        return await self._text_thread.do(partial(self._until_known, work))

    async def _read_world(self, work: Callable[[], Result]) -> Result:
        return await self._world_thread.do(partial(self._until_known, work))

    def _commit(self, group: Group) -> None:
        try:
            self._until_known(partial(self._write, group))
        except UNFIT as exc:
            raise RowRefused(str(exc)) from exc

    def _write(self, group: Group) -> None:
        self._courtesy.wait()
        self._writer.write(group)

    def _until_known(self, work: Callable[[], Result]) -> Result:
        """Do the work on a good connection, again and again while the failure may pass."""
        n_failures = 0
        while True:
            try:
                ready_connection()
                return work()
            except TROUBLE as exc:
                if not passes(exc):
                    raise StoreError(str(exc)) from exc
                if self._pulse.is_lost:
                    raise Fenced("the database did not answer until the lease had ended") from exc
            connection.close()
            time.sleep(PAUSES[min(n_failures, len(PAUSES) - 1)])
            n_failures += 1
