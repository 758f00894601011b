"""The rows of one simulation in dictionaries, with the rules that a database would keep.

`Tables` outlives the stores that drive it, as a database outlives a driver. Every change goes
through an `Undo`, so that a refused group leaves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, TypeVar

from engine.core.records import (
    AgentSpec,
    AgentState,
    Channel,
    Invitation,
    Memory,
    Thread,
    Visibility,
)
from engine.ports.store import StoredMessage, Wish
from engine.store.memory.purses import Purses

if TYPE_CHECKING:
    from datetime import datetime

    from engine.core.effects import CallRecord, TurnRecord, Verdict
    from engine.core.gate import Gate
    from engine.core.group import Decision, NewProposal

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageRow:
    """A message that has its place; `addressed` is the first agent it names."""

    message: StoredMessage
    addressed: int | None
    answers_ordinal: int | None = None
    turn: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A person's message that has no `seq` yet."""

    channel: int
    root: int | None
    person: str
    text: str
    written_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalRow:
    """A proposal and its review; `verdict` None while it waits for a person."""

    proposal: NewProposal
    verdict: Verdict | None = None
    reviewed_by: str = ""
    reviewed_at: datetime | None = None
    note: str = ""
    refused: str = ""


class NoteKind(StrEnum):
    """What a note in the inbox is about."""

    AGENT = "agent"
    CHANNEL = "channel"
    MEMORY = "memory"
    REVIEW = "review"


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A row that somebody else changed; `key` names it (its meaning goes by `kind`)."""

    kind: NoteKind
    key: tuple[int, int | None]


class Undo:
    """What has to be done to take the changes of a refused group back."""

    def __init__(self) -> None:
        self._steps: list[Callable[[], object]] = []

    def put(self, table: dict[K, V], key: K, value: V) -> None:
        """Set a row and remember what stood there."""
        if key in table:
            self._steps.append(_setter(table, key, table[key]))
        else:
            self._steps.append(lambda: table.pop(key))
        table[key] = value

    def drop(self, table: dict[K, V], key: K) -> None:
        """Delete a row, if it is there, and remember it."""
        if key in table:
            self._steps.append(_setter(table, key, table.pop(key)))

    def append(self, rows: list[V], value: V) -> None:
        """Add a row to the end of an index."""
        rows.append(value)
        self._steps.append(rows.pop)

    def take_back(self) -> None:
        """Restore what stood before, newest change first."""
        while self._steps:
            self._steps.pop()()


def _setter(table: dict[K, V], key: K, value: V) -> Callable[[], None]:
    return lambda: table.__setitem__(key, value)


@dataclass(slots=True, kw_only=True)
class Tables:
    """One simulation. `token` and `commit_no` are its lease; `gate` its topology as it is now.

    `purses` may be shared with other simulations, whose `run` has then another number; `schedule` asked for it; `reserved`
    are the keys of calls that left and are not settled.

    Indexes beside the rows: `places` (root, ordinal) → seq, `heights` root → last ordinal,
    `answerers` root → agents that answered, in order, `written` agent → its messages,
    `open_pairs` pair → root of the one open thread.
    """

    agents: dict[int, AgentSpec]
    channels: dict[int, Channel]
    gate: Gate
    purses: Purses = field(default_factory=Purses)
    run: int = 1
    schedule: int | None = None
    token: int = 0
    commit_no: int = 0
    next_id: int = 1
    wrote_at: datetime | None = None
    wish: Wish = Wish.RUN
    max_nano_usd: int | None = None
    max_calls: int | None = None

    messages: dict[int, MessageRow] = field(default_factory=dict)
    waiting: dict[int, Waiting] = field(default_factory=dict)
    threads: dict[int, Thread] = field(default_factory=dict)
    decisions: dict[tuple[int, int], Decision] = field(default_factory=dict)
    proposals: dict[tuple[int, int], ProposalRow] = field(default_factory=dict)
    invitations: dict[tuple[int, int], Invitation] = field(default_factory=dict)
    memories: dict[tuple[int, int | None], Memory] = field(default_factory=dict)
    memory_texts: dict[tuple[int, int | None, int], str] = field(default_factory=dict)
    subscriptions: dict[tuple[int, int], None] = field(default_factory=dict)
    states: dict[int, AgentState] = field(default_factory=dict)
    turns: dict[int, TurnRecord] = field(default_factory=dict)
    calls: dict[tuple[int, int], CallRecord] = field(default_factory=dict)
    reserved: dict[tuple[int, int], None] = field(default_factory=dict)
    snapshots: dict[int, Gate] = field(default_factory=dict)
    inbox: dict[int, Note] = field(default_factory=dict)

    places: dict[tuple[int, int], int] = field(default_factory=dict)
    heights: dict[int, int] = field(default_factory=dict)
    answerers: dict[int, tuple[int, ...]] = field(default_factory=dict)
    written: dict[int, list[int]] = field(default_factory=dict)
    open_pairs: dict[tuple[int, int], int] = field(default_factory=dict)

    def new_id(self) -> int:
        """Return the next key for a waiting message or a note."""
        self.next_id += 1
        return self.next_id - 1

    def segment(self, channel: int) -> int | None:
        """Return the memory segment of a channel: None for the public one."""
        private = self.channels[channel].visibility is Visibility.PRIVATE
        return channel if private else None
