"""A text that others will read: in its author's own voice, and nothing but that."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from engine.core.errors import Unusable, UnusableAnswer
from engine.core.texts import is_storable
from engine.prompts.objects import is_page
from engine.prompts.texts import plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: Any chat takes fewer characters than this in one message.
_MOST_CHARACTERS = 3000
#: Speakers of the talk between a model and whoever asks it.
_ROLES = ("Assistant", "Human", "User")
_OF_PROMPTS = re.compile(
    r"^\s*</?(channel|earlier|guidance|house-rules|instructions|memory|message|post|profile|proposal"
    r"|talk|you)\b[^>]*>",
    re.MULTILINE,
)
_FENCED_OBJECT = re.compile(r"\s*(```\w*\s*)?\{\s*\"")


def own_words(text: str, me: str, others: Iterable[str]) -> str:
    """Return a text to post, without its author's own name before it; or raise `UnusableAnswer`.

    It is refused when it speaks for somebody else, or is a talk of several. A name after an at sign
    is somebody addressed, and one in a list is somebody spoken about.
    """
    _refuse(text)
    text = plain(text)
    names = {name.casefold() for name in (me, *others, *_ROLES) if name.strip()}
    labels = list(_labels(text, names))
    mine = me.casefold()
    if len({name for _, name in labels}) > 1:
        raise UnusableAnswer(Unusable.TRANSCRIPT)
    begins = len(text) - len(text.lstrip())
    for at, name in labels:
        if name != mine:
            raise UnusableAnswer(Unusable.OTHER_VOICE if at == begins else Unusable.TRANSCRIPT)
    if labels and labels[0][0] == begins:
        text = text.split(":", 1)[1].lstrip("*_ ")
    if not text.strip():
        raise UnusableAnswer(Unusable.BLANK)
    return text.strip()


def within_words(text: str, most: int) -> str:
    """Return the beginning of a text with fewer than `most` words, up to the end of a sentence."""
    text = plain(text)
    if len(text.split()) < most:
        return text
    kept, n_words = "", 0
    for sentence in _pieces(text):
        n_words += len(sentence.split())
        if n_words >= most:
            break
        kept += sentence
    return kept.strip() or " ".join(text.split()[: most - 1])


def _pieces(text: str) -> Iterator[str]:
    """Yield the sentences and lines of a text, each with the blanks that follow it."""
    start = 0
    for end in sorted({match.end() for match in re.finditer(r"\n+|(?<=[.!?…。])\s+", text)}):
        yield text[start:end]
        start = end
    yield text[start:]


def _refuse(text: str) -> None:
    """Raise for what no channel should be shown, whoever it is from."""
    if not text.strip():
        raise UnusableAnswer(Unusable.BLANK)
    if not is_storable(text):
        raise UnusableAnswer(Unusable.UNSTORABLE)
    if is_page(text):
        raise UnusableAnswer(Unusable.HTML)
    if _FENCED_OBJECT.match(text):
        raise UnusableAnswer(Unusable.MISSHAPEN)
    if _OF_PROMPTS.search(text):
        raise UnusableAnswer(Unusable.MARKS)
    if len(text) >= _MOST_CHARACTERS:
        raise UnusableAnswer(Unusable.LONG)


def _labels(text: str, names: set[str]) -> Iterator[tuple[int, str]]:
    """Yield where a line begins with one of the names and a colon, and the name."""
    for line in re.finditer(r"^[ \t]*[*_>]*([^\n:@]{1,160}?)[*_]*:", text, re.MULTILINE):
        name = line[1].strip(" \t*_").casefold()
        if name in names:
            yield line.start() + len(line[0]) - len(line[0].lstrip()), name
