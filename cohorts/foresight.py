"""What another topology would do: the pairs it opens and closes, and who would be silent or free.

Pure, and asked of the same rules as the engine's gate. Pairs are counted, and never built: an
agent's reach is one number with a bit for each agent, so ten thousand of them are compared in well
under a second.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from cohorts.rules import Policy, Reach, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from cohorts.rules import Place, Topology

LISTED_AT_MOST: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """How many pairs there are, and the first of them as sorted agent ids."""

    n: int
    first: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Foresight:
    """What would change among the running agents; agents are ids, sorted.

    `blocked_before` and `blocked_after` are shares of all pairs, 0 to 1. `silenced` would hear
    nobody and do hear somebody, or take no part yet; `freed` would deal with everybody, being in
    no cohort any more. `lost_readers` says of how many agents an author would lose the ear.
    """

    opened: Pairs
    closed: Pairs
    blocked_before: float
    blocked_after: float
    silenced: tuple[int, ...]
    freed: tuple[int, ...]
    n_silent: int
    verdict: Verdict
    lost_readers: Mapping[int, int] = field(default_factory=dict)


def silent(topology: Topology) -> tuple[int, ...]:
    """Return, sorted, the running agents that hear no other: in no cohort, or alone in theirs."""
    agents = sorted(topology.running)
    reaches = _reaches(topology, agents)
    return tuple(agent for agent, reach in zip(agents, reaches, strict=True) if not reach)


def foresee(old: Topology, new: Topology, *, listed: int = LISTED_AT_MOST) -> Foresight:
    """Compare two topologies; at most so many pairs are named of each kind."""
    agents = sorted(old.running | new.running)
    before, after = _reaches(old, agents), _reaches(new, agents)
    opened = [after[i] & ~before[i] for i in range(len(agents))]
    closed = [before[i] & ~after[i] for i in range(len(agents))]
    silent = [i for i, agent in enumerate(agents) if agent in new.running and not after[i]]
    return Foresight(
        opened=_pairs(agents, opened, listed),
        closed=_pairs(agents, closed, listed),
        blocked_before=_blocked(before, len(old.running)),
        blocked_after=_blocked(after, len(new.running)),
        silenced=tuple(agents[i] for i in silent if before[i] or agents[i] not in old.running),
        freed=tuple(sorted(_free(new) - _free(old))),
        n_silent=len(silent),
        verdict=new.verdict,
        lost_readers={agents[i]: lost.bit_count() for i, lost in enumerate(closed) if lost},
    )


def _reaches(topology: Topology, agents: Sequence[int]) -> list[int]:
    """Return for each agent the others that it may deal with, a bit for each by its place."""
    places: list[Place] = [
        topology.cohorts(agent) if agent in topology.running else None for agent in agents
    ]
    reach = Reach(topology, places)
    return [reach.of(place) & ~(1 << number) for number, place in enumerate(places)]


def _pairs(agents: Sequence[int], masks: Sequence[int], listed: int) -> Pairs:
    n = sum(mask.bit_count() for mask in masks) // 2
    first: list[tuple[int, int]] = []
    for number, mask in enumerate(masks):
        if len(first) >= listed:
            break
        later = _bits(mask >> (number + 1), listed - len(first))
        first += [(agents[number], agents[number + 1 + other]) for other in later]
    return Pairs(n=n, first=tuple(first))


def _bits(mask: int, at_most: int) -> Iterator[int]:
    """Yield the places of the lowest bits that are set."""
    while mask and at_most > 0:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest
        at_most -= 1


def _blocked(reaches: Sequence[int], n_agents: int) -> float:
    n_pairs = n_agents * (n_agents - 1) // 2
    n_open = sum(reach.bit_count() for reach in reaches) // 2
    return 1 - n_open / n_pairs if n_pairs else 0.0


def _free(topology: Topology) -> frozenset[int]:
    """Return who deals with everybody for being in no cohort, while others do not."""
    if topology.verdict is Verdict.IN_FORCE and topology.policy is Policy.OPEN:
        return frozenset(topology.loose_running)
    return frozenset()
