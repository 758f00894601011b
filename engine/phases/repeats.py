"""Has this been said before? Nearly equal drafts are given up before they are handed in."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Drafts are compared with this many of the author's last messages.
RECENT = 20
#: Two texts are nearly equal when this share of their runs of three words is the same.
NEARLY = 0.8

_WORD = re.compile(r"\w+")


def repeats(draft: str, earlier: Iterable[str]) -> bool:
    """Tell whether a draft is nearly equal to one of the earlier texts."""
    runs = _runs(draft)
    return any(_alike(runs, _runs(text)) for text in earlier)


def _alike(one: frozenset[tuple[str, ...]], other: frozenset[tuple[str, ...]]) -> bool:
    return len(one & other) >= NEARLY * len(one | other)


def _runs(text: str) -> frozenset[tuple[str, ...]]:
    words = _WORD.findall(text.lower())
    return frozenset(zip(words, words[1:], words[2:], strict=False)) or frozenset({tuple(words)})
