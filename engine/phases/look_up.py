"""Look-ups for a reply: what the agent may read today, of profiles and of what was said."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.core.records import Visibility
from engine.ports.llm import Hits, ReadProfile, SearchMessages

if TYPE_CHECKING:
    from engine.phases.scene import Scene
    from engine.ports.llm import Found, LookUp, Profile
    from engine.ports.store import StoredMessage

#: A search shows at most this many messages,
HITS = 8
#: out of so many newest ones that hold the words: the gate keeps some of them.
CANDIDATES = 50
#: A search goes by the first words only,
WORDS = 5
#: and by words that are longer than this.
SHORT = 2


async def look_up(scene: Scene, wanted: LookUp) -> Found:
    """Return what was wanted; None if there is no such thing that the agent may read."""
    match wanted:
        case ReadProfile(name=name):
            return _profile(scene, name)
        case SearchMessages(words=words):
            return await _search(scene, words)


def _profile(scene: Scene, name: str) -> Profile | None:
    """Return the profile of the agent with this name: a mate, or the other side of an open thread."""
    other = scene.world.handles.get(name.strip().removeprefix("@").lower())
    if other is None or not _may_read(scene, other):
        return None
    return scene.profile(other)


def _may_read(scene: Scene, other: int) -> bool:
    world = scene.world
    threads = (world.threads[root] for root in world.desk(scene.agent).threads)
    return (
        other == scene.agent
        or world.gate.permits(scene.agent, other)
        or any(thread.other(scene.agent) == other for thread in threads)
    )


async def _search(scene: Scene, words: str) -> Hits | None:
    """Return the newest messages with these words, of those that the gate lets the agent act on."""
    wanted = tuple(word for word in words.split() if len(word) > SHORT)[:WORDS]
    if not wanted:
        return None
    candidates = await scene.store.search(wanted, channels=_channels(scene), most=CANDIDATES)
    readable = [message for message in candidates if _is_readable(scene, message)]
    return Hits(
        entries=tuple(scene.entry(message) for message in reversed(readable[:HITS])),
        is_cut=len(readable) > HITS or len(candidates) == CANDIDATES,
    )


def _channels(scene: Scene) -> tuple[int, ...]:
    """Return the public channels, and the private ones that the agent is in."""
    members_of = scene.world.gate.members_of
    return tuple(
        channel.id
        for channel in scene.world.channels.values()
        if channel.visibility is Visibility.PUBLIC or scene.agent in members_of.get(channel.id, ())
    )


def _is_readable(scene: Scene, message: StoredMessage) -> bool:
    world = scene.world
    if message.author == scene.agent:
        return True
    is_private = world.channels[message.channel].visibility is Visibility.PRIVATE
    root = message.seq if message.root is None else message.root
    return world.gate.decide(
        scene.agent,
        author=message.author,
        is_bot=message.is_bot,
        private_channel=message.channel if is_private else None,
        own_open_thread=root in world.desk(scene.agent).threads,
    ).permitted
