"""Keeps child processes running: starts again what died, and stops them all together.

Each child leads a process group of its own, so that Ctrl-C in a terminal reaches us alone, and so
that what a dead child leaves behind can be ended before the child is started again.
"""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

#: A child that lived for so long is started again at once when it dies; one that did not waits,
#: twice as long each time.
STEADY_SECONDS: Final = 60.0
FIRST_PAUSE_SECONDS: Final = 1.0
LONGEST_PAUSE_SECONDS: Final = 60.0
#: What is stopped has so long for it: turns in flight have their grace, and their last commit.
GRACE_SECONDS: Final = 90.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Child:
    """A command to be kept running, and the name by which people are told of it.

    `environment` is added to our own.
    """

    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)


def next_pause(pause_seconds: float, *, lived_seconds: float) -> float:
    """Return the pause before a start, given the pause before the last one and what came of it."""
    if lived_seconds >= STEADY_SECONDS:
        return FIRST_PAUSE_SECONDS
    return min(max(FIRST_PAUSE_SECONDS, 2 * pause_seconds), LONGEST_PAUSE_SECONDS)


def ended_in_words(code: int) -> str:
    """Return how a process ended, from its exit code or (below 0) the signal that killed it."""
    if code < 0:
        return f"was killed by {signal.Signals(-code).name}"
    return f"ended with exit code {code}"


class Keeper:
    """The children of one parent; a context of one running loop.

    `tether` is handed on to every child: the reading end of a pipe by which it learns that we are
    gone (see `simsite.tether`).
    """

    def __init__(self, *, tether: int, folder: Path, say: Callable[[str], object]) -> None:
        self._tether = tether
        self._folder = folder
        self._say = say
        self._stopping = asyncio.Event()
        self._groups: set[int] = set()

    async def keep(self, children: Sequence[Child]) -> None:
        """Keep the children running until they are stopped; none is left when this returns."""
        async with asyncio.TaskGroup() as group:
            for child in children:
                group.create_task(self._keep(child))

    def stop(self) -> None:
        """Stop every child gently and start none again; asked again, kill what is left."""
        if self._stopping.is_set():
            self._kill()
            return
        self._stopping.set()
        for group in self._groups:
            _signal(group, signal.SIGINT)
        asyncio.get_running_loop().call_later(GRACE_SECONDS, self._kill)

    def _kill(self) -> None:
        for group in self._groups:
            _signal(group, signal.SIGKILL)

    async def _keep(self, child: Child) -> None:
        """Run a child again and again, with a pause between."""
        clock = asyncio.get_running_loop().time
        pause_seconds = 0.0
        while not self._stopping.is_set():
            started_at = clock()
            code = await self._run(child)
            if self._stopping.is_set():
                return
            pause_seconds = next_pause(pause_seconds, lived_seconds=clock() - started_at)
            ended = ended_in_words(code)
            self._say(f"{child.name} {ended}; it is started again in {pause_seconds:g} s.")
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), pause_seconds)

    async def _run(self, child: Child) -> int:
        """Run a child to its end, and end what it left behind; return its exit code."""
        process = await asyncio.create_subprocess_exec(
            *child.command,
            cwd=self._folder,
            env=os.environ | child.environment,
            stdin=asyncio.subprocess.DEVNULL,
            pass_fds=(self._tether,),
            start_new_session=True,
        )
        self._groups.add(process.pid)
        self._say(f"{child.name} runs as process {process.pid}.")
        if self._stopping.is_set():  # while it was being started
            _signal(process.pid, signal.SIGINT)
        code = await process.wait()
        self._groups.discard(process.pid)
        _signal(process.pid, signal.SIGKILL)
        return code


def _signal(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, number)
