"""The LLM port: a typed request in, a typed decision and its usage out.

A context holds everything a model is shown in one phase, and nothing else; a backend may read
no other source. Texts written by people or other agents are data, never instructions.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from datetime import datetime

    from engine.core.usage import Usage


class LlmPhase(StrEnum):
    """The phases that may ask a model; also the keys of the `llm_calls` counters."""

    REMEMBER = "remember"
    SCAN = "scan"
    PRUNE = "prune"
    REPLY = "reply"
    POST = "post"


class Tier(StrEnum):
    """Which of an agent's two models is asked: small for sorting, large for writing."""

    SMALL = "small"
    LARGE = "large"


@dataclass(frozen=True, slots=True, kw_only=True)
class Persona:
    """The agent that is asked: who it speaks for and what only it may read."""

    slug: str
    bot_name: str
    represents: str
    public_profile: str
    private_instructions: str
    house_rules: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What every agent may read about another one."""

    slug: str
    bot_name: str
    represents: str
    public_profile: str


class Entry(NamedTuple):
    """One message as it is shown: `author` is a bot name or a person's name."""

    seq: int
    channel: str
    author: str
    is_bot: bool
    text: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanContext:
    """New top-level posts, oldest first; which deserve an answer?"""

    persona: Persona
    memory: str
    posts: tuple[Entry, ...]
    authors: tuple[Profile, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PruneContext:
    """A bank over its bound; which `n_keep` of the posts stay?"""

    persona: Persona
    posts: tuple[Entry, ...]
    n_keep: int


class Stage(StrEnum):
    """What a message of this number in its cycle is for."""

    EXPLORE = "explore"
    DECIDE = "decide"
    CONCLUDE = "conclude"


class Move(StrEnum):
    """What a reply does to its thread."""

    CONTINUE = "continue"
    PROPOSE = "propose"
    ACCEPT = "accept"
    DECLINE = "decline"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyContext:
    """An open thread in which the agent owes an answer.

    `history` is oldest first and always holds the root; `n_left_out` messages after the root are
    not in it. `message_number` counts the agents' messages of this cycle, this answer included; `summary` is the other side's proposal that
    waits for a yes or no; `partner` is None while only a person is opposite; `moves` are the
    allowed ones.
    """

    persona: Persona
    memory: str
    partner: Profile | None
    history: tuple[Entry, ...]
    message_number: int
    stage: Stage
    moves: tuple[Move, ...]
    summary: Entry | None
    guidance: str
    n_left_out: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelInfo:
    """A channel the agent may post in."""

    name: str
    topic: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BankedPost:
    """A post that the agent kept; `author` is None when a person wrote it."""

    entry: Entry
    author: Profile | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PostContext:
    """A chance to post: answer a banked post, write a new root (tagged or not), or skip.

    `may_start_root` is false when daily posts or unreviewed proposals are used up: then only
    the bank is on offer. `recent` are the agent's own last texts, newest last.
    """

    persona: Persona
    memory: str
    channels: tuple[ChannelInfo, ...]
    bank: tuple[BankedPost, ...]
    partners: tuple[Profile, ...]
    recent: tuple[str, ...]
    may_start_root: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedTalk:
    """A finished thread to remember; `history` is oldest first."""

    partner: str
    outcome: str
    history: tuple[Entry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RememberContext:
    """The memory as it stands and the talks it does not know yet, oldest first."""

    persona: Persona
    memory: str
    talks: tuple[ClosedTalk, ...]


Context = ScanContext | PruneContext | ReplyContext | PostContext | RememberContext


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """Answer to a scan or prune: the chosen posts' `seq`, all of them offered."""

    seqs: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """Answer to a reply: its move and the text to post."""

    move: Move
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerPost:
    """Answer to a chance to post: answer the banked post `seq`."""

    seq: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRoot:
    """Answer to a chance to post: a new root; `tag` is an offered partner's slug."""

    channel: str
    text: str
    tag: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SkipPost:
    """Answer to a chance to post: let it pass."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """Answer to remember: the whole new memory, under 300 words."""

    text: str


Decision = Chosen | Written | AnswerPost | NewRoot | SkipPost | Remembered


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadProfile:
    """A look-up: what every agent may read about one, by its name."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchMessages:
    """A look-up: the newest messages that hold all the words."""

    words: str


LookUp = ReadProfile | SearchMessages


@dataclass(frozen=True, slots=True, kw_only=True)
class LookUps:
    """No decision yet: what the model wants to look up first, all at once.

    A wish that is none of ours is None. `said` is the answer as its backend must send it back.
    """

    wanted: tuple[LookUp | None, ...]
    said: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Hits:
    """What a search found, the newest last; `is_cut` says that there is more."""

    entries: tuple[Entry, ...]
    is_cut: bool


#: What a look-up came to; None: it cannot be had, which is not to say that there is nothing.
Found = Profile | Hits | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One round of look-ups: `found` is in the order of what was wanted."""

    asked: LookUps
    found: tuple[Found, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmRequest:
    """One call. `turn` is the selection's number, `thread` the root's `seq` or None.

    `model` names the model of the tier; `rounds` are the look-ups until now, after which another
    one is only answered if it `may_look_up`. `is_short` asks for half of all texts, since the whole
    prompt was not taken.
    """

    agent: str
    turn: int
    phase: LlmPhase
    tier: Tier
    thread: int | None
    attempt: int
    context: Context
    model: str = ""
    rounds: tuple[Round, ...] = ()
    may_look_up: bool = False
    is_short: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmAnswer:
    """A validated decision, or what to look up before there is one, and what it cost.

    `said` is the answer as it came, as JSON, for a recording; empty where nothing is to be recorded.
    """

    decision: Decision | LookUps
    usage: Usage
    model: str
    prompt_version: str
    finish_reason: str
    said: str = ""


class Llm(Protocol):
    """A model. `complete` raises only the `LlmError` tree and `CancelledError`."""

    #: True when a call costs nothing: no money is reserved for it.
    free: bool

    def upper_estimate(self, request: LlmRequest) -> int | None:
        """Return the most this call can cost, in nano-USD: 0 if free, None if nobody knows."""
        ...

    async def complete(self, request: LlmRequest) -> LlmAnswer:
        """Answer with a decision of the context's kind, or with look-ups where they are allowed."""
        ...
