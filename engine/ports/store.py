"""The store port: the database as the engine sees it, for one run of one simulation.

Reads are for views (texts that the world does not hold); `commit` is the only write. Every method
runs off the event loop, and no transaction lives across an await.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from engine.core.effects import CallRecord, Effect, TurnRecord
    from engine.core.gate import Gate
    from engine.core.group import Group
    from engine.core.money import Caps, DayMoney, MonthMoney, NoMoney
    from engine.core.records import (
        AgentSpec,
        AgentState,
        Channel,
        Invitation,
        Memory,
        PairHistory,
        Root,
        Talk,
        Thread,
    )


#: A search looks through so many of the newest messages of a simulation.
SEARCHED = 5_000


class StoredMessage(NamedTuple):
    """A message with its text; `author` None is a person, shown as `person`.

    A tuple, as `Entry` is: a turn makes dozens, and a frozen dataclass takes three times as long.
    """

    seq: int
    channel: int
    root: int | None
    ordinal: int
    author: int | None
    person: str
    is_bot: bool
    text: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """Everything a world is built from, read in one consistent snapshot.

    `roots` are those above the lowest cursor of an active agent, and all that a bank, a pending
    invitation or an open thread names. `threads` are the open ones. `unreviewed` are (agent,
    root, cycle) of pending proposals, `untold` (agent, talk) of what memories do not know yet.
    `wrote_at` is the latest time that the simulation has stamped. `calls` are (agent, time) of
    the LLM calls inside the last window, oldest first.
    """

    commit_no: int
    last_seq: int
    last_turn: int
    gate: Gate
    agents: tuple[AgentSpec, ...]
    channels: tuple[Channel, ...]
    states: tuple[tuple[int, AgentState], ...]
    subscriptions: tuple[tuple[int, int], ...]
    roots: tuple[Root, ...]
    threads: tuple[Thread, ...]
    invitations: tuple[Invitation, ...]
    pairs: tuple[tuple[tuple[int, int], PairHistory], ...]
    memories: tuple[Memory, ...]
    unreviewed: tuple[tuple[int, int, int], ...]
    untold: tuple[tuple[int, Talk], ...]
    wrote_at: datetime | None
    calls: tuple[tuple[int, datetime], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """All the texts that an agent's turn needs at one moment, named by what its view holds.

    `histories` are (root, ordinal) pairs: the root and the `newest` answers up to the ordinal.
    `messages` are asked for by `seq`, `memories` by segment (None: the public one). `n_recent` is
    how many of its own latest texts are wanted.
    """

    agent: int
    histories: tuple[tuple[int, int], ...] = ()
    newest: int = 0
    messages: tuple[int, ...] = ()
    memories: tuple[int | None, ...] = ()
    n_recent: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """What was wanted: histories by root, each by ordinal; the messages found, by `seq`; the newest
    text of each memory segment, empty if there is none; latest texts, the newest last."""

    histories: Mapping[int, tuple[StoredMessage, ...]]
    messages: tuple[StoredMessage, ...]
    memories: Mapping[int | None, str]
    recent: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldTalk:
    """A closed thread as a memory is told of it."""

    root: int
    partner: int | None
    outcome: str
    history: tuple[StoredMessage, ...]


class Wish(StrEnum):
    """What people ask of a live run."""

    RUN = "run"
    PAUSE = "pause"
    DRAIN = "drain"
    STOP = "stop"


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """What one round trip of the pulse read.

    `ours` is False when another token holds the lease. `has_mail` says that the inbox holds notes
    or a person's message waits for its `seq`. `day` is the money of the day of the last
    reservation, None before there was one; `month` is that of the schedule that asked for the run.
    """

    ours: bool
    wish: Wish
    topology_version: int
    has_mail: bool
    max_nano_usd: int | None = None
    max_calls: int | None = None
    day: DayMoney | None = None
    month: MonthMoney | None = None


class Store(Protocol):
    """One simulation's rows, driven by one run."""

    @property
    def is_trusted(self) -> bool:
        """Tell whether the lease is surely ours now: until 5/6 of it after its last renewal began.

        True again as soon as a beat has renewed it, which it does only under our own token.
        """
        ...

    async def load(self) -> Loaded:
        """Read the snapshot a world is built from."""
        ...

    async def load_gate(self) -> Gate:
        """Read the topology as it is now, version first."""
        ...

    async def commit(self, group: Group) -> None:
        """Store the group in one transaction, the fence first, the topology version last.

        Raises `Fenced`, `TopologyMoved` or `RowRefused`; then nothing was stored. A lost
        connection or a lock is waited out here: the same group with the same number is sent until
        its fate is known, or until patience ends (`Unanswered`).
        """
        ...

    async def reserve(self, call: CallRecord, *, turn: TurnRecord, caps: Caps) -> NoMoney | None:
        """Store a call as reserved, with its turn if that is not stored yet, before it leaves.

        Its estimate is promised under the caps of the run, the agent and the day, each compared by
        the statement that promises, and the calls of all runs on their way are counted; or the cap
        is returned that forbids it, and nothing is stored.
        Raises `Fenced` or `Unanswered`. If the waiter is cancelled nothing stays promised.
        """
        ...

    def settle(self, call: CallRecord) -> None:
        """Store, soon and in the order of asking, what a reserved call came to.

        Nobody waits for it: the commit that carries the call settles it if this could not.
        """
        ...

    async def read_mail(self) -> tuple[Effect, ...]:
        """Read what people and other processes left, oldest first, as effects."""
        ...

    async def read(self, wanted: Wanted) -> Texts:
        """Return the texts that a turn asks for at one moment; see `Wanted`."""
        ...

    async def search(
        self, words: tuple[str, ...], *, channels: tuple[int, ...], most: int
    ) -> tuple[StoredMessage, ...]:
        """Return the newest messages of these channels that hold all the words, newest first.

        Only the newest `SEARCHED` messages are looked through; case does not count in ASCII.
        """
        ...

    async def told_talks(self, talks: tuple[Talk, ...], *, agent: int) -> tuple[ToldTalk, ...]:
        """Return the closed threads of an agent with their texts, in the order given."""
        ...

    def beat(self) -> Beat:
        """One round trip, on the pulse's own thread and connection; renews the lease when due."""
        ...
