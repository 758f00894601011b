"""The in-memory store: the same contract as the database, without one.

It really awaits, so that whatever may happen between taking a group and its commit does happen in
a test; `before_commit` is where a test holds a commit back, changes something under it or fails it.
"""

from __future__ import annotations

import asyncio
from itertools import islice
from typing import TYPE_CHECKING

from engine.ports.store import (
    SEARCHED,
    Beat,
    Loaded,
    StoredMessage,
    Texts,
    ToldTalk,
    Wanted,
)
from engine.store.memory import booking
from engine.store.memory.loading import loaded, mail
from engine.store.memory.writing import write

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from datetime import date

    from engine.core.effects import CallRecord, Effect, TurnRecord
    from engine.core.gate import Gate
    from engine.core.group import Group
    from engine.core.money import Caps, NoMoney
    from engine.core.records import Talk
    from engine.store.memory.tables import Tables


class MemoryStore:
    """Drives the tables of one simulation; whoever makes a store takes the lease.

    `is_trusted` is for a test to set: no clock ends the lease of a store in memory.
    """

    def __init__(
        self,
        tables: Tables,
        *,
        before_commit: Callable[[Group], Awaitable[None]] | None = None,
    ) -> None:
        self.is_trusted = True
        tables.token += 1
        self._token = tables.token
        self._tables = tables
        self._before_commit = before_commit
        self._day: date | None = None

    async def load(self) -> Loaded:
        await asyncio.sleep(0)
        return loaded(self._tables)

    async def load_gate(self) -> Gate:
        await asyncio.sleep(0)
        return self._tables.gate

    async def commit(self, group: Group) -> None:
        await asyncio.sleep(0)
        if self._before_commit is not None:
            await self._before_commit(group)
        write(self._tables, group, token=self._token)
        await asyncio.sleep(0)

    async def reserve(self, call: CallRecord, *, turn: TurnRecord, caps: Caps) -> NoMoney | None:
        await asyncio.sleep(0)
        refusal = booking.reserve(self._tables, call, turn, caps, token=self._token)
        self._day = call.reserved_on
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            booking.release(self._tables, call, token=self._token)
            raise
        return refusal

    def settle(self, call: CallRecord) -> None:
        booking.settle(self._tables, call, token=self._token)

    async def read_mail(self) -> tuple[Effect, ...]:
        await asyncio.sleep(0)
        return tuple(mail(self._tables))

    async def read(self, wanted: Wanted) -> Texts:
        await asyncio.sleep(0)
        rows = self._tables.messages
        own = self._tables.written.get(wanted.agent, []) if wanted.n_recent else []
        return Texts(
            histories={
                root: self._history(root, upto=upto, newest=wanted.newest)
                for root, upto in wanted.histories
            },
            messages=tuple(
                rows[seq].message for seq in sorted(set(wanted.messages)) if seq in rows
            ),
            memories={segment: self._memory(wanted.agent, segment) for segment in wanted.memories},
            recent=tuple(rows[seq].message.text for seq in own[-wanted.n_recent :]),
        )

    async def search(
        self, words: tuple[str, ...], *, channels: tuple[int, ...], most: int
    ) -> tuple[StoredMessage, ...]:
        await asyncio.sleep(0)
        newest = sorted(self._tables.messages.items(), reverse=True)
        found = (
            row.message
            for seq, row in newest
            if seq > newest[0][0] - SEARCHED
            and row.message.channel in channels
            and all(word.lower() in row.message.text.lower() for word in words)
        )
        return tuple(islice(found, most))

    async def told_talks(self, talks: tuple[Talk, ...], *, agent: int) -> tuple[ToldTalk, ...]:
        await asyncio.sleep(0)
        return tuple(self._told(talk, agent) for talk in talks)

    def beat(self) -> Beat:
        tables = self._tables
        return Beat(
            ours=tables.token == self._token,
            wish=tables.wish,
            topology_version=tables.gate.version,
            has_mail=bool(tables.inbox or tables.waiting),
            max_nano_usd=tables.max_nano_usd,
            max_calls=tables.max_calls,
            day=None if self._day is None else tables.purses.day_money(self._day),
            month=None
            if self._day is None
            else tables.purses.month_money(tables.schedule, self._day),
        )

    def _memory(self, agent: int, channel: int | None) -> str:
        memory = self._tables.memories.get((agent, channel))
        if memory is None:
            return ""
        return self._tables.memory_texts[agent, channel, memory.version]

    def _history(self, root: int, *, upto: int, newest: int) -> tuple[StoredMessage, ...]:
        places = self._tables.places
        ordinals = (1, *range(max(2, upto - newest + 1), upto + 1))
        seqs = (places.get((root, ordinal)) for ordinal in ordinals)
        return tuple(self._tables.messages[seq].message for seq in seqs if seq is not None)

    def _told(self, talk: Talk, agent: int) -> ToldTalk:
        """Tell a conclusion: the thread's messages up to the one it closed on."""
        decisions = self._tables.decisions
        decision = next(
            row
            for (root, _), row in decisions.items()
            if root == talk.root and row.seq == talk.closed_seq
        )
        height = self._tables.heights[talk.root]
        whole = self._history(talk.root, upto=height, newest=height)
        return ToldTalk(
            root=talk.root,
            partner=decision.thread.other(agent),
            outcome=decision.outcome.value,
            history=tuple(message for message in whole if message.seq <= talk.closed_seq),
        )
