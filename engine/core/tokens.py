"""How many tokens a text can have at most, and how many it likely has, from its bytes.

Nothing here asks a tokenizer: an estimate must cost nothing, and hold for models to come.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

#: What surrounds one block of text in a request: its role, its marks, its place.
BLOCK_TOKENS = 40
#: What a service adds to a request by itself: how it explains the form and the tools to the model.
REQUEST_TOKENS = 2_000
#: English prose has about so many bytes for each token: four by older tokenizers, of which newer
#: ones make up to 35 % more (https://platform.claude.com/docs/en/about-claude/pricing).
LIKELY_BYTES_PER_TOKEN = 3


def upper_tokens(blocks: Iterable[str]) -> int:
    """Return a bound on the tokens of a request made of these blocks of text.

    Every tokenizer in use is one of bytes: no token stands for less than one byte of UTF-8, so a
    text has at most as many tokens as bytes. Half a surrogate pair counts as a byte sequence too.
    """
    return REQUEST_TOKENS + sum(n_bytes(block) + BLOCK_TOKENS for block in blocks)


def likely_tokens(blocks: Iterable[str]) -> int:
    """Return about how many tokens these blocks have: for forecasts, not for caps."""
    return sum(-(-n_bytes(block) // LIKELY_BYTES_PER_TOKEN) for block in blocks)


def n_bytes(text: str) -> int:
    """Return the bytes of a text in UTF-8."""
    return len(text.encode("utf-8", "surrogatepass"))
