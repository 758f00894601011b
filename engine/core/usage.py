"""What a call to a model came to: tokens as billed, and what it said."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens as billed; cached input apart from plain input, which does not include it.

    Money in nano-USD; None when the model has no price.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_nano_usd: int | None = 0

    @property
    def prompt_tokens(self) -> int:
        """All that was read, cached or not."""
        return self.input_tokens + self.cache_read_tokens + self.cache_write_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What is known of a call that was answered, also when its answer could not be used.

    `usage` is None when the other side did not say what it bills; `said` is the answer as it came, as
    JSON, empty if none did.
    """

    model: str
    prompt_version: str
    finish_reason: str
    usage: Usage | None
    said: str = ""
