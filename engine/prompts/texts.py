"""Texts of others made fit to be shown: every line behind a bar, and no longer than allowed.

Sizes are in bytes of UTF-8, as shown. A token of any of the models stands for at least one byte, so
a text has at most as many tokens as bytes, whatever the language; of plain English a bound in bytes
allows about a fourth in tokens.
"""

from __future__ import annotations

import re

#: Everything that `str.splitlines`, and with it any reader, takes for the end of a line.
_BREAK = re.compile("\r\n|[\r\v\f\x1c\x1d\x1e\x85\u2028\u2029]")
#: What no text needs, and some encoders refuse: control characters, halves of a pair.
_UNFIT = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
#: A line is shown behind a bar and a blank, and ends.
_LINE_BYTES = len("| \n")


def plain(text: str) -> str:
    """Return the text with one kind of line break, and a sign for what cannot be shown."""
    unified = _BREAK.sub("\n", text).strip("\n")
    return _UNFIT.sub("\N{REPLACEMENT CHARACTER}", unified)


def quoted(text: str) -> str:
    """Return a plain text with every line behind a bar; nothing for an empty one."""
    return "".join(f"| {line}\n" for line in text.split("\n")) if text else ""


def size(text: str) -> int:
    """Return how many bytes a text takes when it is shown; it also has at most so many tokens."""
    return len(quoted(plain(text)).encode())


def shortened(text: str, most_bytes: int) -> tuple[str, int]:
    """Return the beginning of a plain text that can be shown, and how many characters are left out."""
    kept: list[str] = []
    left = most_bytes
    for line in text.split("\n"):
        room = left - _LINE_BYTES
        encoded = line.encode()
        if len(encoded) > room:
            kept.append(encoded[: max(room, 0)].decode(errors="ignore"))
            shown = "\n".join(kept).rstrip()
            return shown, len(text) - len(shown)
        kept.append(line)
        left = room - len(encoded)
    return text, 0
