"""A world from what the store loaded: the one way it is made, at the start and after a fault."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
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
    for agent, root in sorted(loaded.unreviewed):
        desk = desks[agent]
        desks[agent] = replace(desk, unreviewed=(*desk.unreviewed, root))
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
    """Return the names of the tables in which two worlds differ; empty rows do not count."""
    differing = []
    for world in (one, other):
        world.trim()
    tables = (
        "gate last_seq agents channels states desks subscriptions roots threads pairs memories"
    ).split()
    for name in tables:
        ours, theirs = getattr(one, name), getattr(other, name)
        if name == "desks":
            ours = {agent: desk for agent, desk in ours.items() if desk != NOBODY}
            theirs = {agent: desk for agent, desk in theirs.items() if desk != NOBODY}
        if ours != theirs:
            differing.append(name)
    return differing
