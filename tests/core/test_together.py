"""Questions that are asked at the same moment are answered by one reading."""

from __future__ import annotations

import asyncio

import pytest

from engine.store.database.together import Together

#: So many turns of the loop a reading takes: others ask meanwhile.
MOMENTS = 5


class Library:
    """Answers with the double, after some moments; fails for 13."""

    def __init__(self) -> None:
        self.readings: list[tuple[int, ...]] = []

    async def read(self, asked: tuple[int, ...]) -> dict[int, int]:
        self.readings.append(asked)
        for _ in range(MOMENTS):
            await asyncio.sleep(0)
        if 13 in asked:
            raise LookupError("not 13")
        return {one: 2 * one for one in asked}


def test_what_waits_at_the_same_moment_is_read_at_once() -> None:
    async def body() -> list[int]:
        together = Together(library.read)
        first = [asyncio.ensure_future(together.ask(one)) for one in (1, 2, 1)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        later = [asyncio.ensure_future(together.ask(one)) for one in (3, 4)]
        return await asyncio.gather(*first, *later)

    library = Library()
    assert asyncio.run(body()) == [2, 4, 2, 6, 8]
    assert library.readings == [(1, 2), (3, 4)]


def test_what_a_reading_raises_all_its_askers_get_and_nobody_else() -> None:
    async def body() -> list[int | BaseException]:
        together = Together(library.read)
        asked = [asyncio.ensure_future(together.ask(one)) for one in (13, 1)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        meanwhile = asyncio.ensure_future(together.ask(2))
        found = await asyncio.gather(*asked, meanwhile, return_exceptions=True)
        return [*found, await together.ask(3)]

    library = Library()
    *failed, meanwhile, later = asyncio.run(body())
    assert [type(one) for one in failed] == [LookupError, LookupError]
    assert (meanwhile, later) == (4, 6)
    assert library.readings == [(13, 1), (2,), (3,)]


def test_whoever_stops_waiting_takes_nobody_along() -> None:
    async def body() -> int:
        together = Together(library.read)
        leaving = asyncio.ensure_future(together.ask(1))
        staying = asyncio.ensure_future(together.ask(2))
        await asyncio.sleep(0)
        leaving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leaving
        return await staying

    library = Library()
    assert asyncio.run(body()) == 4
    assert library.readings == [(1, 2)]
