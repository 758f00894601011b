"""A failed call sorted: by its status, its kind and its headers, never by its wording."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

from engine.core.errors import (
    LlmError,
    PermanentLlmError,
    PromptRefused,
    TransientLlmError,
)
from engine.core.usage import Receipt, Usage
from engine.prompts import PROMPT_VERSION

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Nobody is waited for longer than this, in seconds.
LONGEST_WAIT_SECONDS = 60.0
#: Without a wish of the other side the first wait is so long; it doubles with each attempt.
FIRST_WAIT_SECONDS = 1.0
#: Up to this share is added to each wait, so that those who were refused together do not come back
#: together.
JITTER = 0.25

_KEY = "Check SIM_ANTHROPIC_API_KEY."
_PERMANENT = {
    401: f"The service does not know the key. {_KEY}",
    402: "The account behind the key has no money left. Pay for more, or use another key.",
    403: f"The key may not use {{model}}. {_KEY} Or name another model.",
    404: "The service has no model {model}. Check the names of the models and "
    "SIM_ANTHROPIC_BASE_URL.",
}
_PROMPT = frozenset({400, 413, 422})
_PASSING = frozenset({408, 409, 425, 429})


def status_failure(
    status: int,
    kind: str,
    request_id: str,
    *,
    model: str,
    wait_seconds: float,
) -> LlmError:
    """Return what an error status means; nothing was billed for it.

    `wait_seconds` is how long to wait if it passes by itself.
    """
    receipt = Receipt(model=model, prompt_version=PROMPT_VERSION, finish_reason="", usage=Usage())
    told = " ".join(part for part in (str(status), kind, request_id) if part)
    if status in _PASSING or status >= 500:
        sentence = f"The service could not answer ({told})."
        return TransientLlmError(sentence, retry_after_seconds=wait_seconds, receipt=receipt)
    if status in _PROMPT:
        return PromptRefused(f"The service did not take the prompt ({told}).", receipt=receipt)
    sentence = _PERMANENT.get(status, "The service refuses what it is asked.").format(model=model)
    return PermanentLlmError(f"{sentence} ({told})", receipt=receipt)


def connection_failure(reason: str, *, model: str, wait_seconds: float) -> LlmError:
    """Return what a connection that failed means: nobody knows whether an answer was billed."""
    receipt = Receipt(model=model, prompt_version=PROMPT_VERSION, finish_reason="", usage=None)
    return TransientLlmError(
        f"The service did not answer ({reason}).",
        retry_after_seconds=wait_seconds,
        receipt=receipt,
    )


def asked_wait(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the seconds that a `Retry-After` asks for, None where it asks for nothing usable."""
    text = headers.get("retry-after", "").strip()
    try:
        seconds = float(text)
    except ValueError:
        seconds = _until(text, now)
    return seconds if math.isfinite(seconds) and seconds > 0 else None


def _until(text: str, now: datetime) -> float:
    try:
        at = parsedate_to_datetime(text)
    except ValueError:
        return math.nan
    return (at.replace(tzinfo=at.tzinfo or UTC) - now).total_seconds()


def wait_before(attempt: int, asked_seconds: float | None, luck: float) -> float:
    """Return how long to wait before the next attempt; `luck` is from 0 to 1."""
    doubling = FIRST_WAIT_SECONDS * 2.0 ** (attempt - 1)
    wanted = doubling if asked_seconds is None else asked_seconds
    return min(wanted, LONGEST_WAIT_SECONDS) * (1 + JITTER * luck)
