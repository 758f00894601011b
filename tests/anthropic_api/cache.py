"""The prompt cache: which tokens of a prompt are read, written, or neither.

https://platform.claude.com/docs/en/build-with-claude/prompt-caching. An entry is written only where
a mark stands; a mark finds the longest entry at its own place or before, at most twenty places back
(tool uses in a row are one place, results too); an entry lives from the start of the request that
wrote or last read it; and a request reads none that was written after it began. The least length
differs by model (512 to 4,096); this server has one for all.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate

from tests.anthropic_api.prompt import SECONDS, Part

LOOKBACK = 20
IN_A_ROW = {"tool_use", "tool_result"}


@dataclass(slots=True)
class Entry:
    """A kept prefix, by its hash. `written`: the number of the write; seconds of the clock."""

    written: int
    seconds: int
    used_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """The tokens of a prompt; they add up to all of it."""

    plain: int
    write_5m: int
    write_1h: int
    read: int

    @property
    def total(self) -> int:
        return self.plain + self.write_5m + self.write_1h + self.read


def _digests(seed: str, parts: tuple[Part, ...]) -> list[bytes]:
    """Return the hash of every prefix, the whole prompt last."""
    steps = accumulate(
        (part.identity for part in parts),
        lambda before, part: hashlib.blake2b(part, key=before).digest(),
        initial=hashlib.blake2b(seed.encode()).digest(),
    )
    return list(steps)[1:]


def _window(parts: tuple[Part, ...], mark: int) -> Iterator[int]:
    """The places at which a mark looks for an entry, nearest first."""
    n_places = 0
    for place in range(mark, -1, -1):
        joined = place < mark and parts[place].kind in IN_A_ROW
        if not (joined and parts[place].kind == parts[place + 1].kind):
            n_places += 1
        if n_places > LOOKBACK:
            return
        yield place


@dataclass(slots=True, kw_only=True)
class PromptCache:
    """The entries of all keys and models; its owner takes care that one thread uses it."""

    least_tokens: int
    n_written: int = 0
    entries: dict[bytes, Entry] = field(default_factory=dict)

    def charge(self, seed: str, parts: tuple[Part, ...], *, began_at: float, n_seen: int) -> Split:
        """Read and write for a request that is being answered. `seed` keeps keys and models apart;
        `n_seen`: how many writes there were when it began."""
        digests = _digests(seed, parts)
        sums = list(accumulate(part.tokens for part in parts))
        marks = [
            place
            for place, part in enumerate(parts)
            if part.mark_seconds and sums[place] >= self.least_tokens
        ]
        hit = max(
            (
                place
                for mark in marks
                for place in _window(parts, mark)
                if sums[place] >= self.least_tokens
                and self._is_readable(digests[place], began_at, n_seen)
            ),
            default=None,
        )
        if hit is not None:
            self._keep(digests[hit], 0, began_at)
        for mark in marks:
            self._keep(digests[mark], parts[mark].mark_seconds, began_at)
        return _split(parts, sums, marks, 0 if hit is None else sums[hit])

    def _is_readable(self, digest: bytes, now: float, n_seen: int) -> bool:
        entry = self.entries.get(digest)
        return entry is not None and entry.written <= n_seen and now - entry.used_at < entry.seconds

    def _keep(self, digest: bytes, seconds: int, began_at: float) -> None:
        entry = self.entries.get(digest)
        if entry is not None and began_at - entry.used_at < entry.seconds:
            entry.used_at = max(entry.used_at, began_at)
            return
        self.n_written += 1
        self.entries[digest] = Entry(self.n_written, seconds, began_at)


def _split(parts: tuple[Part, ...], sums: list[int], marks: list[int], read: int) -> Split:
    """Bill what lies between the hit and the last mark of an hour as one kind of write, what lies
    between that and the last mark as the other."""
    hour = max(
        (sums[mark] for mark in marks if parts[mark].mark_seconds == SECONDS["1h"]), default=0
    )
    last = max((sums[mark] for mark in marks), default=0)
    long_until = max(read, hour)
    until = max(long_until, last)
    return Split(
        plain=sums[-1] - until, write_5m=until - long_until, write_1h=long_until - read, read=read
    )
