"""What is asked of the commit door, and its answers.

A turn, the pulse and the loop hand in effects; only the committer changes the world. An answer
is a value: `Committed` or `Rejected(reason)`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import date, datetime

    from engine.core.gate import Gate
    from engine.core.recording import CallText
    from engine.core.records import AgentSpec, Channel, Outcome, Root, Thread


class MoveKind(StrEnum):
    """What a reply does to its thread."""

    CONTINUE = "continue"
    PROPOSE = "propose"
    ACCEPT = "accept"
    DECLINE = "decline"


# --- effects of a turn -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """A new root by `agent`. `tag` is the agent it addresses.

    `refers_to` is the message of a person that called the agent into a thread of two others; such
    a root is exempt from the caps, since a person asked for it.
    """

    agent: int
    channel: int
    text: str
    tag: int | None = None
    refers_to: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A message by `agent` under `root`, composed on a view that ended at `answers_ordinal`.

    It opens the thread when the agent has no side in it yet.
    """

    agent: int
    root: int
    text: str
    answers_ordinal: int
    move: MoveKind = MoveKind.CONTINUE


@dataclass(frozen=True, slots=True, kw_only=True)
class Close:
    """The system ends a cycle: nobody may or will say the next word."""

    root: int
    cycle: int
    outcome: Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Miss:
    """The model's answer to a debt could not be used; the second in a row closes as lost."""

    agent: int
    root: int
    cycle: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """The agent subscribes to channels."""

    agent: int
    channels: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dealt:
    """An invitation that is settled without an answer."""

    message: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeNotice:
    """What one look changed for its agent alone: cursor, bank and invitations at once.

    `cursor` None leaves it; `keep` are roots added to the bank, `drop` those taken out.
    """

    agent: int
    cursor: int | None = None
    keep: tuple[int, ...] = ()
    drop: tuple[int, ...] = ()
    dealt: tuple[Dealt, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PostChance:
    """The agent was consulted about posting, which uses the chance up whatever it said.

    `used` is whether it asked for a message; a skip or a rejected draft stretches the interval.
    The last effect of its hand-in: whether the draft was stored is judged there.
    """

    agent: int
    used: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Remember:
    """A new text of a memory segment that knows all talks up to `upto_seq`, `n_talks` of them new.

    Rejected (`changed_meanwhile`) if `base_version` is not the newest: a person edited it; or if
    one more talk has closed at `upto_seq` since.
    """

    agent: int
    channel: int | None
    text: str
    upto_seq: int
    n_talks: int
    base_version: int


# --- effects of the pulse: what people and other processes did -----------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeIn:
    """A message of a person, stored without `seq`, enters the simulation.

    `root` None is a new root. `known_root` and `known_thread` are the root and its newest cycle
    as stored, for a thread that the world no longer holds.
    """

    message_id: int
    channel: int
    root: int | None
    text: str
    written_at: datetime
    known_root: Root | None = None
    known_thread: Thread | None = None


class Verdict(StrEnum):
    """What a person decided about a proposal."""

    ACCEPTED = "accepted"
    DECLINED = "declined"
    REVISED = "revised"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reviewed:
    """A person reviewed the proposal of a thread's cycle; `revised` asks for a new cycle."""

    note: int
    root: int
    cycle: int
    verdict: Verdict
    guidance: str
    known_root: Root
    known_thread: Thread


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentChanged:
    """An agent's texts, limits or status changed, or it joined the roster.

    `spec` None: it left the simulation.
    """

    note: int | None
    agent: int
    spec: AgentSpec | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelChanged:
    """A channel was made or edited; None: it is gone again, and only the note is left."""

    note: int
    channel: Channel | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryChanged:
    """A person edited a memory segment."""

    note: int
    agent: int
    channel: int | None
    version: int
    upto_seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopt:
    """A new version of the topology comes into force."""

    gate: Gate


Effect = (
    Post
    | Reply
    | Close
    | Miss
    | Join
    | TakeNotice
    | PostChance
    | Remember
    | TakeIn
    | Reviewed
    | AgentChanged
    | ChannelChanged
    | MemoryChanged
    | Adopt
)


# --- records that travel with effects --------------------------------------------------------------


class TurnOutcome(StrEnum):
    """How a turn ended; `running` until then, `interrupted` if its driver died."""

    RUNNING = "running"
    WORKED = "worked"
    NOTHING = "nothing"
    SKIPPED = "skipped"
    BACKOFF = "backoff"
    FAILED = "failed"
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRecord:
    """A turn as stored; `number` is the selection's, counted through the simulation.

    Its wait stands beside the bound of that very wait. `n_committed` counts its messages and other
    stored effects, `rejected` pairs of reason and count sorted by reason.
    """

    number: int
    agent: int
    agent_version: int
    selected_at: datetime
    waited_seconds: float
    wait_bound_seconds: float
    finished_at: datetime | None = None
    outcome: TurnOutcome = TurnOutcome.RUNNING
    n_llm_calls: int = 0
    n_committed: int = 0
    n_gate_filtered: int = 0
    rejected: tuple[tuple[str, int], ...] = ()
    detail: str = ""


#: What the error of a call says that was given up,
CALL_CANCELLED = "cancelled"
#: and of one that its own driver did not settle.
CALL_DIED = "died in flight"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRecord:
    """One attempt of one LLM call. Money in nano-USD; `error` empty when it was answered.

    `number` counts the attempts of the turn: (run, turn, number) is its key. `reserved_on` is the
    day whose money it is paid with, None if it is free; the cost is None before it is settled,
    and for ever if the model has no price. `text` is None where nothing is to be recorded.
    """

    turn: int
    number: int
    agent: int
    agent_version: int
    house_rules_version: int = 0
    phase: str
    thread: int | None
    model: str
    prompt_version: str
    attempt: int
    started_at: datetime
    latency_seconds: float
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reserved_on: date | None = None
    reserved_nano_usd: int = 0
    cost_nano_usd: int | None = 0
    finish_reason: str = ""
    error: str = ""
    text: CallText | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HandIn:
    """What is handed in at one moment, in the order of the plan.

    `turn` is the turn as known so far (None from the pulse); `ends` says that nothing follows:
    the committer then completes the record. `refused` are reasons for drafts that were given up
    before they were handed in.
    """

    effects: tuple[Effect, ...] = ()
    turn: TurnRecord | None = None
    calls: tuple[CallRecord, ...] = ()
    refused: tuple[str, ...] = ()
    ends: TurnOutcome | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """The effect stands; `seq` is the message it made, if it made one."""

    seq: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """The effect was refused; `reason` is one counted word of docs/glossary.md."""

    reason: str


Result = Committed | Rejected


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The committer's answer to one hand-in: a result per effect, and the turn as it now is."""

    results: tuple[Result, ...] = ()
    turn: TurnRecord | None = None
