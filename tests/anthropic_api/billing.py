"""What an answered request costs: integers of nano-USD, never a float.

Billed is what was generated, delivered or not; refused and failed requests are not billed.
https://platform.claude.com/docs/en/about-claude/pricing
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.anthropic_api.cache import Split
from tests.anthropic_api.models import Model
from tests.anthropic_api.refusal import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """The tokens of one answer. `output_tokens` include `thinking_tokens`."""

    prompt: Split
    output_tokens: int
    thinking_tokens: int = 0

    def as_json(self) -> Json:
        """Return the `usage` of a message: input without what was read or written."""
        prompt = self.prompt
        return {
            "input_tokens": prompt.plain,
            "output_tokens": self.output_tokens,
            "cache_creation_input_tokens": prompt.write_5m + prompt.write_1h,
            "cache_read_input_tokens": prompt.read,
            "cache_creation": {
                "ephemeral_5m_input_tokens": prompt.write_5m,
                "ephemeral_1h_input_tokens": prompt.write_1h,
            },
            "output_tokens_details": {"thinking_tokens": self.thinking_tokens},
            "server_tool_use": None,
            "service_tier": "standard",
        }

    def nano_usd(self, model: Model) -> int:
        """Return the price, in the band that the whole prompt is in."""
        prompt = self.prompt
        prices = model.prices_for(prompt.total)
        return (
            prompt.plain * prices.input
            + prompt.write_5m * prices.write_5m
            + prompt.write_1h * prices.write_1h
            + prompt.read * prices.read
            + self.output_tokens * prices.output
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line of the bill: the sums of one key and model. `undelivered_nano_usd` is the part of
    `nano_usd` that was billed for answers that never arrived whole."""

    requests: int = 0
    input_tokens: int = 0
    write_5m_tokens: int = 0
    write_1h_tokens: int = 0
    read_tokens: int = 0
    output_tokens: int = 0
    nano_usd: int = 0
    undelivered_nano_usd: int = 0

    def plus(self, usage: Usage, nano_usd: int, *, delivered: bool) -> Line:
        """Return the line with one answer more."""
        return Line(
            requests=self.requests + 1,
            input_tokens=self.input_tokens + usage.prompt.plain,
            write_5m_tokens=self.write_5m_tokens + usage.prompt.write_5m,
            write_1h_tokens=self.write_1h_tokens + usage.prompt.write_1h,
            read_tokens=self.read_tokens + usage.prompt.read,
            output_tokens=self.output_tokens + usage.output_tokens,
            nano_usd=self.nano_usd + nano_usd,
            undelivered_nano_usd=self.undelivered_nano_usd + (0 if delivered else nano_usd),
        )
