"""Which channels an agent wants to be in: its interests against their names and topics."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from engine.core.records import AgentSpec, Channel, Visibility

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_WORD = re.compile(r"[^\W\d_]{4,}")
#: Words of topics that say nothing about what an agent does.
_COMMON = frozenset(
    "about after again also anyone being both concerns does everybody everyone everything "
    "from general have here into many more most news only other several some such than that "
    "their them then there these they this those through what when where which while "
    "will with work your".split()
)


@lru_cache(maxsize=50_000)
def _words(text: str) -> frozenset[str]:
    """Return the telling words of a text, lower case, a plural's last letter dropped."""
    return frozenset(
        word.rstrip("s") for word in _WORD.findall(text.lower()) if word not in _COMMON
    )


def wanted_channels(
    spec: AgentSpec, channels: Iterable[Channel], members_of: Mapping[int, frozenset[int]]
) -> tuple[int, ...]:
    """Return the channels that an agent joins, ascending.

    These are its private channels, the first public one (where everybody meets), and every public
    one whose name or topic shares a telling word with its interests; without interests of its own
    the profile stands in for them.
    """
    own = _words(spec.interests or spec.public_profile)
    wanted = []
    met = False
    for channel in sorted(channels, key=lambda channel: channel.id):
        if channel.visibility is Visibility.PRIVATE:
            if spec.id in members_of.get(channel.id, ()):
                wanted.append(channel.id)
        elif not met or not own.isdisjoint(_words(f"{channel.name} {channel.topic}")):
            wanted.append(channel.id)
            met = True
    return tuple(wanted)
