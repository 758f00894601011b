"""Calls word for word: what is kept of one, and what a replay answers from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.core.usage import Receipt


@dataclass(frozen=True, slots=True, kw_only=True)
class CallText:
    """One attempt of a call, word for word.

    `asked` is all that the model was shown, part by part; `said` is the answer as it came, as JSON,
    empty if none did. `wait_seconds` is how long the other side wanted us to wait.
    """

    asked: tuple[str, ...]
    said: str
    wait_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCall:
    """An attempt that is answered again: `after_seconds` is from the start of its run to its answer.

    `error` is empty when it was answered, else as `CallRecord` has it.
    """

    agent: str
    phase: str
    turn: int
    after_seconds: float
    text: CallText
    receipt: Receipt
    error: str
