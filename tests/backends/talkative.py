"""A mind for the rehearsed API that holds real talks: it reads our prompts and keeps to them.

Each text is made of words that the bytes of the request choose, so that hardly any is like another.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from tests.anthropic_api.minds import WORDS, Decision

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from tests.anthropic_api.minds import Asked

#: What is done first, if it is on offer.
MOVES = ("accept", "propose", "continue", "decline")


def talkative(asked: Asked) -> Decision:
    """Keep posts, answer the first of them, talk until one may propose, and agree to it."""
    shown = "\n".join(block["text"] for block in asked.body["messages"][0]["content"])
    assert asked.schema is not None
    fields = set(asked.schema["properties"])
    answer: dict[str, object]
    if fields == {"posts"}:
        answer = {"posts": numbers(shown, "post")[:3]}
    elif "move" in fields:
        answer = {"thought": "So be it.", "move": _move(shown), "text": words(asked.chance)}
    elif "choice" in fields:
        answer = {"thought": "Let us see.", "choice": _choice(shown, asked.chance)}
    else:
        answer = {"memory": words(asked.chance)}
    return Decision(texts=(json.dumps(answer),))


def numbers(shown: str, tag: str) -> list[int]:
    """Return the numbers with which something was shown."""
    return [int(number) for number in re.findall(rf'^<{tag} number="(\d+)"', shown, re.MULTILINE)]


def words(chance: Random) -> str:
    """Return a text of some length, unlike any other."""
    return " ".join(f"{word}{chance.randint(100, 999)}" for word in chance.choices(WORDS, k=40))


def _move(shown: str) -> str:
    found = re.findall(r"Moves on offer: ([a-z, ]+)\.", shown)
    on_offer: Sequence[str] = found[-1].split(", ")
    return next(move for move in MOVES if move in on_offer)


def _choice(shown: str, chance: Random) -> dict[str, object]:
    if posts := numbers(shown, "post"):
        return {"kind": "answer", "post": posts[0], "text": words(chance)}
    if channels := numbers(shown, "channel"):
        return {"kind": "root", "channel": channels[0], "partner": None, "text": words(chance)}
    return {"kind": "skip", "reason": "nothing is on offer"}
