"""The terms of a profile: noun phrases fit to be named in a message, and the words in them.

They come from bullet lists and keywords, then from names with a rare shape; headings, labels
and whole sentences are passed over.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from engine.backends.llm.offline.words import (
    COMMON_WORDS,
    STOP_WORDS,
    has_rare_shape,
    stem,
    tokens,
    words_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_BULLET = re.compile(r"^\s*(?:[-*+•]|\d+[.)])\s+(.+)$")
_HEADING = re.compile(r"^\s*#+\s*(.*)$")
_LABEL = re.compile(r"^\s*[*_]{0,2}([A-Z][\w /&-]{0,40}):[*_]{0,2}\s*(.*)$")
_KEYWORDS = re.compile(r"^\W*(?:key ?words|tags|topics|interests)\b\W*", re.IGNORECASE)
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_ASIDE = re.compile(r"\([^)]*\)?|\[[^\]]*\]?|<[^>]*>?")
_CUT = re.compile(r"[;:,.!?]\s|[;:,.!?]$|\s[-\u2013]\s|[\u2014\u2013|]|\s(?:e\.g|i\.e)\b")
_TAIL = re.compile(
    r"\s(?:for|with|in|using|to|from|that|which|who|via|by|at|on|under|including|such|as|through"
    r"|across|during|between|into|of|and|or|within|without|after|before|when|until|where|are|is"
    r"|can|may|will|should)\s.*$",
    re.IGNORECASE,
)
_UNFIT = re.compile(r"[^\w \-/'\u2019+&.]|_")
_LEADING = re.compile(r"^(?:an?|the|our|their|its|your|some|all|any)\s+", re.IGNORECASE)
_LISTING = re.compile(r"[,;]|\s(?:and|or)\s")
_MID_SENTENCE = re.compile(r"[a-z,] ([A-Z][a-z]+)")
_MOST_WORDS = 5
_FEWEST_LETTERS = 3  # two are anybody's initials
_MOST_LETTERS = 56
_MOST_TERMS = 40
_ENOUGH_TERMS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What can be named of a profile (best first as its author listed it), with weighed words."""

    phrases: tuple[str, ...]
    words: Mapping[str, float]


@lru_cache(maxsize=16384)
def terms_of(profile: str) -> Terms:
    """Return the terms of a profile in markdown; empty for one that says nothing."""
    names = _names_in(profile)
    phrases = dict.fromkeys(_lowered(phrase, names) for phrase in _listed(profile))
    if len(phrases) < _ENOUGH_TERMS:
        phrases |= dict.fromkeys(_named_in_prose(profile))
    kept = _without_variants(phrases)[:_MOST_TERMS]
    words = dict(words_of(" \n ".join(kept)).weights)
    for token in tokens(profile):
        if has_rare_shape(token) and len(token) >= _FEWEST_LETTERS:
            words.setdefault(stem(token), 2.0)
    return Terms(phrases=kept, words=words)


def _without_variants(phrases: Iterable[str]) -> tuple[str, ...]:
    """Return the phrases, without one that only says more or less than an earlier one."""
    kept: dict[str, frozenset[str]] = {}
    for phrase in phrases:
        words = frozenset(words_of(phrase).weights)
        if not any(len(old) > 1 and (old <= words or words <= old) for old in kept.values()):
            kept[phrase] = words
    return tuple(kept)


def best_term(text: str, liked: Mapping[str, float]) -> str:
    """Return the word of `text` that says most, `liked` stems first; "" if it has none."""
    weights = words_of(text).weights

    def worth(token: str) -> tuple[float, int]:
        word = stem(token)
        return weights.get(word, 0.0) * (1.5 if word in liked else 1.0), len(token)

    candidates = [token for token in tokens(text) if weights.get(stem(token), 0.0) >= 1]
    return max(candidates, key=worth, default="")


def noun_phrases(listing: str) -> tuple[str, ...]:
    """Return the noun phrases of a listing such as a channel's topic ("Fog, tides and hulls")."""
    items = map(noun_phrase, _LISTING.split(listing))
    return tuple(_lowered(item, frozenset()) for item in items if item)


def noun_phrase(raw: str) -> str:
    """Return the noun phrase a list item opens with, without markdown; "" if it has none."""
    text = _ASIDE.sub(" ", _LINK.sub(r"\1", raw))
    text = _CUT.split(" ".join(re.sub(r"[*`~#]", "", text).split()), maxsplit=1)[0].strip()
    if len(text.split()) > _MOST_WORDS:
        text = _TAIL.sub("", text)
        if text.endswith("ed") or (" " not in text and not has_rare_shape(text)):
            return ""
    text = _LEADING.sub("", " ".join(_UNFIT.sub(" ", text).split())).strip(" -/'\u2019+&.")
    return text if _can_be_named(text) else ""


def _can_be_named(text: str) -> bool:
    words = text.split()
    if not 0 < len(words) <= _MOST_WORDS or not _FEWEST_LETTERS <= len(text) <= _MOST_LETTERS:
        return False
    if words[0].lower() in STOP_WORDS or words[-1].lower() in STOP_WORDS:
        return False
    return any(worth >= 1 for worth in words_of(text).weights.values())


def _listed(profile: str) -> list[str]:
    """Return the phrases of keyword lines, then those of bullets."""
    keywords: list[str] = []
    bullets: list[str] = []
    in_keywords = False
    for line in profile.splitlines():
        heading, bullet, label = _HEADING.match(line), _BULLET.match(line), _LABEL.match(line)
        if heading:
            in_keywords = bool(_KEYWORDS.match(heading[1]))
        elif bullet:
            bullets.append(bullet[1])
        elif in_keywords:
            keywords += re.split(r"[,;]", line)
        elif label and _KEYWORDS.match(label[1]):
            keywords += re.split(r"[,;]", label[2])
    return [phrase for phrase in map(noun_phrase, keywords + bullets) if phrase]


def _named_in_prose(profile: str) -> Iterator[str]:
    """Yield names with a rare shape, then the longer words: for a profile without lists."""
    lines = (line for line in profile.splitlines() if not _HEADING.match(line))
    words = [t for line in lines if not _LABEL.match(line) for t in tokens(line)]
    yield from (word for word in words if has_rare_shape(word) and len(word) >= _FEWEST_LETTERS)
    yield from (
        word.lower()
        for word in words
        if len(word) > _MOST_WORDS
        and stem(word) not in COMMON_WORDS
        and word.lower() not in STOP_WORDS
        and not word[0].isupper()
    )


def _names_in(profile: str) -> frozenset[str]:
    """Return the words that the prose writes with a capital within a sentence, and only so."""
    prose = "\n".join(line for line in profile.splitlines() if not _HEADING.match(line))
    small = {word.capitalize() for word in prose.split() if word.islower()}
    return frozenset(_MID_SENTENCE.findall(prose)) - small


def _lowered(phrase: str, names: frozenset[str]) -> str:
    """Return `phrase` as it stands within a sentence: names and short forms keep their capital."""
    first = phrase.split(maxsplit=1)[0]
    is_name = first in names or first.endswith(("'s", "\u2019s"))  # named after somebody
    if is_name or has_rare_shape(first) or not first[0].isupper():
        return phrase
    return phrase[0].lower() + phrase[1:]
