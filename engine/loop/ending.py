"""How a run comes to its end, or to a pause."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class EndReason(StrEnum):
    """Why a run ended or paused."""

    IDLE = "idle"
    STOPPED = "stopped"
    TIME_LIMIT = "time_limit"
    TURN_LIMIT = "turn_limit"
    MONEY_CAP = "money_cap"
    CALL_CAP = "call_cap"
    CIRCUIT_OPEN = "circuit_open"
    PAUSE_REQUESTED = "pause_requested"
    NOBODY_LEFT = "nobody_left"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a run came to its end; `sentence` is for the person who asks why."""

    reason: EndReason
    sentence: str = ""


#: What outweighs any other reason when it happens while the last turns finish.
OVERRIDING = frozenset({EndReason.FAILED, EndReason.INTERRUPTED})
