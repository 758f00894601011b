"""Discover: join the channels whose topic fits the agent's interests. No model is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.core.effects import Join

if TYPE_CHECKING:
    from engine.phases.scene import Scene


def discover(scene: Scene) -> tuple[Join, ...]:
    """Return the subscription to every channel the agent wants to be in and is not."""
    channels = scene.world.to_join(scene.agent)
    return (Join(agent=scene.agent, channels=channels),) if channels else ()
