"""The pulse: what it reads is heard on the loop, and a beat that fails is not its last."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import TYPE_CHECKING

from engine.core.errors import Unanswered
from engine.core.logged import logged_about, what_is_logged_about
from engine.loop import pulse
from engine.loop.pulse import Pulse
from engine.ports.store import Beat, Wish

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

READ = Beat(ours=True, wish=Wish.RUN, topology_version=3, has_mail=False)


def failing(n_times: int, error: Exception) -> Callable[[], Beat]:
    errors = [error] * n_times

    def beat() -> Beat:
        if errors:
            raise errors.pop()
        return READ

    return beat


async def test_pulse_reads_on_its_thread_and_is_heard_on_the_loop() -> None:
    heard: asyncio.Queue[tuple[Beat, int]] = asyncio.Queue()
    readers: list[str] = []

    def beat() -> Beat:
        readers.append(threading.current_thread().name)
        return READ

    def hear(read: Beat) -> None:
        heard.put_nowait((read, threading.get_ident()))

    with Pulse(beat, hear, seconds=0.001):
        assert await heard.get() == (READ, threading.get_ident())
        assert await heard.get() == (READ, threading.get_ident())
    assert set(readers) == {"pulse"}


async def test_pulse_logs_about_what_its_maker_is_about() -> None:
    about: asyncio.Queue[object] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def beat() -> Beat:
        loop.call_soon_threadsafe(about.put_nowait, what_is_logged_about())
        return READ

    with logged_about(run=7), Pulse(beat, lambda _: None, seconds=3600):
        assert await about.get() == {"run": 7}


async def test_first_beat_comes_at_once() -> None:
    heard: asyncio.Queue[Beat] = asyncio.Queue()
    with Pulse(lambda: READ, heard.put_nowait, seconds=3600):
        assert await heard.get() == READ


async def test_pulse_outlives_failing_beats_and_tells_of_the_first(
    caplog: pytest.LogCaptureFixture,
) -> None:
    heard: asyncio.Queue[Beat] = asyncio.Queue()
    beat = failing(3, OSError("no database"))
    with caplog.at_level(logging.ERROR), Pulse(beat, heard.put_nowait, seconds=0.001):
        assert await heard.get() == READ
    told = [record.message for record in caplog.records]
    assert told == ["The pulse could not read the database; it goes on trying."]


async def test_database_that_does_not_answer_is_told_of_in_one_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    heard: asyncio.Queue[Beat] = asyncio.Queue()
    beat = failing(3, Unanswered("connection refused"))
    with caplog.at_level(logging.WARNING), Pulse(beat, heard.put_nowait, seconds=0.001):
        assert await heard.get() == READ
    (told,) = caplog.records
    assert told.message == (
        "The database does not answer the pulse, which goes on: connection refused"
    )
    assert told.exc_info is None


async def test_silence_of_a_beat_that_hangs_is_counted_and_it_is_left_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pulse, "LAST_BEAT_SECONDS", 0.001)
    answered = threading.Event()
    silent: asyncio.Queue[float] = asyncio.Queue()
    heard: list[Beat] = []

    def beat() -> Beat:
        answered.wait(60)
        return READ

    with Pulse(beat, heard.append, seconds=0.01, silent=silent.put_nowait) as beating:
        assert [await silent.get() for _ in range(3)] == [0.02, 0.03, 0.04]
    assert beating._beating.is_alive()
    answered.set()
    beating._beating.join()
    assert len(heard) <= 1


async def test_silence_ends_with_a_beat() -> None:
    heard: asyncio.Queue[int] = asyncio.Queue()
    with Pulse(lambda: READ, lambda _: heard.put_nowait(beating._n_looks), seconds=0.01) as beating:
        await heard.get()
        beating._n_looks = 10**6
        while await heard.get() >= 10**6:
            pass  # it was read before
