"""The pulse: what it reads is heard on the loop, and a beat that fails is not its last."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import TYPE_CHECKING

from engine.loop.pulse import Pulse
from engine.ports.store import Beat, Wish

if TYPE_CHECKING:
    import pytest

READ = Beat(ours=True, wish=Wish.RUN, topology_version=3, has_mail=False)


async def test_pulse_reads_on_its_thread_and_is_heard_on_the_loop() -> None:
    heard: asyncio.Queue[tuple[Beat, int]] = asyncio.Queue()
    readers: list[str] = []
    closed = threading.Event()

    def beat() -> Beat:
        readers.append(threading.current_thread().name)
        return READ

    def hear(read: Beat) -> None:
        heard.put_nowait((read, threading.get_ident()))

    with Pulse(beat, hear, seconds=0.001, close=closed.set):
        assert await heard.get() == (READ, threading.get_ident())
        assert await heard.get() == (READ, threading.get_ident())
        assert not closed.is_set()
    assert closed.is_set()
    assert set(readers) == {"pulse"}


async def test_pulse_outlives_failing_beats_and_tells_of_the_first(
    caplog: pytest.LogCaptureFixture,
) -> None:
    heard: asyncio.Queue[Beat] = asyncio.Queue()
    n_beats = 0

    def beat() -> Beat:
        nonlocal n_beats
        n_beats += 1
        if n_beats <= 3:
            raise OSError("no database")
        return READ

    with caplog.at_level(logging.ERROR), Pulse(beat, heard.put_nowait, seconds=0.001):
        assert await heard.get() == READ
    told = [record.message for record in caplog.records]
    assert told == ["The pulse could not read the database; it goes on trying."]
