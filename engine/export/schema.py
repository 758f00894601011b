"""The format of an export folder: one value class per kind of line, in the order of its fields.

Field names, types and nullability are read off these classes by `codec` alone, so that writer
and reader cannot differ. A field with a default may be left out of a line. Times are aware
datetimes in UTC, agents are slugs, money is an integer of nano-USD here and a number of USD in
the files. Lines stand in the order of each file's key (`FILES`); people's messages that are not
taken in yet (`seq` null) come last.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Literal, NewType

NanoUsd = NewType("NanoUsd", int)

Policy = Literal["open", "isolated", "off"]
Verdict = Literal["in_force", "off", "refused"]
Visibility = Literal["public", "private"]
Phase = Literal["remember", "scan", "prune", "reply", "post"]
RunStatus = Literal[
    "queued", "running", "paused", "stopping", "stopped", "completed", "failed", "interrupted"
]
EndReason = Literal[
    "idle",
    "stopped",
    "time_limit",
    "turn_limit",
    "money_cap",
    "call_cap",
    "circuit_open",
    "pause_requested",
    "nobody_left",
    "failed",
    "interrupted",
]
TurnOutcome = Literal[
    "running",
    "worked",
    "nothing",
    "skipped",
    "backoff",
    "failed",
    "cancelled",
    "interrupted",
]
ThreadState = Literal["open", "proposed", "closed"]
ThreadOutcome = Literal["proposal", "no_proposal", "timeout", "lost"]
ProposalState = Literal["pending", "accepted", "declined", "revised"]

LIVE_STATUSES = frozenset({"queued", "running", "paused", "stopping"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """The effective settings of a run: caps as last raised, `concurrent_turns` as used.

    `house_rules` is the text of the version that the run began with; version 0 is none.
    """

    policy: Policy
    time_zone: str
    seed: int
    llm: str
    chat: str
    clock: Literal["real", "virtual"]
    max_turns: int | None
    max_minutes: float | None
    max_calls: int | None
    max_usd: NanoUsd | None
    active_thread_threshold: int
    concurrent_turns: int
    max_llm_calls_in_flight: int
    turn_delay_seconds: float
    max_turn_seconds: float
    scan_delay_seconds: float
    post_interval_seconds: float
    post_skip_probability: float
    daily_posts: int
    unreviewed_proposals: int
    thread_messages: int
    pair_rest_seconds: float
    thread_idle_seconds: float
    calls_per_window: int | None
    stop_grace_seconds: float
    house_rules_version: int = 0
    house_rules: str = ""
    small_model: str = ""
    large_model: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """One run: its summary object and what it was asked for.

    `threads` counts by outcome, with `open` for those not closed; `messages` are the agents'.
    `takeovers` is how often another driver went on with the run after a death.
    """

    run: int
    simulation: str
    status: RunStatus
    end_reason: EndReason | None
    turns: int
    messages: int
    rejected: Mapping[str, int]
    llm_calls: Mapping[Phase, int]
    input_tokens: int
    output_tokens: int
    cost_usd: NanoUsd
    threads: Mapping[str, int]
    proposals: int
    gate_filtered: int
    longest_wait_seconds: float | None
    wait_bound_seconds: float | None
    slot_utilisation: float | None
    configuration: Configuration
    code_version: str
    started_at: datetime | None
    finished_at: datetime | None
    takeovers: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentVersionRow:
    """The texts and own limits of an agent from one save on; `version` counts its saves.

    Of its limits the money alone, `max_nano_usd`, is not in USD: they are whole numbers.
    """

    version: int
    at: datetime
    public_profile: str
    private_instructions: str
    limits: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRow:
    """One agent of the simulation, as it is at the export."""

    agent: str
    bot_name: str
    represents: str
    status: Literal["active", "paused", "retired"]
    versions: tuple[AgentVersionRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyRow:
    """The cohorts that a run used from `at` on (its start, or when it first saw the version)."""

    version: int
    at: datetime
    run: int
    policy: Policy
    verdict: Verdict
    cohorts: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRow:
    """One entry of the audit of cohorts; names are text and may outlive what they name."""

    version: int | None
    at: datetime
    who: str
    action: str
    cohort: str | None
    agent: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRow:
    """One turn; `running` only beside a live run, `finished_at` null if it runs or died."""

    run: int
    number: int
    agent: str
    selected_at: datetime
    finished_at: datetime | None
    waited_seconds: float
    wait_bound_seconds: float
    outcome: TurnOutcome
    llm_calls: int
    committed: int
    rejected: Mapping[str, int]
    gate_filtered: int
    agent_version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageRow:
    """One message of an agent (`author`) or a person; `turn` is the number of the selection.

    `thread` is null until the root is answered. `run` of a person's message is the run that
    took it in.
    """

    seq: int | None
    channel: str
    visibility: Visibility
    thread: int | None
    ordinal: int | None
    author: str | None
    person: str | None
    is_bot: bool
    text: str
    committed_at: datetime
    run: int | None
    turn: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadRow:
    """One cycle of a thread: a reopened thread has a line for each of its cycles.

    What concerns the opening is null while no agent has answered the root.
    """

    id: int
    channel: str
    root_seq: int
    opener: str | None
    partner: str | None
    cycle: int
    opened_seq: int | None
    opened_at: datetime | None
    topology_version: int | None
    closed_seq: int | None
    closed_at: datetime | None
    state: ThreadState
    outcome: ThreadOutcome | None
    grandfathered_at: datetime | None
    shared_cohorts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalRow:
    """A summary by one side that the other confirmed; pending until a person reviews it."""

    id: int
    thread: int
    cycle: int
    agents: tuple[str, ...]
    summary: str
    state: ProposalState
    reviewed_by: str | None
    reviewed_at: datetime | None
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmCallRow:
    """One attempt at a request; what the backend did not say, or not yet, is null.

    The cost is null while the call is on its way, which counts at what is reserved for it; and when
    its model has no price, which nothing is reserved for.
    """

    run: int
    turn: int
    agent: str
    agent_version: int
    house_rules_version: int = 0
    phase: Phase
    thread: int | None
    model: str
    prompt_version: str
    attempt: int
    input_tokens: int | None
    output_tokens: int | None
    cache_read_tokens: int | None
    cache_write_tokens: int | None
    reserved_usd: NanoUsd
    cost_usd: NanoUsd | None
    latency_seconds: float | None
    finish_reason: str | None
    error: str | None


Row = (
    RunRow
    | AgentRow
    | TopologyRow
    | ChangeRow
    | TurnRow
    | MessageRow
    | ThreadRow
    | ProposalRow
    | LlmCallRow
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFormat:
    """One file of the folder: its name, its lines, and the fields that its lines are sorted by."""

    name: str
    row: type[Row]
    key: tuple[str, ...]


FILES: tuple[FileFormat, ...] = (
    FileFormat(name="runs.jsonl", row=RunRow, key=("run",)),
    FileFormat(name="agents.jsonl", row=AgentRow, key=("agent",)),
    FileFormat(name="topology.jsonl", row=TopologyRow, key=("run", "version")),
    FileFormat(name="changes.jsonl", row=ChangeRow, key=("at",)),
    FileFormat(name="turns.jsonl", row=TurnRow, key=("number",)),
    FileFormat(name="messages.jsonl", row=MessageRow, key=("seq",)),
    FileFormat(name="threads.jsonl", row=ThreadRow, key=("id", "cycle")),
    FileFormat(name="proposals.jsonl", row=ProposalRow, key=("id",)),
    FileFormat(name="llm_calls.jsonl", row=LlmCallRow, key=("run", "turn")),
)
