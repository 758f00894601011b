"""What every store asks of a group before it looks at a row: one row per object, no NUL.

The databases disagree here (PostgreSQL refuses an upsert that meets a row twice, and a NUL in a
text; SQLite takes both), so it is decided once, for all stores alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.core.errors import RowRefused
from engine.core.texts import is_storable

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator

    from engine.core.group import Group


def check_shape(group: Group) -> None:
    """Raise `RowRefused` if a row stands twice in the group, or a text holds a NUL."""
    for table, keys in _keys(group):
        seen: set[Hashable] = set()
        for key in keys:
            if key in seen:
                raise RowRefused(f"{table} {key} stands twice in one group")
            seen.add(key)
    for text in _texts(group):
        if not is_storable(text):
            raise RowRefused("a text holds a NUL or half a surrogate pair, which no row may")


def _keys(group: Group) -> Iterator[tuple[str, Iterable[Hashable]]]:
    yield "thread", (thread.root for thread in group.threads)
    yield "invitation", ((row.agent, row.message) for row in group.invitations)
    yield "memory", ((row.memory.agent, row.memory.channel) for row in group.memories)
    yield "subscription", group.subscriptions
    yield "state of agent", (agent for agent, _ in group.states)
    yield "turn", (turn.number for turn in group.turns)
    yield "call", ((call.turn, call.number) for call in group.calls)


def _texts(group: Group) -> Iterator[str]:
    yield from (message.text for message in group.messages)
    yield from (memory.text for memory in group.memories)
    yield from (turn.detail for turn in group.turns)
    yield from (call.error for call in group.calls)
