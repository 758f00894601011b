"""Mentions: the one tokenizer that finds `@BotName` in a text and takes it out of one.

A mention starts a token: it does not follow a letter, digit, underscore, dot, slash, hyphen or
another `@`, so that mail addresses and paths address nobody. It ends at a word boundary that no
further `@` follows. Handles are given in lower case; matching ignores case.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_MENTION = re.compile(r"(?<![\w./@-])@([A-Za-z][A-Za-z0-9_]*)(?![\w@])")
_BLANKS = " \t"
_LINE_ENDS = "\r\n"
_PAIRED_MARKUP = "*~`"
_OPENERS = "([{\"'*~`"
_NOTHING_SAID = re.compile(r"[\s*_~`>#|:;,.()\[\]{}+-]*")


def find_mentions(text: str, handles: Mapping[str, int]) -> tuple[int, ...]:
    """Return whom `text` mentions, in order of first appearance, each once.

    `handles` maps bot names in lower case to agent numbers; a name that it lacks mentions nobody.
    """
    found = (handles.get(match[1].lower()) for match in _MENTION.finditer(text))
    return tuple(dict.fromkeys(agent for agent in found if agent is not None))


def first_mentioned(text: str, handles: Mapping[str, int], author: int | None) -> int | None:
    """Return the agent that a root by `author` is addressed to, or None: it is open to all.

    An author's own name addresses nobody. `author` is None for a person.
    """
    return next((agent for agent in find_mentions(text, handles) if agent != author), None)


def strip_mentions(
    text: str, handles: Mapping[str, int], keep: Callable[[int], bool]
) -> tuple[str, int]:
    """Return `text` without the mentions of known agents that `keep` refuses, and how many.

    The whole mention goes, with markup that holds nothing else and the blanks before it. Only
    the gap it leaves is tidied: indentation, lists and code elsewhere stay as they are. Unknown
    names stay. The result stripped again is the same.
    """
    stripped, position, n_removed = "", 0, 0
    for match in _MENTION.finditer(text):
        agent = handles.get(match[1].lower())
        if agent is None or keep(agent):
            continue
        start, end = _with_markup(text, match, position)
        stripped += text[position:start]
        position = _blanks_end(text, end)
        stripped = _close_gap(stripped, text, end, position)
        n_removed += 1
    return stripped + text[position:], n_removed


def says_nothing(text: str) -> bool:
    """Whether only blanks, markup and punctuation are left, so that it must not be posted."""
    return _NOTHING_SAID.fullmatch(text) is not None


def _with_markup(text: str, match: re.Match[str], floor: int) -> tuple[int, int]:
    """Return the span of a mention with the paired markup that encloses it and nothing else."""
    start, end = match.span()
    while (
        start > floor
        and text[start - 1] in _PAIRED_MARKUP
        and text[end : end + 1] == (text[start - 1])
    ):
        start, end = start - 1, end + 1
    # Were a word or another mention to follow, closing the gap would join it to what is before.
    joins = text[end : end + 1].isalnum() or text[end : end + 1] in {"_", "@"}
    return match.span() if joins else (start, end)


def _blanks_end(text: str, position: int) -> int:
    while text[position : position + 1] and text[position] in _BLANKS:
        position += 1
    return position


def _close_gap(before: str, text: str, start: int, end: int) -> str:
    """Return `before` with what shall stand for the blanks `text[start:end]` after a mention."""
    line = before[max(map(before.rfind, _LINE_ENDS)) + 1 :]
    if end == len(text) or text[end] in _LINE_ENDS:
        return before.rstrip(_BLANKS)
    if not line.strip(_BLANKS) or line[-1] in _OPENERS:
        return before
    return before.rstrip(_BLANKS) + (" " if end > start else "")
