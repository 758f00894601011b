"""The clocks: real time never goes back, virtual time moves only when nothing else can."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.backends.clock import RealClock, VirtualClock, VirtualLoop

if TYPE_CHECKING:
    from collections.abc import Coroutine

START = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
Answer = TypeVar("Answer")


def run(coroutine: Coroutine[object, object, Answer]) -> Answer:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(coroutine)


def virtual_loop() -> VirtualLoop:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    return loop


def test_real_clock_is_aware_and_never_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter([100.0, 100.0, 101.5])
    monkeypatch.setattr("engine.backends.clock.time.monotonic", lambda: next(ticks))
    clock = RealClock()
    first = clock.now()
    assert first.tzinfo is UTC
    assert abs(first - datetime.now(UTC)) < timedelta(seconds=60)
    assert clock.now() - first == timedelta(seconds=1.5)


def test_real_clock_begins_where_time_has_come_to() -> None:
    """The last driver's clock may have been ahead of ours; one behind us is not followed."""
    ahead = datetime.now(UTC) + timedelta(minutes=20)
    assert timedelta(0) <= RealClock(ahead).now() - ahead < timedelta(seconds=60)
    behind = datetime.now(UTC) - timedelta(minutes=20)
    assert RealClock(behind).now() - behind >= timedelta(minutes=20)


def test_real_clock_sleeps_really() -> None:
    clock = RealClock()
    before = time.monotonic()
    asyncio.run(clock.sleep(0.02))
    assert time.monotonic() - before >= 0.02


def test_virtual_clock_stands_at_its_start_before_a_loop_runs() -> None:
    berlin = timezone(timedelta(hours=1))
    clock = VirtualClock(START.astimezone(berlin))
    assert clock.now() == START
    assert clock.now().tzinfo is UTC


def test_virtual_clock_passes_a_day_in_no_time() -> None:
    clock = VirtualClock(START)

    async def day() -> datetime:
        for _ in range(24):
            await clock.sleep(3600)
        return clock.now()

    before = time.monotonic()
    assert run(day()) == START + timedelta(days=1)
    assert time.monotonic() - before < 5
    assert clock.now() == START + timedelta(days=1)


def test_virtual_clock_sleeps_longer_than_a_select_may_last() -> None:
    clock = VirtualClock(START)

    async def month() -> datetime:
        await clock.sleep(30 * 86400)
        return clock.now()

    assert run(month()) == START + timedelta(days=30)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.floats(min_value=0, max_value=1e7), max_size=20))
def test_virtual_loop_wakes_sleepers_in_order_at_their_time(waits: list[float]) -> None:
    async def sleepers() -> list[tuple[float, float]]:
        woken: list[tuple[float, float]] = []

        async def sleeper(seconds: float) -> None:
            await asyncio.sleep(seconds)
            woken.append((seconds, asyncio.get_running_loop().time()))

        await asyncio.gather(*(sleeper(seconds) for seconds in waits))
        return woken

    woken = run(sleepers())
    assert [at for _, at in woken] == sorted(at for _, at in woken)
    assert sorted(seconds for seconds, _ in woken) == sorted(waits)
    assert all(abs(seconds - at) < 1e-6 for seconds, at in woken)


def test_virtual_loop_time_stands_still_while_tasks_can_go_on() -> None:
    async def busy() -> tuple[float, bool]:
        sleeper = asyncio.create_task(asyncio.sleep(0.001))
        for _ in range(1000):
            await asyncio.sleep(0)
        return asyncio.get_running_loop().time(), sleeper.cancel()

    assert run(busy()) == (0.0, True)


def test_virtual_loop_timeout_fires_virtually() -> None:
    async def impatient() -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(600):
                await asyncio.Event().wait()
        return asyncio.get_running_loop().time()

    assert run(impatient()) == 600.0


def test_virtual_loop_holds_time_for_a_job() -> None:
    async def commit() -> tuple[float, float]:
        loop = asyncio.get_running_loop()
        release = threading.Event()
        jobs = [loop.run_in_executor(None, release.wait)]
        with ThreadPoolExecutor(1) as pool:
            jobs.append(loop.run_in_executor(pool, release.wait))
            sleeper = asyncio.create_task(asyncio.sleep(5))
            threading.Timer(0.05, release.set).start()
            await asyncio.gather(*jobs)
        at_end_of_job = loop.time()
        await sleeper
        return at_end_of_job, loop.time()

    assert run(commit()) == (0.0, 5.0)


def test_virtual_loop_holds_time_for_a_job_nobody_awaits_any_more() -> None:
    async def cancelled() -> tuple[bool, float]:
        loop = asyncio.get_running_loop()
        release = threading.Event()
        ended = threading.Event()

        def job() -> None:
            release.wait()
            ended.set()

        answer = loop.run_in_executor(None, job)
        answer.cancel()
        threading.Timer(0.05, release.set).start()
        await asyncio.sleep(1)
        return ended.is_set(), loop.time()

    assert run(cancelled()) == (True, 1.0)


def test_virtual_loop_gives_a_job_s_error_and_goes_on() -> None:
    async def failing() -> float:
        loop = asyncio.get_running_loop()
        with pytest.raises(ZeroDivisionError):
            await loop.run_in_executor(None, lambda: 1 // 0)
        await asyncio.sleep(3)
        return loop.time()

    assert run(failing()) == 3.0


def test_virtual_loop_may_close_before_its_job_ends() -> None:
    loop = VirtualLoop()
    release = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        loop.run_in_executor(pool, release.wait)
        loop.close()
        release.set()
    assert loop.is_closed()


@pytest.mark.parametrize("held", [True, False])
def test_virtual_loop_hold_lets_outside_work_come_first(*, held: bool) -> None:
    async def first_to_come() -> str:
        loop = virtual_loop()
        news: asyncio.Queue[str] = asyncio.Queue()
        loop.call_later(60, news.put_nowait, "timer")
        if not held:
            return await news.get()
        threading.Timer(0.05, loop.call_soon_threadsafe, args=(news.put_nowait, "outside")).start()
        with loop.hold():
            return await news.get()

    assert run(first_to_come()) == ("outside" if held else "timer")


def test_virtual_loop_without_timers_is_woken_by_a_thread() -> None:
    async def waiting() -> float:
        loop = asyncio.get_running_loop()
        event = asyncio.Event()
        threading.Timer(0.02, loop.call_soon_threadsafe, args=(event.set,)).start()
        await event.wait()
        return loop.time()

    assert run(waiting()) == 0.0


def test_virtual_loop_signal_handler_works_while_blocked() -> None:
    async def until_signal() -> float:
        loop = virtual_loop()
        stop = asyncio.Event()
        loop.add_signal_handler(signal.SIGTERM, stop.set)
        threading.Timer(0.02, os.kill, args=(os.getpid(), signal.SIGTERM)).start()
        loop.call_later(60, stop.set)
        with loop.hold():
            await stop.wait()
        loop.remove_signal_handler(signal.SIGTERM)
        return loop.time()

    assert run(until_signal()) == 0.0


def test_virtual_loop_is_interrupted_by_ctrl_c_while_blocked() -> None:
    async def for_ever() -> None:
        threading.Timer(0.02, os.kill, args=(os.getpid(), signal.SIGINT)).start()
        await asyncio.Event().wait()

    with pytest.raises(KeyboardInterrupt):
        run(for_ever())
