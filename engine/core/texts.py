"""Texts as every database can hold them: no NUL, no half of a surrogate pair."""

from __future__ import annotations

import re

_POISON = re.compile("[\x00\ud800-\udfff]")
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def is_storable(text: str) -> bool:
    """Tell whether every database takes the text."""
    return _POISON.search(text) is None


def storable(text: str) -> str:
    """Return the text with a replacement character where a database would refuse it."""
    return _POISON.sub(_REPLACEMENT, text)
