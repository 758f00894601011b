"""Claims: seats and debts that a turn took before it asked a model.

A claim is tried and never waited for; it is given back when the turn ends, or turned into a fact
when its effect is taken into a group. Nothing here awaits, so a check and its claim are one step.
"""

from __future__ import annotations

from collections import defaultdict


class Claims:
    """Seats and debts that turns in flight have claimed; a key is the root's `seq`.

    An agent has one turn at a time, so its claims never compete with each other; they keep
    others from filling the seat that its answer needs.
    """

    def __init__(self) -> None:
        self._seats: defaultdict[int, set[int]] = defaultdict(set)
        self._debts: set[tuple[int, int]] = set()

    def n_seats(self, agent: int) -> int:
        """Return how many seats the agent's own turn holds."""
        return len(self._seats.get(agent, ()))

    def take_seat(self, agent: int, key: int) -> None:
        self._seats[agent].add(key)

    def take_debt(self, agent: int, root: int) -> bool:
        """Claim an answer; False if it is claimed already."""
        if (agent, root) in self._debts:
            return False
        self._debts.add((agent, root))
        return True

    def release(self, agent: int, key: int) -> bool:
        """Give back what was claimed under one key; True if a seat came free."""
        self._debts.discard((agent, key))
        held = key in self._seats.get(agent, ())
        self._seats[agent].discard(key)
        return held

    def release_all(self, agent: int) -> bool:
        """Give back all that an agent's turn still holds; True if a seat came free."""
        self._debts = {debt for debt in self._debts if debt[0] != agent}
        return bool(self._seats.pop(agent, None))

    @property
    def is_empty(self) -> bool:
        return not self._debts and not any(self._seats.values())
