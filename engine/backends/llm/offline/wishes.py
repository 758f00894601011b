"""What private instructions ask for and what they refuse. Their sentences are never repeated:
only a term that the other side names itself may show in a message.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from engine.backends.llm.offline.words import has_rare_shape, stem, stems, tokens, weight, words_of

if TYPE_CHECKING:
    from collections.abc import Mapping

_REFUSAL = re.compile(
    r"(?:\b(?:not|never|less|no longer|isn't|aren't|hardly) (?:very |really |at all )?interested in"
    r"|\bno (?:interest|wish|appetite) (?:in|for)|\bavoid(?:ing)?"
    r"|\b(?:do not|don't|does not|doesn't) (?:want|like|need|propose|pursue|offer|discuss|accept)"
    r"|\b(?:stay|keep|steer) (?:away from|clear of)|\b(?:decline|refuse|reject)"
    r"|^\W*(?:no|never)(?= ))\s*:?\s+(?P<topic>.+)",
    re.IGNORECASE,
)
_WISH = re.compile(
    r"\b(?:interested in|seek(?:ing|s)?|looking for|benefit from|keen (?:on|to)|want(?:s)? to"
    r"|excited about|priorit\w+|hop(?:e|ing) (?:for|to)|eager|need(?:s)?|wish(?:es)?)\b",
    re.IGNORECASE,
)
_WISH_HEADING = re.compile(r"priorit|prefer|wish|interest|seek|goal|want", re.IGNORECASE)
_TOPIC_END = re.compile(
    r"[.;:(\n\u2014\u2013]"
    r"|,? (?:unless|without|that|which|because|since|when|except|but|as|so|near|if)\b"
    r"|, (?:the|a|an|we|it|they|our|no|not|he|she|this)\b|\s-\s",
    re.IGNORECASE,
)
_ALTERNATIVES = re.compile(r",\s*(?:or|and|nor)?\s*|\s(?:or|nor|and)\s", re.IGNORECASE)
_SENTENCES = re.compile(r"(?<=[^\d\s][.!?;])\s+|\n")
_ITEM = re.compile(r"^\s*(?:[-*+•]|\d+[.)])\s")
_CONTENT_WORTH = 0.5
_LONGEST_RUN = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A topic that is declined, by its words.

    `n_mentions`: how often a profile must say them. A single plain word said once is a mention
    and no topic.
    """

    words: frozenset[str]
    n_mentions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """Private instructions, understood: what is refused, and which words raise a score."""

    refusals: tuple[Refusal, ...]
    words: Mapping[str, float]


@lru_cache(maxsize=16384)
def wishes_of(private_instructions: str) -> Wishes:
    """Return the wishes and refusals of instructions in markdown or plain sentences."""
    refusals: list[Refusal] = []
    liked: list[str] = []
    under_wishes = False
    for sentence in _SENTENCES.split(private_instructions):
        if sentence.lstrip().startswith("#"):
            under_wishes = bool(_WISH_HEADING.search(sentence))
            continue
        refused = _REFUSAL.search(sentence)
        if refused:
            refusals += _refusals_of(refused["topic"])
        elif _WISH.search(sentence) or (under_wishes and _ITEM.match(sentence)):
            liked.append(sentence)
    weights = words_of("\n".join(liked)).weights
    return Wishes(refusals=tuple(refusals), words={w: n for w, n in weights.items() if n >= 1})


def refusals_beside(own_terms: frozenset[str], private_instructions: str) -> tuple[Refusal, ...]:
    """Return what the instructions refuse, by the words that the other side has to bring.

    What the agent is about itself may stand in any refusal ("X of our own"): it is left out,
    unless nothing else remains.
    """
    return tuple(
        Refusal(words=(refusal.words - own_terms) or refusal.words, n_mentions=refusal.n_mentions)
        for refusal in wishes_of(private_instructions).refusals
    )


def bitten_topic(refusal: Refusal, profile: str, said: tuple[str, ...]) -> str:
    """Return the refused topic in the other side's words, "" when the refusal does not bite.

    It bites when the words stand together in the profile, or in one thing that was said.
    """
    if profile:
        counts = words_of(profile).counts
        if all(counts.get(word, 0) >= refusal.n_mentions for word in refusal.words):
            return _surface(profile, refusal.words)
    for text in said:
        if refusal.words <= words_of(text).counts.keys():
            return _surface(text, refusal.words)
    return ""


def _refusals_of(topic: str) -> list[Refusal]:
    """Return one refusal per alternative ("A or B") that says something."""
    found = []
    for part in _ALTERNATIVES.split(_TOPIC_END.split(topic, maxsplit=1)[0]):
        names = [token for token in tokens(part) if _says_something(token)]
        if names:
            is_telling = len(names) > 1 or has_rare_shape(names[0]) or "-" in names[0]
            words = frozenset(map(stem, names))
            found.append(Refusal(words=words, n_mentions=1 if is_telling else 2))
    return found


def _says_something(token: str) -> bool:
    return weight(stem(token), rare_shape=has_rare_shape(token)) > _CONTENT_WORTH


def _surface(text: str, required: frozenset[str]) -> str:
    """Return the shortest run of at most six words of a line with all that is required, or ""."""
    for line in text.splitlines():
        words = tokens(line)
        marks = [required.intersection(stems(word)) for word in words]
        for length in range(1, _LONGEST_RUN + 1):
            for start in range(len(words) - length + 1):
                if required <= frozenset().union(*marks[start : start + length]):
                    return _lowered(words[start : start + length])
    return ""


def _lowered(words: list[str]) -> str:
    first = words[0] if has_rare_shape(words[0]) else words[0].lower()
    return " ".join((first, *words[1:]))
