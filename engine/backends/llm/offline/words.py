"""Words of a text and what each is worth in a comparison: rare shapes count, filler does not."""

from __future__ import annotations

import re
import sys
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_TOKEN = re.compile(r"[^\W_]+(?:[-'\u2019][^\W_]+)*")
_DIGIT = re.compile(r"\d")
_SHORTEST_PART = 3
_LONG = 9
_LONGEST = 48

#: Grammar: never compared.
STOP_WORDS = frozenset(
    """
    a about above after again against all along also although always am among an and another any
    anybody anything are around as at away back be because been before behind being below beside
    besides best better between beyond both bring brings but by can cannot come could day days
    did do does done down each either else enough especially etc even ever every everybody
    everyone few find first for from full further gave get give given go goes going gone good
    got had half has have having he her here him his how however i if in inside instead into is
    it its just keep kept know known last later least less let like little look looking made
    make makes many may maybe me might more most much must my near need needs never new next no
    nobody none nor not nothing now of off often on once one only onto or other others our out
    over own part past per put quite rather really said same say see seem several shall she
    should since so some somebody something soon still such take taken than that the their them
    then there these they thing things this those though three through thus till time times to
    today together too toward towards two under until up upon us use used uses using very via
    want wants was way we week weeks well went were what when where whether which while who
    whole whom whose why will with within without would yet you your yours e.g i.e don't doesn't
    isn't aren't can't won't didn't wasn't
    """.split()
)

#: Words that nearly every profile, instruction or message could hold: they say little.
COMMON_WORDS = frozenset(
    """
    ability access active activity additional analysis answer approach area ask asset base based
    basic benefit broad build call capability capacity central change class clear collaboration
    collaborator common communication community company complete complex concrete contribution
    control current data default department describe design detail develop development different
    direct discover early effect effort example exciting experience experiment expert expertise
    explore extensive fit focus form full function general generic great group help high human
    idea identify important improve include information instruction integrate integration interest
    interested interesting investigate involve joint key kind lab laborator laboratory large lead
    level limit local low main major mechanism medicine member method model multiple name national
    number offer office open organisation organization partner pattern people pilot place platform
    point possible practical preference present principal priority process produce professional
    profile program programme project provide public pure quality question range reach recent
    region regulation related report request research resource response result role sample
    scale science scientific section seek seeking select series service set share short simple
    single site small special specific staff stage standard start step strong structure study
    style summary support system target team technique technology term test theme tool topic trial
    trust type understand understanding unique unit university various view visit work workflow
    work world year
    """.split()
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """The compared words of one text: their worth, and how often each is said."""

    weights: Mapping[str, float]
    counts: Mapping[str, int]


def stem(token: str) -> str:
    """Return the lower-case token without the marks of plural and possession."""
    word = token.lower().replace("\u2019", "'").removesuffix("'s").removesuffix("'")
    if len(word) <= _SHORTEST_PART or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies"):
        return word[:-3] + "y"
    if word.endswith(("xes", "ches", "shes", "sses")):
        return word[:-2]
    return word.removesuffix("s")


def tokens(text: str) -> list[str]:
    """Return the words of `text` as written; a hyphenated word is one, endless ones are none."""
    return [token for token in _TOKEN.findall(text) if len(token) <= _LONGEST]


def stems(token: str) -> tuple[str, ...]:
    """Return the stem of `token` and, if it is hyphenated, of its longer parts."""
    if "-" not in token:
        return (stem(token),)
    parts = (part for part in token.split("-") if len(part) >= _SHORTEST_PART)
    return (stem(token), *map(stem, parts))


def has_rare_shape(token: str) -> bool:
    """Tell whether `token` looks like a name of its own: FoxO, cryo-ET, KLF4, ABPP."""
    tail = token[1:]
    return tail.lower() != tail or (bool(_DIGIT.search(tail)) and not token.isdigit())


def weight(word: str, *, rare_shape: bool) -> float:
    """Return what sharing the stem `word` is worth; 0 for grammar, numbers and scraps."""
    if word in STOP_WORDS or word.isdigit() or len(word) < _SHORTEST_PART:
        return 0.0
    if rare_shape:
        return 2.0
    if word in COMMON_WORDS:
        return 0.1
    return 1.2 if len(word) >= _LONG else 1.0


@lru_cache(maxsize=2048)
def words_of(text: str) -> Words:
    """Return the weighed words of `text`; the last few thousand texts are remembered."""
    weights: dict[str, float] = {}
    counts: Counter[str] = Counter()
    for token in tokens(text):
        rare_shape = has_rare_shape(token)
        for word in stems(token):
            worth = weight(word, rare_shape=rare_shape)
            if worth:
                shared = sys.intern(word)  # thousands of profiles have most words in common
                weights[shared] = max(worth, weights.get(shared, 0.0))
                counts[shared] += 1
    return Words(weights=weights, counts=counts)
