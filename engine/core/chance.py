"""Chance that can be replayed: one generator per decision, keyed by what is decided."""

from __future__ import annotations

from hashlib import blake2b
from random import Random


def keyed_random(seed: int, *parts: str | int) -> Random:
    """Return a generator that depends on `seed` and `parts` and on nothing else.

    Python's own `hash` is salted per process, and a shared generator would make one agent's
    luck depend on who asked before it; so every decision has a key of its own (agent, turn,
    phase, thread).
    """
    key = "\x1f".join(str(part) for part in (seed, *parts))
    return Random(int.from_bytes(blake2b(key.encode(), digest_size=16).digest(), "big"))
