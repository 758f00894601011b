"""The errors of the engine, as one tree.

    EngineError
    ├── LlmError
    │   ├── TransientLlmError   worth another try later (limit, overload, connection)
    │   ├── PermanentLlmError   no try will help (key, permission, model): the run fails
    │   ├── PromptRefused       this prompt is not taken: a shorter one may be, another one is
    │   └── UnusableAnswer      the model answered, and the answer cannot be used
    └── StoreError
        ├── StoreLost
        │   ├── DiskFull        the disk of the database is full: only a person can help
        │   ├── Fenced          another driver owns the simulation: stop at once
        │   └── Unanswered      the database did not answer for as long as it was waited for
        ├── TopologyMoved       the group was checked under a version that is no longer in force
        └── RowRefused          the database refused a row of this group (integrity, data)

Expected refusals are values (`Rejected`, a skip), not errors.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.core.usage import Receipt


class Unusable(StrEnum):
    """Why an answer cannot be used; counted as `unusable_…`."""

    AMBIGUOUS = "ambiguous"
    BLANK = "blank"
    EMPTY = "empty"
    HTML = "html"
    LONG = "long"
    MARKS = "marks"
    MISSHAPEN = "misshapen"
    MOVE = "move"
    NO_USAGE = "no_usage"
    NOT_TAKEN = "not_taken"
    OTHER_VOICE = "other_voice"
    PROSE = "prose"
    REFUSED = "refused"
    TOOL = "tool"
    TRANSCRIPT = "transcript"
    TRUNCATED = "truncated"
    UNKNOWN_ID = "unknown_id"
    UNPARSABLE = "unparsable"
    UNSTORABLE = "unstorable"


class EngineError(Exception):
    """Base of everything the engine raises on purpose."""


class LlmError(EngineError):
    """A call to a model failed; `receipt` is what it came to and was billed all the same.

    One that was refused before it was worked on has a usage without tokens and costs nothing; one
    of unknown fate has no receipt, or one without usage, and is booked at its estimate.
    """

    def __init__(self, message: str, *, receipt: Receipt | None = None) -> None:
        super().__init__(message)
        self.receipt = receipt


class TransientLlmError(LlmError):
    """A failure that time cures; `retry_after_seconds` is what the other side asked for."""

    def __init__(
        self,
        message: str,
        *,
        retry_after_seconds: float | None = None,
        receipt: Receipt | None = None,
    ) -> None:
        super().__init__(message, receipt=receipt)
        self.retry_after_seconds = retry_after_seconds


class PermanentLlmError(LlmError):
    """A failure that no retry cures; the message is one sentence for the person who runs it."""


class PromptRefused(LlmError):
    """The prompt was not taken, most likely because it is too long; nothing was billed."""


class UnusableAnswer(LlmError):
    """An answer that was paid for and cannot be used; `reason` is one of `Unusable`."""

    def __init__(self, reason: str, *, receipt: Receipt | None = None) -> None:
        super().__init__(reason, receipt=receipt)
        self.reason = reason


class StoreError(EngineError):
    """The store could not do what was asked."""


class StoreLost(StoreError):
    """Nothing can be read or stored by this driver any more."""


class DiskFull(StoreLost):
    """The database has no room for what was to be stored; nothing of it was stored."""

    def __init__(self) -> None:
        super().__init__(
            "The disk of the database is full: make space there, then start the next run."
        )


class Fenced(StoreLost):
    """The lease is no longer ours; nothing of the refused group was stored."""


class Unanswered(StoreLost):
    """The database did not answer; whether a group on its way was stored is not known."""


class TopologyMoved(StoreError):
    """The topology has another version than the group was checked under; nothing was stored."""


class RowRefused(StoreError):
    """The database refused a row of the group; nothing of the group was stored."""
