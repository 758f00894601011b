"""A draft of the world: what a group of effects would make of it.

Every check reads through the draft, so an effect sees what the earlier ones of its group took;
nothing in the world changes until the group is stored and the draft absorbed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar, overload

from engine.core.records import Status, Visibility
from engine.core.world import FRESH, NOBODY, World

if TYPE_CHECKING:
    from datetime import datetime

    from engine.core.claims import Claims
    from engine.core.config import RunConfig
    from engine.core.effects import TurnRecord
    from engine.core.gate import Gate
    from engine.core.group import Group
    from engine.core.participation import Rules
    from engine.core.records import (
        AgentSpec,
        AgentState,
        Channel,
        Desk,
        Invitation,
        Memory,
        PairHistory,
        Root,
        Thread,
    )

K = TypeVar("K")
V = TypeVar("V")
D = TypeVar("D")


class Overlay(Generic[K, V]):
    """A table with changes on top: reads like a dict, leaves the one below as it is."""

    __slots__ = ("base", "changed")

    def __init__(self, base: dict[K, V]) -> None:
        self.base = base
        self.changed: dict[K, V | None] = {}

    @overload
    def get(self, key: K) -> V | None: ...
    @overload
    def get(self, key: K, default: V) -> V: ...
    def get(self, key: K, default: V | None = None) -> V | None:
        if key in self.changed:
            value = self.changed[key]
            return default if value is None else value
        return self.base.get(key, default)

    def __getitem__(self, key: K) -> V:
        value = self.get(key)
        if value is None:
            raise KeyError(key)
        return value

    def __setitem__(self, key: K, value: V) -> None:
        self.changed[key] = value

    def remove(self, key: K) -> None:
        self.changed[key] = None

    def absorb(self) -> None:
        """Write the changes into the table below."""
        for key, value in self.changed.items():
            if value is None:
                self.base.pop(key, None)
            else:
                self.base[key] = value


@dataclass(slots=True)
class Concern:
    """Whom an applied group concerns, in the order of the effects.

    `agents` directly; `roots`, new ones, and `reopened`, old ones, those who read their feeds;
    `seats` those who wait for a seat or a pair of these agents; `talks` those invited to these
    roots, whose threads changed; `everybody` when nothing narrower is known. `threads` are those
    that changed and are open.
    """

    agents: dict[int, None] = field(default_factory=dict)
    roots: list[Root] = field(default_factory=list)
    reopened: list[Root] = field(default_factory=list)
    seats: dict[int, None] = field(default_factory=dict)
    talks: list[int] = field(default_factory=list)
    threads: list[Thread] = field(default_factory=list)
    everybody: bool = False


class Draft:
    """The world with the changes of one group on top, and the group's rows."""

    def __init__(
        self,
        world: World,
        *,
        rules: Rules,
        group: Group,
        n_selections: int,
    ) -> None:
        self.world = world
        self.rules = rules
        self.group = group
        self.n_selections = n_selections
        self.turn: TurnRecord | None = None
        self.gate: Gate = world.gate
        self.last_seq = world.last_seq
        self.agents: Overlay[int, AgentSpec] = Overlay(world.agents)
        self.channels: Overlay[int, Channel] = Overlay(world.channels)
        self.states: Overlay[int, AgentState] = Overlay(world.states)
        self.desks: Overlay[int, Desk] = Overlay(world.desks)
        self.subscriptions: Overlay[int, tuple[int, ...]] = Overlay(world.subscriptions)
        self.roots: Overlay[int, Root] = Overlay(world.roots)
        self.threads: Overlay[int, Thread] = Overlay(world.threads)
        self.pairs: Overlay[tuple[int, int], PairHistory] = Overlay(world.pairs)
        self.memories: Overlay[tuple[int, int | None], Memory] = Overlay(world.memories)
        self.handles = world.handles
        self.may_start = True
        self.changed_threads: dict[int, Thread] = {}
        self.changed_invitations: dict[tuple[int, int], Invitation] = {}
        self.changed_turns: dict[int, TurnRecord] = {}
        self.concern = Concern()
        self.n_messages_of_hand_in = 0

    @property
    def config(self) -> RunConfig:
        return self.rules.config

    @property
    def claims(self) -> Claims:
        return self.rules.claims

    @property
    def now(self) -> datetime:
        """The time that this group stamps on all it stores."""
        return self.group.at

    def next_seq(self) -> int:
        self.last_seq += 1
        return self.last_seq

    def desk(self, agent: int) -> Desk:
        return self.desks.get(agent, NOBODY)

    def state(self, agent: int) -> AgentState:
        return self.states.get(agent, FRESH)

    def set_state(self, agent: int, state: AgentState) -> None:
        self.states[agent] = state

    def set_agent(self, spec: AgentSpec) -> None:
        """Replace an agent's specification whole; the handles follow."""
        if self.handles is self.world.handles:
            self.handles = dict(self.handles)
        old = self.agents.get(spec.id)
        if old is not None and self.handles.get(old.bot_name.lower()) == spec.id:
            self.handles.pop(old.bot_name.lower(), None)
        self.handles[spec.bot_name.lower()] = spec.id
        self.agents[spec.id] = spec

    def is_active(self, agent: int) -> bool:
        spec = self.agents.get(agent)
        return spec is not None and spec.status is Status.ACTIVE

    def is_out_for_good(self, agent: int) -> bool:
        """True of an agent that retired or left: what it owes will never be said."""
        spec = self.agents.get(agent)
        return spec is None or spec.status is Status.RETIRED

    def is_private(self, channel: int) -> bool:
        return self.channels[channel].visibility is Visibility.PRIVATE

    def starts_interaction(self) -> None:
        """Bind the group to the version that its effects were checked under."""
        self.group.topology_version = self.gate.version

    def finish(self) -> Group:
        """Return the group with every changed record once, as it stands at the end."""
        group = self.group
        group.threads = list(self.changed_threads.values())
        group.invitations = list(self.changed_invitations.values())
        group.turns = list(self.changed_turns.values())
        group.states = [
            (agent, state) for agent, state in self.states.changed.items() if state is not None
        ]
        return group

    def _reopened(self) -> list[Root]:
        """Return the roots that were closed and may be answered again."""
        changed = (root for root in self.roots.changed.values() if root is not None)
        known = ((self.world.roots.get(root.seq), root) for root in changed)
        return [root for old, root in known if old is not None and old.closed and not root.closed]

    def absorb(self) -> Concern:
        """Make the world what the draft says, all at once; return whom that concerns."""
        world = self.world
        self.concern.reopened = self._reopened()
        if self.concern.reopened:
            world.skimmed.clear()
        for table in (
            self.agents,
            self.channels,
            self.states,
            self.desks,
            self.subscriptions,
            self.roots,
            self.threads,
            self.pairs,
            self.memories,
        ):
            table.absorb()
        world.last_seq = self.last_seq
        world.commit_no = self.group.number
        world.handles = self.handles
        for agent in self.subscriptions.changed:
            world.skimmed.pop(agent, None)
        if self.channels.changed:
            world.wanted.clear()
        for agent in self.agents.changed:
            world.wanted.pop(agent, None)
        if self.group.adopted is not None:
            world.gate = self.group.adopted
            world.rebuild_caches()
        else:
            for root in self.concern.roots:
                world.publish(root)
            for spec in self.agents.changed.values():
                assert spec is not None  # agents are replaced, never removed
                world.index_agent(spec)
        world.handles = self.handles
        self.concern.talks = list(self.threads.changed)
        self.concern.threads = [row for row in self.threads.changed.values() if row is not None]
        return self.concern
