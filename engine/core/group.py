"""A group of effects, prepared: every row that one transaction will store."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from engine.core.effects import CallRecord, TurnRecord
    from engine.core.gate import Gate
    from engine.core.records import (
        AgentState,
        Invitation,
        Memory,
        Outcome,
        Thread,
        Visibility,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMessage:
    """An agent's message. `root` None makes it a root; `turn` wrote it."""

    seq: int
    channel: int
    visibility: Visibility
    root: int | None
    ordinal: int
    author: int
    text: str
    answers_ordinal: int | None
    committed_at: datetime
    turn: int
    addressed: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenIn:
    """A person's stored message `message_id` gets its place."""

    message_id: int
    seq: int
    root: int | None
    ordinal: int
    committed_at: datetime
    addressed: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A cycle's conclusion: one per (thread, cycle), never changed.

    `thread` is the thread as this cycle closed it: a later row of the same group may already show
    the next cycle.
    """

    thread: Thread
    outcome: Outcome
    seq: int
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class NewProposal:
    """A confirmed summary: the message `summary_seq`; `agents` are both, the proposer first."""

    root: int
    cycle: int
    agents: tuple[int, int]
    summary_seq: int
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedRevision:
    """A person asked to revise a proposal and its thread could not be reopened."""

    root: int
    cycle: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMemory:
    """A new version of a memory segment; stored only if `memory.version - 1` is the newest."""

    memory: Memory
    text: str


@dataclass(slots=True, kw_only=True)
class Group:
    """Rows of one commit, each table in the order in which it is to be written.

    `topology_version` is set when the group starts an interaction: the store reads the version
    last and refuses the group when it is another.
    """

    number: int
    at: datetime
    messages: list[NewMessage] = field(default_factory=list)
    taken_in: list[TakenIn] = field(default_factory=list)
    threads: list[Thread] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    proposals: list[NewProposal] = field(default_factory=list)
    refused_revisions: list[RefusedRevision] = field(default_factory=list)
    invitations: list[Invitation] = field(default_factory=list)
    memories: list[NewMemory] = field(default_factory=list)
    subscriptions: list[tuple[int, int]] = field(default_factory=list)
    states: list[tuple[int, AgentState]] = field(default_factory=list)
    turns: list[TurnRecord] = field(default_factory=list)
    calls: list[CallRecord] = field(default_factory=list)
    notes: list[int] = field(default_factory=list)
    adopted: Gate | None = None
    topology_version: int | None = None
