"""How well an agent and another side fit: shared rare terms, wishes, and refusals that bite."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from engine.backends.llm.offline.terms import terms_of
from engine.backends.llm.offline.wishes import Refusal, bitten_topic, refusals_beside, wishes_of
from engine.backends.llm.offline.words import words_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_WISH_FACTOR = 2.0
_PROSE_SHARE = 0.4
_MOST_OFFERED = 14


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """One agent beside another profile: terms of both, the best first, and how well they fit.

    `fit` is 0 for nothing in common; `refused` is the refused topic in the other side's words.
    """

    own: tuple[str, ...]
    theirs: tuple[str, ...]
    fit: float
    refused: str


@lru_cache(maxsize=16384)
def interests(profile: str, private_instructions: str) -> Mapping[str, float]:
    """Return the words an agent cares for; what it wishes counts double."""
    words = dict(terms_of(profile).words)
    for word, worth in wishes_of(private_instructions).words.items():
        words[word] = _WISH_FACTOR * worth
    return words


@lru_cache(maxsize=32768)
def pairing(profile: str, private_instructions: str, other_profile: str) -> Pairing:
    """Return how the agent of the first two texts sees the owner of the third."""
    liked = interests(profile, private_instructions)
    own, other = terms_of(profile), terms_of(other_profile)
    prose = words_of(other_profile).weights
    shared = sum(
        worth if word in other.words else _PROSE_SHARE * worth
        for word, worth in liked.items()
        if word in prose
    )
    size = math.sqrt(1.0 + len(own.words)) * math.sqrt(1.0 + len(other.words))
    return Pairing(
        own=_ranked(own.phrases, other.words),
        theirs=_ranked(other.phrases, liked),
        fit=shared / size,
        refused=refusal_of(profile, private_instructions, other_profile, ()),
    )


def refusal_of(
    profile: str, private_instructions: str, other_profile: str, said: tuple[str, ...]
) -> str:
    """Return the first refused topic that the other side brings, in its words; or ""."""
    for refusal in _refusals(profile, private_instructions):
        topic = bitten_topic(refusal, other_profile, said)
        if topic:
            return topic
    return ""


@lru_cache(maxsize=16384)
def _refusals(profile: str, private_instructions: str) -> tuple[Refusal, ...]:
    return refusals_beside(frozenset(terms_of(profile).words), private_instructions)


def rarity(texts: Sequence[str]) -> Mapping[str, float]:
    """Return how rare each word is in the texts shown: 1 for a word of one text, less if more."""
    counts = Counter(word for text in texts for word in words_of(text).weights)
    most = math.log(1.0 + len(texts))
    return {word: math.log(1.0 + len(texts) / n) / most for word, n in counts.items()}


def text_score(liked: Mapping[str, float], text: str, rare: Mapping[str, float]) -> float:
    """Return what a text is worth to an agent: about 1 for each rare word it cares for."""
    said = words_of(text).weights
    return sum(worth * rare.get(word, 1.0) for word, worth in liked.items() if word in said)


def nearest(phrases: tuple[str, ...], text: str) -> tuple[str, ...]:
    """Return the phrases that share a word with `text`; all of them if none does."""
    said = words_of(text).weights
    near = tuple(
        phrase for phrase in phrases if any(word in said for word in words_of(phrase).weights)
    )
    return near or phrases


def _ranked(phrases: tuple[str, ...], liked: Mapping[str, float]) -> tuple[str, ...]:
    """Return the phrases by what they share with `liked`, ties in the author's order."""

    def worth(phrase: str) -> float:
        return sum(liked.get(word, 0.0) for word in words_of(phrase).weights)

    return tuple(sorted(phrases, key=worth, reverse=True)[:_MOST_OFFERED])
