"""Puts sentences together: picks frames and terms by keyed chance, never the same text again."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from engine.backends.llm.offline.phrases import FRAMES, MESSAGES

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

_UNFIT = re.compile(r"[^\w \-'\u2019+&.,/]|_")
_TRIES = 12
_TOO_ALIKE = 0.5
_N_BEST = 4
_MOST_NAMED = 8


@dataclass(slots=True, kw_only=True)
class Voice:
    """One message in the making: who speaks of what to whom, and what was said before."""

    chance: Random
    me: str
    you: str
    own: tuple[str, ...]
    theirs: tuple[str, ...]
    said: Sequence[str]
    more: dict[str, str] = field(default_factory=dict)

    def write(self, kind: str, *extra: str) -> str:
        """Return a text of this kind (opened by the `extra` slots) unlike all that was said."""
        slots = (*extra, *MESSAGES[kind])
        before = [shingles(text) for text in self.said]
        for _ in range(_TRIES):
            text = self._draw(slots)
            new = shingles(text)
            if all(likeness(new, old) < _TOO_ALIKE for old in before):
                break
        return text

    def _draw(self, slots: tuple[str, ...]) -> str:
        own, own2 = self._two(self.own, "the rest of our work")
        theirs, theirs2 = self._two(self.theirs, "the rest of your work")
        gaps = self.more | {
            "me": self.me,
            "you": self.you,
            "own": own,
            "own2": own2,
            "theirs": theirs,
            "theirs2": theirs2,
        }
        return " ".join(
            _opened(self.chance.choice(FRAMES[slot]).format_map(gaps)) for slot in slots
        )

    def _two(self, terms: tuple[str, ...], rest: str) -> tuple[str, str]:
        """Return two different terms: the first of the best few, the other of some more."""
        if not terms:
            return rest, rest
        first = self.chance.choice(terms[:_N_BEST])
        others = [term for term in terms[:_MOST_NAMED] if term != first]
        return first, self.chance.choice(others or [rest])


@lru_cache(maxsize=2048)
def shingles(text: str) -> frozenset[tuple[str, str, str]]:
    """Return the runs of three words of `text`."""
    words = text.lower().split()
    return frozenset(zip(words, words[1:], words[2:], strict=False))


def likeness(one: frozenset[tuple[str, str, str]], two: frozenset[tuple[str, str, str]]) -> float:
    """Return the share of runs that two texts have in common (Jaccard), 0 to 1."""
    return len(one & two) / (len(one | two) or 1)


def named(name: str, fallback: str) -> str:
    """Return a name as it may stand in a sentence: no mark that pings, quotes or formats."""
    return _clean(name)[:60].strip() or fallback


def quoted(text: str, n_words: int) -> str:
    """Return the first words of what a person wrote, fit to stand in quotation marks."""
    return " ".join(_clean(text).split()[:n_words])[:200].strip(" .,-")


def _clean(text: str) -> str:
    return " ".join(_UNFIT.sub(" ", text).split())


def _opened(sentence: str) -> str:
    return sentence[0].upper() + sentence[1:]
