"""What a driver knew when it died, left in a file for the test that killed it."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from engine.core.world import World

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class LastWords:
    """`commit_no` is the number of the group that was last sent to the store (0: none), `n_calls`
    the calls to the model that were awaited, `world` the tables in memory (None: not loaded)."""

    place: str
    commit_no: int
    n_calls: int
    world: World | None


def write(words: LastWords, file: Path) -> None:
    """Write the words, without the caches of the world: other threads may still fill those."""
    bare = None if words.world is None else _without_caches(words.world)
    left = LastWords(
        place=words.place, commit_no=words.commit_no, n_calls=words.n_calls, world=bare
    )
    file.write_bytes(pickle.dumps(left))


def read(file: Path) -> LastWords:
    """Return the words that a process of this test has left."""
    words: LastWords = pickle.loads(file.read_bytes())  # noqa: S301 (our own process wrote it)
    return words


def _without_caches(world: World) -> World:
    return World(**{one.name: getattr(world, one.name) for one in fields(World) if one.compare})
