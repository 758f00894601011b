"""Questions that wait at the same moment are answered together.

The turns of a moment ask for the same kinds of text: one query for all of them costs little more
than one for each alone. There is no timer: what is there is read as soon as the thread is free.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Generic, TypeVar

Question = TypeVar("Question")
Found = TypeVar("Found")


class Together(Generic[Question, Found]):
    """Asks `read`, off the loop, for what was asked since the last time; one reading at a time."""

    def __init__(
        self, read: Callable[[tuple[Question, ...]], Awaitable[Mapping[Question, Found]]]
    ) -> None:
        self._read = read
        self._waiting: list[tuple[Question, asyncio.Future[Found]]] = []
        self._reading: asyncio.Task[None] | None = None

    async def ask(self, question: Question) -> Found:
        """Return the answer to one question; what reading raises, each of its askers gets."""
        answer: asyncio.Future[Found] = asyncio.get_running_loop().create_future()
        self._waiting.append((question, answer))
        if self._reading is None:
            self._reading = asyncio.create_task(self._read_all())
        return await answer

    async def _read_all(self) -> None:
        try:
            while self._waiting:
                asked, self._waiting = self._waiting, []
                await self._answer(asked)
        finally:
            self._reading = None

    async def _answer(self, asked: list[tuple[Question, asyncio.Future[Found]]]) -> None:
        try:
            found = await self._read(tuple(dict.fromkeys(question for question, _ in asked)))
        except BaseException as error:
            for _, answer in asked:
                if not answer.done():
                    answer.set_exception(error)
                    answer.exception()
            if not isinstance(error, Exception):
                raise
            return
        for question, answer in asked:
            if not answer.done():
                answer.set_result(found[question])
