"""A world from what the store loaded: the one way it is made, at the start and after a fault."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import fields, replace
from typing import TYPE_CHECKING

from engine.core.world import NOBODY, World

if TYPE_CHECKING:
    from engine.core.records import Desk
    from engine.ports.store import Loaded


def world_from(loaded: Loaded) -> World:
    """Build the world of a snapshot, its caches included."""
    world = World(
        gate=loaded.gate,
        commit_no=loaded.commit_no,
        last_seq=loaded.last_seq,
        agents={spec.id: spec for spec in loaded.agents},
        channels={channel.id: channel for channel in loaded.channels},
        states=dict(loaded.states),
        desks=_desks(loaded),
        subscriptions=_subscriptions(loaded),
        roots={root.seq: root for root in loaded.roots},
        threads={thread.root: thread for thread in loaded.threads},
        pairs=dict(loaded.pairs),
        memories={(memory.agent, memory.channel): memory for memory in loaded.memories},
    )
    world.trim()
    return world


def _desks(loaded: Loaded) -> dict[int, Desk]:
    desks: defaultdict[int, Desk] = defaultdict(lambda: NOBODY)
    for thread in sorted(loaded.threads, key=lambda thread: thread.root):
        for side in thread.sides:
            desk = desks[side.agent]
            desks[side.agent] = replace(desk, threads=(*desk.threads, thread.root))
    for invitation in sorted(loaded.invitations, key=lambda invitation: invitation.message):
        desk = desks[invitation.agent]
        desks[invitation.agent] = replace(desk, invitations=(*desk.invitations, invitation))
    for agent, root, cycle in sorted(loaded.unreviewed):
        desk = desks[agent]
        desks[agent] = replace(desk, unreviewed=(*desk.unreviewed, (root, cycle)))
    for agent, talk in sorted(loaded.untold, key=lambda row: (row[1].closed_seq, row[1].root)):
        desk = desks[agent]
        desks[agent] = replace(desk, untold=(*desk.untold, talk))
    return dict(desks)


def _subscriptions(loaded: Loaded) -> dict[int, tuple[int, ...]]:
    joined: defaultdict[int, list[int]] = defaultdict(list)
    for agent, channel in sorted(loaded.subscriptions):
        joined[agent].append(channel)
    return {agent: tuple(channels) for agent, channels in joined.items()}


def same_world(one: World, other: World) -> list[str]:
    """Return the names of the fields in which two worlds differ, as far as worlds must be equal.

    Caches are not compared (`World` marks them), nor roots that nobody needs any more, nor empty
    desks. Neither world is changed.
    """
    ours, theirs = _bare(one), _bare(other)
    return [
        table.name
        for table in fields(World)
        if table.compare and getattr(ours, table.name) != getattr(theirs, table.name)
    ]


def _bare(world: World) -> World:
    """Return a world with the same rows, but for those that may linger in a live one."""
    bare = replace(
        world, desks={agent: desk for agent, desk in world.desks.items() if desk != NOBODY}
    )
    bare.trim()  # sets new tables: the old ones stay as they are
    return bare
