"""What a call to a model came to: tokens as billed, and what it said."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens as billed; cached input apart from plain input. Money in nano-USD."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_nano_usd: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What is known of a call that was answered, also when its answer could not be used.

    `usage` is None when the other side did not say what it bills; `text` is the answer as it came.
    """

    model: str
    prompt_version: str
    finish_reason: str
    usage: Usage | None
    text: str = ""
