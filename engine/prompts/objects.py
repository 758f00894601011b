"""The one JSON object of an answer, and its fields by their kinds."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from engine.core.errors import Unusable, UnusableAnswer

_PAGE = re.compile(r"\s*<(!doctype|html|head|body)\b", re.IGNORECASE)


class _Twice(ValueError):
    """An object gives the same field twice: which one counts would be a guess."""


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise _Twice
    return fields


_DECODER = json.JSONDecoder(object_pairs_hook=_once)


@dataclass(frozen=True, slots=True)
class Answer:
    """The fields of an answer, each taken by its kind; one of another kind makes it misshapen."""

    fields: dict[str, object]

    def only(self, *names: str) -> None:
        """Refuse an object that has not exactly these fields."""
        if self.fields.keys() != set(names):
            raise UnusableAnswer(Unusable.MISSHAPEN)

    def text(self, name: str) -> str:
        value = self.fields.get(name)
        if not isinstance(value, str):
            raise UnusableAnswer(Unusable.MISSHAPEN)
        return value

    def number(self, name: str) -> int:
        return _number(self.fields.get(name))

    def numbers(self, name: str) -> list[int]:
        value = self.fields.get(name)
        if not isinstance(value, list):
            raise UnusableAnswer(Unusable.MISSHAPEN)
        return [_number(one) for one in value]

    def part(self, name: str) -> Answer:
        value = self.fields.get(name)
        if not isinstance(value, dict):
            raise UnusableAnswer(Unusable.MISSHAPEN)
        return Answer(value)


def _number(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise UnusableAnswer(Unusable.MISSHAPEN)
    return value


def only_object(text: str) -> Answer:
    """Return the only JSON object of a text; prose or a fence around it is passed over.

    It begins with the first brace: what is inside of a broken object is never taken for one.
    """
    if not text.strip():
        raise UnusableAnswer(Unusable.BLANK)
    if is_page(text):
        raise UnusableAnswer(Unusable.HTML)
    begins_at = text.find("{")
    if begins_at < 0:
        raise UnusableAnswer(Unusable.PROSE)
    try:
        fields, ends_at = _DECODER.raw_decode(text, begins_at)
    except _Twice as error:
        raise UnusableAnswer(Unusable.AMBIGUOUS) from error
    except (ValueError, RecursionError) as error:  # numbers of too many digits, too many brackets
        raise UnusableAnswer(Unusable.UNPARSABLE) from error
    if "{" in text[ends_at:]:
        raise UnusableAnswer(Unusable.AMBIGUOUS)
    return Answer(fields)


def is_page(text: str) -> bool:
    """Tell whether a text is a web page instead of an answer."""
    return _PAGE.match(text) is not None
