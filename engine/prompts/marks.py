"""Texts of others as data: between marks that no text can close.

Every line of a text stands behind a bar, so a line without one is always ours. What is said in a
mark about a text is one line without quotes, brackets and bars.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from engine.prompts.texts import plain, quoted, shortened

if TYPE_CHECKING:
    from collections.abc import Mapping

_BLANKS = re.compile(r"\s+")
_OF_MARKS = re.compile(r'["<>|]')
_MOST_CHARACTERS = 120


def word(text: str) -> str:
    """Return a name or topic as it may stand in a mark: short, on one line, unable to end it."""
    line = _BLANKS.sub(" ", _OF_MARKS.sub(" ", plain(text))).strip()
    return line if len(line) <= _MOST_CHARACTERS else f"{line[:_MOST_CHARACTERS]}…"


def marked(
    tag: str, text: str, most_bytes: int, about: Mapping[str, str | int] | None = None
) -> str:
    """Return a text between its marks, shortened to fit; the mark says how much is left out."""
    kept, n_left_out = shortened(plain(text), most_bytes)
    said = {name: word(str(value)) for name, value in (about or {}).items()}
    if n_left_out:
        said["left-out"] = f"the last {n_left_out} characters"
    inside = "".join(f' {name}="{value}"' for name, value in said.items() if value)
    return f"<{tag}{inside}>\n{quoted(kept)}</{tag}>\n"
