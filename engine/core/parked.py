"""The parked, by what could wake them: an event touches only those it concerns."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from engine.core.world import FeedKey


class Parked:
    """Parked agents under the feeds that they read, the agents whose seats they wait for, and the
    roots whose threads they wait for.

    Insertion order is kept, so that who is woken first never depends on a hash.
    """

    def __init__(self) -> None:
        self._by_feed: dict[FeedKey, dict[int, None]] = {}
        self._by_seat: dict[int, dict[int, None]] = {}
        self._by_root: dict[int, dict[int, None]] = {}
        self._keys: dict[int, tuple[tuple[FeedKey, ...], tuple[int, ...], tuple[int, ...]]] = {}

    def add(
        self,
        agent: int,
        feeds: Iterable[FeedKey],
        waits_for: tuple[int, ...],
        roots: tuple[int, ...] = (),
    ) -> None:
        """Park an agent; what it was parked under before is forgotten."""
        self.discard(agent)
        keys = tuple(feeds)
        self._keys[agent] = (keys, waits_for, roots)
        for key in keys:
            self._by_feed.setdefault(key, {})[agent] = None
        for other in waits_for:
            self._by_seat.setdefault(other, {})[agent] = None
        for root in roots:
            self._by_root.setdefault(root, {})[agent] = None

    def discard(self, agent: int) -> None:
        """Take an agent out; one that is not parked is left alone."""
        feeds, waits_for, roots = self._keys.pop(agent, ((), (), ()))
        for key in feeds:
            self._by_feed[key].pop(agent, None)
        for other in waits_for:
            self._by_seat[other].pop(agent, None)
        for root in roots:
            self._by_root[root].pop(agent)
            if not self._by_root[root]:
                del self._by_root[root]

    def readers(self, keys: Iterable[FeedKey]) -> Iterator[int]:
        """Yield those who read one of these feeds."""
        for key in keys:
            yield from tuple(self._by_feed.get(key, ()))

    def waiting_for(self, agent: int) -> tuple[int, ...]:
        """Return those who wait for a seat or a thread of this agent."""
        return tuple(self._by_seat.get(agent, ()))

    def invited_to(self, root: int) -> tuple[int, ...]:
        """Return those who wait to answer a root."""
        return tuple(self._by_root.get(root, ()))
