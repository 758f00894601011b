"""The rows of the engine, one file for each part of the world."""

from __future__ import annotations

from engine.models.simulation import (
    Channel,
    ChannelMember,
    RosterEntry,
    Simulation,
    Subscription,
)

__all__ = ["Channel", "ChannelMember", "RosterEntry", "Simulation", "Subscription"]
