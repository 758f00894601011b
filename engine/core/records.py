"""The records a world is made of: frozen values, replaced whole, never changed in place.

Messages and threads are known by `seq`: the number that the driver gives a message when it
enters the simulation. A thread is known by the `seq` of its root. Agents and channels are known
by their number (the database's key). Times are aware UTC datetimes with microseconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import date, datetime


class Status(StrEnum):
    """May an agent take turns?"""

    ACTIVE = "active"
    PAUSED = "paused"
    RETIRED = "retired"


class Visibility(StrEnum):
    """Who reads a channel."""

    PUBLIC = "public"
    PRIVATE = "private"


class Outcome(StrEnum):
    """How a cycle of a thread ended."""

    PROPOSAL = "proposal"
    NO_PROPOSAL = "no_proposal"
    TIMEOUT = "timeout"
    LOST = "lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSpec:
    """An agent as its owner wrote it; `version` names the texts. Own limits are None if unset, own
    models empty."""

    id: int
    slug: str
    bot_name: str
    represents: str
    public_profile: str
    private_instructions: str
    interests: str
    status: Status
    version: int
    max_calls: int | None = None
    max_nano_usd: int | None = None
    daily_posts: int | None = None
    calls_per_window: int | None = None
    small_model: str = ""
    large_model: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentState:
    """What an agent carries from turn to turn, as stored.

    `last_selected` is the number of its last selection that was stored, `ended_at` when that
    turn ended. `cursor` is the `seq` up to which it has read; `bank` holds roots it kept, in
    the order kept. `posts_made` counts its public roots on the local day `posts_on`,
    `private_posts_made` those in private channels. `away` says that it was out when a run last
    looked: coming back, it starts at the newest `seq`.
    """

    last_selected: int = 0
    ended_at: datetime | None = None
    cursor: int = 0
    bank: tuple[int, ...] = ()
    posts_on: date | None = None
    posts_made: int = 0
    private_posts_made: int = 0
    next_post_at: datetime | None = None
    skip_streak: int = 0
    away: bool = False


class InvitationKind(StrEnum):
    """Why an agent is invited: a root names it, somebody answered its root, or a person named it
    in a thread of two others (it then answers by a root of its own)."""

    MENTION = "mention"
    ANSWER = "answer"
    REFERENCE = "reference"


class InvitationState(StrEnum):
    """`pending` until the agent has answered or it is settled that it will not."""

    PENDING = "pending"
    ANSWERED = "answered"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Invitation:
    """A message that asks for an agent; unique per (agent, message)."""

    agent: int
    message: int
    root: int
    kind: InvitationKind
    by_person: bool
    state: InvitationState = InvitationState.PENDING
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """A closed thread that its agent's memory does not know yet.

    `channel` is None for the public segment of the memory, else the private channel.
    """

    closed_seq: int
    root: int
    channel: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """What lies on an agent's desk, derived from the rows that name it.

    `threads`: roots of its open threads, ascending. `invitations`: pending ones by message.
    `unreviewed`: (root, cycle) of its proposals that wait for a person, ascending. `untold`: talks to
    remember, by closing.
    """

    threads: tuple[int, ...] = ()
    invitations: tuple[Invitation, ...] = ()
    unreviewed: tuple[tuple[int, int], ...] = ()
    untold: tuple[Talk, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Channel:
    """A channel; its members, when private, are part of the topology."""

    id: int
    name: str
    topic: str
    visibility: Visibility


@dataclass(frozen=True, slots=True, kw_only=True)
class Root:
    """A top-level message that somebody may still read, keep, answer or be called to.

    `author` is None for a person (or a bot that nobody can attribute: `is_bot`). `addressed` is
    the first agent it mentions, itself excluded. `answered_by` are the agents other than the
    author who answered, in order. `n_messages` is the last ordinal of its thread (1: alone).
    `closed` says that its thread has closed: only a person can open it again.
    """

    seq: int
    channel: int
    author: int | None
    is_bot: bool
    addressed: int | None
    at: datetime
    n_messages: int = 1
    answered_by: tuple[int, ...] = ()
    closed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One agent's side of an open thread.

    `viewed` is the ordinal up to which it had read at its last message, `called` the ordinal of
    the last person's message that calls it by name, `misses` its unusable answers in a row.
    """

    agent: int
    viewed: int = 0
    called: int = 0
    misses: int = 0


class ThreadState(StrEnum):
    """`proposed`: a summary by `summary_by` waits for the other side."""

    OPEN = "open"
    PROPOSED = "proposed"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Thread:
    """A thread in one of its cycles; the world holds the open ones.

    `opener` is the side whose answer opened it, `partner` the other; None while only a person is
    opposite. `n_agent_messages` counts agents' messages of this cycle (an agent's root among the
    first); `last_agent` spoke last of the agents, at `last_agent_ordinal`. `asked` is the ordinal
    of the last person's message that called nobody by name. `owed_since` is the time of the last
    message. `guidance` is what a reviewer asked for.
    """

    root: int
    channel: int
    opener: Side
    partner: Side | None
    cycle: int = 1
    state: ThreadState = ThreadState.OPEN
    outcome: Outcome | None = None
    n_agent_messages: int = 0
    last_agent: int | None = None
    last_agent_ordinal: int = 0
    asked: int = 0
    summary_by: int | None = None
    summary_seq: int | None = None
    opened_seq: int
    opened_at: datetime
    owed_since: datetime
    closed_seq: int | None = None
    closed_at: datetime | None = None
    topology_version: int
    grandfathered_at: datetime | None = None
    guidance: str = ""
    shared_cohorts: tuple[str, ...] = ()

    def side(self, agent: int) -> Side | None:
        """Return the agent's own side, or None if it has none."""
        if self.opener.agent == agent:
            return self.opener
        if self.partner is not None and self.partner.agent == agent:
            return self.partner
        return None

    def other(self, agent: int) -> int | None:
        """Return the agent opposite, or None while only a person is."""
        if self.opener.agent == agent:
            return None if self.partner is None else self.partner.agent
        return self.opener.agent

    @property
    def sides(self) -> tuple[Side, ...]:
        return (self.opener,) if self.partner is None else (self.opener, self.partner)

    @property
    def pair(self) -> tuple[int, int] | None:
        """The two agents, lower number first; None while there is only one."""
        return None if self.partner is None else pair_of(self.opener.agent, self.partner.agent)


def pair_of(one: int, other: int) -> tuple[int, int]:
    """Return the pair of two agents as its key."""
    return (one, other) if one < other else (other, one)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairHistory:
    """The last close between two agents, and how many in a row ended without a proposal."""

    closed_seq: int
    closed_at: datetime
    n_barren: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """The head of a memory segment: `channel` None is the public one. The text is in the store."""

    agent: int
    channel: int | None
    version: int = 0
    upto_seq: int = 0
