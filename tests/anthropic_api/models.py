"""The models that the server offers, with the limits and prices of their public pages.

https://platform.claude.com/docs/en/about-claude/models/overview and, for prices,
https://platform.claude.com/docs/en/about-claude/pricing. The server has a list of its own, so that
a wrong price in the product is seen as a difference from the bill.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Nano-USD per token: a dollar per million tokens is 1,000."""

    input: int
    output: int
    write_5m: int
    write_1h: int
    read: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """What one model takes and costs.

    A prompt of more than `long_above` tokens, cached ones counted, pays `long_prices` for all of
    its tokens, output included. `forces_tools`: a `tool_choice` of `any` or `tool` is taken.
    `continues`: the last message may be the assistant's. `samples`: sampling parameters are taken
    at the older version of the API. `thinks`: it does unless told otherwise.
    """

    id: str
    prices: Prices
    long_prices: Prices | None = None
    long_above: int = 0
    context_tokens: int = 1_000_000
    max_output_tokens: int = 128_000
    forces_tools: bool = True
    continues: bool = False
    samples: bool = False
    takes_effort: bool = True
    thinks: bool = True
    stops_thinking: bool = True

    def prices_for(self, prompt_tokens: int) -> Prices:
        """Return the band that a prompt of this length is billed in."""
        if self.long_prices is not None and prompt_tokens > self.long_above:
            return self.long_prices
        return self.prices


#: Two price bands: https://platform.claude.com/docs/en/models/haiku-5-5/overview
HAIKU = Model(
    id="claude-haiku-5-5",
    prices=Prices(input=100, output=500, write_5m=125, write_1h=200, read=10),
    long_prices=Prices(input=500, output=2_500, write_5m=625, write_1h=1_000, read=50),
    long_above=100_000,
)
SONNET = Model(
    id="claude-sonnet-5-5",
    prices=Prices(input=2_000, output=10_000, write_5m=2_500, write_1h=4_000, read=100),
)
#: No forced tools, no end of thinking:
#: https://platform.claude.com/docs/en/models/opus-5-5/whats-new-opus-5-5
OPUS = Model(
    id="claude-opus-5-5",
    prices=Prices(input=4_000, output=20_000, write_5m=5_000, write_1h=8_000, read=200),
    forces_tools=False,
    stops_thinking=False,
)
#: An older one, which still lets a client begin the answer, and takes sampling parameters.
OLDER = Model(
    id="claude-haiku-4-5-20251001",
    prices=Prices(input=1_000, output=5_000, write_5m=1_250, write_1h=2_000, read=100),
    context_tokens=200_000,
    max_output_tokens=64_000,
    continues=True,
    samples=True,
    takes_effort=False,
    thinks=False,
)
MODELS = (HAIKU, SONNET, OPUS, OLDER)
