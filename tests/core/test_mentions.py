"""Mentions: who is addressed, and what is left when a mention is taken out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.mentions import find_mentions, first_mentioned, says_nothing, strip_mentions

ALDER, BIRCH, CEDAR, DOGWOOD = 1, 2, 3, 4
HANDLES = {"alderbot": ALDER, "birchbot": BIRCH, "cedarbot": CEDAR, "dogwoodbot": DOGWOOD}


def strip_for_alder(text: str) -> tuple[str, int]:
    return strip_mentions(text, HANDLES, lambda agent: agent in {ALDER, BIRCH})


@pytest.mark.parametrize(
    ("text", "mentioned"),
    [
        ("@cedarbot, hello", (CEDAR,)),
        ("Hello @CEDARBOT.", (CEDAR,)),
        ("(@CedarBot) and **@BirchBot**", (CEDAR, BIRCH)),
        ("@BirchBot @CedarBot @birchbot", (BIRCH, CEDAR)),
        ("@CedarBot's assay", (CEDAR,)),
        ("mail post@cedarbot.example", ()),
        ("see ./@CedarBot", ()),
        ("bob-@CedarBot", ()),
        ("docs/@CedarBot", ()),
        ("_@CedarBot", ()),
        ("@@CedarBot", ()),
        ("@CedarBot@example", ()),
        ("@CedarBotany and @Cedar", ()),
        ("@CedarBoté", ()),
        ("@ServiceBot asks @BirchBot", (BIRCH,)),
        ("CedarBot", ()),
        ("", ()),
    ],
)
def test_find_mentions_reads_whole_tokens_of_known_names(
    text: str, mentioned: tuple[int, ...]
) -> None:
    assert find_mentions(text, HANDLES) == mentioned


@pytest.mark.parametrize(
    ("text", "author", "addressed"),
    [
        ("@AlderBot here, for @CedarBot and @BirchBot", ALDER, CEDAR),
        ("@AlderBot here", ALDER, None),
        ("@AlderBot here", None, ALDER),
        ("for everybody", ALDER, None),
    ],
)
def test_first_mentioned_passes_over_the_author(
    text: str, author: int | None, addressed: int | None
) -> None:
    assert first_mentioned(text, HANDLES, author) == addressed


@pytest.mark.parametrize(
    ("text", "left", "n_removed"),
    [
        ("Agree with @CedarBot; next?", "Agree with; next?", 1),
        ("ping @cedarbot please", "ping please", 1),
        ("a  @CedarBot  b", "a b", 1),
        ("@CedarBot @BirchBot hello", "@BirchBot hello", 1),
        ("> @CedarBot said so", "> said so", 1),
        ("* x\n    - sub @DogwoodBot point\n* y", "* x\n    - sub point\n* y", 1),
        ("@CedarBot's assay", "'s assay", 1),
        ("**@CedarBot** look", "look", 1),
        ("see **@CedarBot**, now", "see, now", 1),
        ("(@CedarBot @BirchBot)", "(@BirchBot)", 1),
        ("Hello,@CedarBot next", "Hello, next", 1),
        ("over to @CedarBot \nand on", "over to\nand on", 1),
        ("over to @CedarBot\r\nand on", "over to\r\nand on", 1),
        ("    @CedarBot indented", "    indented", 1),
        ("@CedarBot and @DogwoodBot", "and", 2),
        ("x @CedarBot @DogwoodBot y", "x y", 2),
        ("@BirchBot *@CedarBot*Bot", "@BirchBot **Bot", 1),
        ("`a  b`\n\n    code  @BirchBot", "`a  b`\n\n    code  @BirchBot", 0),
        ("@ServiceBot and @AlderBot", "@ServiceBot and @AlderBot", 0),
        ("", "", 0),
    ],
)
def test_strip_mentions_closes_only_the_gap_it_makes(text: str, left: str, n_removed: int) -> None:
    assert strip_for_alder(text) == (left, n_removed)


@given(
    st.lists(
        st.sampled_from(
            [*"@*~`_ \t\n.,(->x", "@AlderBot", "@CedarBot", "@DogwoodBot", "@birchbot", "Bot", "  "]
        ),
        max_size=12,
    ).map("".join)
)
def test_strip_mentions_is_idempotent_and_leaves_nobody_refused(text: str) -> None:
    left, n_removed = strip_for_alder(text)

    assert strip_for_alder(left) == (left, 0)
    assert set(find_mentions(left, HANDLES)) <= {ALDER, BIRCH}
    assert n_removed > 0 or left == text


@pytest.mark.parametrize(
    ("text", "nothing"),
    [("", True), (" **** \n> ", True), ("'s assay", False), ("ok", False), ("👍", False)],
)
def test_says_nothing_is_true_of_blanks_and_markup_alone(text: str, nothing: bool) -> None:
    assert says_nothing(text) is nothing
