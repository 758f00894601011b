"""A store for rehearsals: reads a simulation as it is stored, and keeps to itself what follows.

A forecast plays the next run in memory; whatever that writes is there for its own readings, and
gone with it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from engine.ports.store import Beat, Texts, ToldTalk, Wanted, Wish
from engine.store.stored import stored

if TYPE_CHECKING:
    from engine.core.effects import CallRecord, Effect, TurnRecord
    from engine.core.gate import Gate
    from engine.core.group import Decision, Group, NewMessage
    from engine.core.money import Caps, NoMoney
    from engine.core.records import Talk
    from engine.ports.store import Loaded, Store, StoredMessage


class TrialStore:
    """One rehearsal from a snapshot on; `beneath` is only read, and never for what is new."""

    is_trusted = True

    def __init__(self, loaded: Loaded, beneath: Store) -> None:
        self._loaded = loaded
        self._beneath = beneath
        self._messages: dict[int, StoredMessage] = {}
        self._threads: defaultdict[int, list[StoredMessage]] = defaultdict(list)
        self._written: defaultdict[int, list[str]] = defaultdict(list)
        self._memories: dict[tuple[int, int | None], str] = {}
        self._decisions: dict[tuple[int, int], Decision] = {}

    async def load(self) -> Loaded:
        return self._loaded

    async def load_gate(self) -> Gate:
        return self._loaded.gate

    async def commit(self, group: Group) -> None:
        for new in group.messages:
            self._keep(new)
        for memory in group.memories:
            self._memories[memory.memory.agent, memory.memory.channel] = memory.text
        for decision in group.decisions:
            self._decisions[decision.thread.root, decision.seq] = decision

    async def reserve(self, call: CallRecord, *, turn: TurnRecord, caps: Caps) -> NoMoney | None:
        return None

    def settle(self, call: CallRecord) -> None:
        return None

    async def read_mail(self) -> tuple[Effect, ...]:
        return ()

    async def read(self, wanted: Wanted) -> Texts:
        old = await self._old(wanted)
        messages = {message.seq: message for message in old.messages} | {
            seq: self._messages[seq] for seq in wanted.messages if seq in self._messages
        }
        recent = (*old.recent, *self._written[wanted.agent])
        return Texts(
            histories={
                root: self._history(old.histories.get(root, ()), root, upto, wanted.newest)
                for root, upto in wanted.histories
            },
            messages=tuple(messages[seq] for seq in sorted(messages)),
            memories={
                segment: self._memories.get((wanted.agent, segment), old.memories[segment])
                for segment in wanted.memories
            },
            recent=recent[-wanted.n_recent :] if wanted.n_recent else (),
        )

    async def search(
        self, words: tuple[str, ...], *, channels: tuple[int, ...], most: int
    ) -> tuple[StoredMessage, ...]:
        return ()  # the offline LLM looks nothing up

    async def told_talks(self, talks: tuple[Talk, ...], *, agent: int) -> tuple[ToldTalk, ...]:
        return tuple([await self._told(talk, agent) for talk in talks])

    def beat(self) -> Beat:
        return Beat(
            ours=True,
            wish=Wish.RUN,
            topology_version=self._loaded.gate.version,
            has_mail=False,
        )

    def _keep(self, new: NewMessage) -> None:
        message = stored(new)
        self._messages[new.seq] = message
        self._threads[new.seq if new.root is None else new.root].append(message)
        self._written[new.author].append(new.text)

    async def _old(self, wanted: Wanted) -> Texts:
        """Return what the database has of it."""
        last = self._loaded.last_seq
        return await self._beneath.read(
            replace(
                wanted,
                histories=tuple(one for one in wanted.histories if one[0] <= last),
                messages=tuple(seq for seq in wanted.messages if seq <= last),
            )
        )

    def _history(
        self, old: tuple[StoredMessage, ...], root: int, upto: int, newest: int
    ) -> tuple[StoredMessage, ...]:
        """Return the root and the newest answers up to an ordinal."""
        whole = (*old, *(one for one in self._threads[root] if one.ordinal <= upto))
        first = tuple(one for one in whole if one.ordinal == 1)
        answers = tuple(one for one in whole if one.ordinal > 1 and upto - newest < one.ordinal)
        return (*first, *answers)

    async def _told(self, talk: Talk, agent: int) -> ToldTalk:
        decision = self._decisions.get((talk.root, talk.closed_seq))
        if decision is None:
            (told,) = await self._beneath.told_talks((talk,), agent=agent)
            return told
        upto = decision.thread.last_agent_ordinal
        wanted = Wanted(agent=agent, histories=((talk.root, upto),), newest=upto)
        history = (await self.read(wanted)).histories[talk.root]
        return ToldTalk(
            root=talk.root,
            partner=decision.thread.other(agent),
            outcome=decision.outcome.value,
            history=tuple(one for one in history if one.seq <= talk.closed_seq),
        )
