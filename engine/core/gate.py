"""What the engine needs to know of a topology; `cohorts.rules.Topology` is one.

The engine never imports `cohorts`: a whole run in memory takes any value of this shape.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, Self

if TYPE_CHECKING:
    from collections.abc import Mapping


class Decision(Protocol):
    """The answer of the gate with the rule that gave it."""

    @property
    def permitted(self) -> bool: ...
    @property
    def rule(self) -> str: ...
    @property
    def reason(self) -> str: ...
    @property
    def shared(self) -> tuple[str, ...]: ...


class Gate(Protocol):
    """One version of who may act on whom. Immutable; symmetric for every pair of agents.

    `publishes` and `reads` are the same relation as an index: `permits(a, b)` holds exactly
    when a key of `publishes(b)` is among `reads(a)`. Keys are sorted, so that nothing that
    follows depends on the order of a set.
    """

    @property
    def version(self) -> int: ...
    @property
    def policy(self) -> str: ...
    @property
    def verdict(self) -> str: ...
    @property
    def members_of(self) -> Mapping[int, frozenset[int]]:
        """Members of each private channel."""
        ...

    def permits(self, actor: int, author: int) -> bool: ...

    def decide(
        self,
        actor: int,
        *,
        author: int | None,
        is_bot: bool,
        private_channel: int | None = None,
        own_open_thread: bool = False,
    ) -> Decision: ...

    def publishes(self, author: int | None, *, is_bot: bool) -> tuple[int, ...]: ...

    def reads(self, agent: int) -> tuple[int, ...]: ...

    def shared(self, actor: int, author: int) -> tuple[str, ...]:
        """Names of the cohorts that both are in, sorted."""
        ...

    def changed_since(self, old: Self) -> tuple[int, ...]:
        """Agents whose mates, cohorts or private channels differ from `old`'s, sorted."""
        ...

    def gained_since(self, old: Self) -> tuple[int, ...]:
        """Agents that may deal with somebody, or in a private channel, anew, sorted."""
        ...
