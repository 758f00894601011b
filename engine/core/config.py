"""What a run was asked to do: one frozen value, made by the composition root."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

#: A turn calls the model at most this often at the same time.
MAX_CALLS_PER_TURN = 5
#: A call may look something up this often before it has to decide.
LOOK_UP_ROUNDS = 2
#: A bank holds at most this many posts; above it one pruning call is made.
BANK_SIZE = 20
#: A scan shows at most this many posts.
SCAN_SIZE = 40
#: This many unread posts make a scan due before `scan_delay_seconds` is over.
SCAN_CROWD = 10
#: After a skip or a rejected draft the next chance to post is at least this far away.
SKIP_SECONDS = 300.0
#: ... and grows with such in a row up to this multiple.
SKIP_GROWTH = 5
#: The sliding window of `calls_per_window`.
WINDOW = timedelta(seconds=600)
#: Agents' messages 1 to this number of a cycle explore; the next decide.
EXPLORE_MESSAGES = 4
#: The rest after a turn that changed nothing, by how many there were in a row.
EMPTY_REST_SECONDS = (5.0, 15.0, 30.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig:
    """The settings of a run; names, units and defaults as in docs/operations.md.

    `record_calls` keeps every paid call word for word. `small_model` and `large_model` are asked by agents that name none of their own. In `time_zone` a
    new day of posts begins at midnight. `max_nano_usd`, `max_calls`, `max_turns`
    and `max_minutes` are None when unlimited.
    """

    policy: str = "open"
    llm: str = "offline"
    chat: str = "local"
    clock: str = "real"
    seed: int = 0
    time_zone: str = "UTC"
    latency_seconds: float = 0.0
    small_model: str = ""
    large_model: str = ""
    record_calls: bool = True
    house_rules: str = ""
    house_rules_version: int = 0
    until_idle: bool = False
    max_turns: int | None = None
    max_minutes: float | None = None
    max_calls: int | None = None
    max_nano_usd: int | None = None

    active_thread_threshold: int = 3
    concurrent_turns: int = 3
    max_llm_calls_in_flight: int = 12
    turn_delay_seconds: float = 0.0
    max_turn_seconds: float = 600.0
    scan_delay_seconds: float = 0.0
    post_interval_seconds: float = 0.0
    post_skip_probability: float = 0.0
    daily_posts: int = 3
    unreviewed_proposals: int = 2
    thread_messages: int = 12
    pair_rest_seconds: float = 0.0
    thread_idle_seconds: float = 86400.0
    calls_per_window: int | None = None
    stop_grace_seconds: float = 60.0
