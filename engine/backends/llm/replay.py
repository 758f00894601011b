"""The LLM port over a recorded run: every request gets the answer that it got then, at no cost.

A request is known by its agent, its phase and all that it shows, and by nothing that a run could
number otherwise. An answer comes as long after the start of the run as it came then, so that turns
end in the order in which they ended; what failed fails again.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict, deque
from typing import TYPE_CHECKING, Any

from engine.backends.llm.said import read_said
from engine.core.errors import (
    LlmError,
    PermanentLlmError,
    PromptRefused,
    TransientLlmError,
    UnusableAnswer,
)
from engine.ports.llm import LlmAnswer
from engine.prompts import asked_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from engine.core.recording import RecordedCall
    from engine.ports.clock import Clock
    from engine.ports.llm import LlmRequest

Key = tuple[str, str, bytes]
#: A line of a prompt is told up to so many characters.
TOLD = 80


class ReplayLlm:
    """Answers from the calls of one run, given in the order in which they were made."""

    free = True

    def __init__(
        self, recorded: Sequence[RecordedCall], *, run: int, clock: Clock, starts_at: datetime
    ) -> None:
        self._run = run
        self._clock = clock
        self._starts_at = starts_at
        self._recorded = recorded
        self._left: defaultdict[Key, deque[RecordedCall]] = defaultdict(deque)
        for call in recorded:
            self._left[_key(call.agent, call.phase, call.text.asked)].append(call)

    def upper_estimate(self, _request: LlmRequest) -> int:
        """Return 0: it was paid for then."""
        return 0

    async def complete(self, request: LlmRequest) -> LlmAnswer:
        """Answer as it was answered then; a request that was not recorded fails the run."""
        asked = asked_of(request)
        left = self._left[_key(request.agent, request.phase, asked)]
        if not left:
            raise PermanentLlmError(self._difference(request, asked))
        call = left.popleft()
        passed = (self._clock.now() - self._starts_at).total_seconds()
        await self._clock.sleep(max(0.0, call.after_seconds - passed))
        return _answered(request, call)

    def _difference(self, request: LlmRequest, asked: tuple[str, ...]) -> str:
        """Tell what is asked now, and where the likeliest of the recorded calls was other."""
        now = f"In turn {request.turn} {request.agent} is asked to {request.phase}"
        alike = [
            call
            for call in self._recorded
            if (call.agent, call.phase) == (request.agent, request.phase)
        ]
        if not alike:
            return f"{now}, which run {self._run} never asked of it: there is no answer to replay."
        nearest = max(alike, key=lambda call: _n_same_lines(_lines(call.text.asked), _lines(asked)))
        old, new = _first_difference(_lines(nearest.text.asked), _lines(asked))
        if old == new:
            return (
                f"{now} once more than in run {self._run}, with the same words: all its answers "
                "are used up."
            )
        return (
            f"{now} otherwise than in run {self._run}: where turn {nearest.turn} there was shown "
            f"{_told(old)}, it is now shown {_told(new)}."
        )


def _answered(request: LlmRequest, call: RecordedCall) -> LlmAnswer:
    """Return the answer of a recorded call, or raise what it failed with."""
    if not call.text.said and call.error:
        raise _failure(call)
    receipt = call.receipt
    decision = read_said(request, receipt)
    assert receipt.usage is not None  # an answer that does not say it cannot be read
    return LlmAnswer(
        decision=decision,
        usage=receipt.usage,
        model=receipt.model,
        prompt_version=receipt.prompt_version,
        finish_reason=receipt.finish_reason,
    )


def _failure(call: RecordedCall) -> LlmError:
    kind, _, told = call.error.partition(": ")
    options: dict[str, Any] = {"receipt": call.receipt}
    match kind:
        case "unusable":
            return UnusableAnswer(told, **options)
        case "transient":
            return TransientLlmError(told, retry_after_seconds=call.text.wait_seconds, **options)
        case "permanent":
            return PermanentLlmError(told, **options)
    return PromptRefused(told, **options)


def _key(agent: str, phase: str, asked: tuple[str, ...]) -> Key:
    digest = hashlib.sha256()
    for part in asked:
        digest.update(part.encode("utf-8", "surrogatepass") + b"\0")
    return agent, str(phase), digest.digest()


def _lines(asked: tuple[str, ...]) -> list[str]:
    return [line for part in asked for line in part.splitlines()]


def _n_same_lines(old: list[str], new: list[str]) -> int:
    """Return how many lines are the same from the first on."""
    pairs = enumerate(zip(old, new, strict=False))
    return next((n for n, (one, other) in pairs if one != other), min(len(old), len(new)))


def _first_difference(old: list[str], new: list[str]) -> tuple[str | None, str | None]:
    """Return the first lines that differ; None where one of them has ended."""
    n_same = _n_same_lines(old, new)
    return (
        old[n_same] if n_same < len(old) else None,
        new[n_same] if n_same < len(new) else None,
    )


def _told(line: str | None) -> str:
    if line is None:
        return "nothing more"
    return f"“{line}”" if len(line) <= TOLD else f"“{line[:TOLD]}…”"
