"""Has this been said before? Nearly equal drafts are given up before they are handed in."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Drafts are compared with this many of the author's last messages.
RECENT = 20
#: Two texts are nearly equal when this share of their runs of three words is the same.
NEARLY = 0.8


def repeats(draft: str, earlier: Iterable[str]) -> bool:
    """Tell whether a draft is nearly equal to one of the earlier texts.

    What is new is in none of them, which is seen at a glance at all; only then each is compared.
    """
    texts = tuple(earlier)
    runs = _runs(_words(draft))
    if not _nearly_all(runs, _words("\n".join(texts))):
        return False
    return any(_alike(runs, _words(text)) for text in texts)


def _nearly_all(runs: frozenset[str], words: list[str]) -> bool:
    """Tell whether so many of the runs are found among the words as nearly equal texts share."""
    text = _line(words)
    n_left, least = len(runs), NEARLY * len(runs)
    for run in runs:
        if run not in text:
            n_left -= 1
            if n_left < least:
                return False
    return True


def _alike(runs: frozenset[str], words: list[str]) -> bool:
    if not _nearly_all(runs, words):
        return False
    others = _runs(words)
    return len(runs & others) >= NEARLY * len(runs | others)


def _runs(words: list[str]) -> frozenset[str]:
    """Return the runs of three words, each as it stands in `_line`; of fewer words, all."""
    runs = zip(words, words[1:], words[2:], strict=False)
    return frozenset(map(_line, runs)) or frozenset({_line(words)})


def _line(words: Iterable[str]) -> str:
    return " ".join(("", *words, ""))


def _words(text: str) -> list[str]:
    return text.lower().translate(_APART).split()


class _Apart(dict[int, int]):
    """For `str.translate`: letters, digits and `_` stay, what is between words becomes a space."""

    def __missing__(self, code: int) -> int:
        letter = chr(code)
        self[code] = code if letter.isalnum() or letter == "_" else ord(" ")
        return self[code]


_APART = _Apart()
