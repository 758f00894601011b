"""Tokens bounded from bytes: never under what any tokenizer of bytes can make of a request."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine.core.tokens import likely_tokens, n_bytes, upper_tokens

texts = st.lists(st.text(max_size=200), max_size=8)


def one_token_a_byte(blocks: list[str]) -> int:
    """Return the tokens of the worst tokenizer there is, which has learnt no pair of bytes."""
    return sum(len(block.encode("utf-8", "surrogatepass")) for block in blocks)


def a_character_that_is_not_ascii_is_three(blocks: list[str]) -> int:
    """Return the tokens of one that knows English words of four letters, and little else."""
    return sum(
        sum(3 if ord(char) > 0x7FF else 2 for char in block if not char.isascii())
        + -(-sum(char.isascii() for char in block) // 4)
        for block in blocks
    )


@given(blocks=texts)
def test_upper_tokens_are_never_under_a_tokenizer_of_bytes(blocks: list[str]) -> None:
    surrounding = 4 * len(blocks) + 50
    for tokenizer in (one_token_a_byte, a_character_that_is_not_ascii_is_three):
        assert tokenizer(blocks) + surrounding <= upper_tokens(blocks)


@given(blocks=texts)
def test_likely_tokens_are_not_above_upper_ones(blocks: list[str]) -> None:
    assert likely_tokens(blocks) <= upper_tokens(blocks)


def test_tokens_are_counted_by_bytes() -> None:
    assert n_bytes("Zürich \N{GRINNING FACE}\ud800") == 8 + 4 + 3
    assert upper_tokens(["abcd", "é"]) == 2_000 + (4 + 40) + (2 + 40)
    assert likely_tokens(["abc", "abcd", ""]) == 1 + 2
