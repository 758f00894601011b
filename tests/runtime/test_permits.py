"""Permits for calls in flight: bounded, in turn order, and none lost by a cancelled wait."""

from __future__ import annotations

import asyncio

from engine.turn.permits import Permits


async def _call(permits: Permits, turn: int, log: list[int], gate: asyncio.Event) -> None:
    async with permits.hold(turn):
        log.append(turn)
        await gate.wait()


async def _let_run() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_permits_go_to_the_earliest_turn_that_waits() -> None:
    permits, log = Permits(1), list[int]()
    gates = {turn: asyncio.Event() for turn in (1, 9, 4, 7)}
    tasks = []
    for turn, gate in gates.items():
        tasks.append(asyncio.create_task(_call(permits, turn, log, gate)))
        await _let_run()
    for turn in (1, 4, 7, 9):
        gates[turn].set()
        await _let_run()
    await asyncio.gather(*tasks)
    assert log == [1, 4, 7, 9]


async def test_permits_are_never_more_than_their_number() -> None:
    permits, log = Permits(2), list[int]()
    gate = asyncio.Event()
    tasks = [asyncio.create_task(_call(permits, turn, log, gate)) for turn in range(5)]
    await _let_run()
    assert log == [0, 1]
    gate.set()
    await asyncio.gather(*tasks)
    assert sorted(log) == [0, 1, 2, 3, 4]


async def test_permit_of_a_cancelled_wait_goes_to_the_next() -> None:
    permits, log = Permits(1), list[int]()
    gate = asyncio.Event()
    first = asyncio.create_task(_call(permits, 1, log, gate))
    await _let_run()
    second = asyncio.create_task(_call(permits, 2, log, gate))
    third = asyncio.create_task(_call(permits, 3, log, gate))
    await _let_run()
    gate.set()
    await asyncio.sleep(0)
    second.cancel()  # at the moment it is served
    await asyncio.gather(first, second, third, return_exceptions=True)
    assert log in ([1, 3], [1, 2, 3])
    async with permits.hold(4):
        log.append(4)
    assert log[-1] == 4
