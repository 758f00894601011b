"""Who may act on whom: pure rules over one frozen topology.

Cohorts decide what an agent may act on, never what anybody may see. Nothing here reads a
database: `cohorts.gate` loads the rows, `build_topology` turns them into one `Topology`, which
answers every question of a run. Ids are database keys. Whatever leaves as a sequence is sorted,
so that no order depends on how a set happens to lie in memory.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

EVERYBODY: Final = -1
"""Feed key that every agent reads: entries which the gate keeps from nobody."""
COHORTED: Final = -2
"""Feed key of all agents that are in a cohort; under `open` agents in none read it."""

_NOBODY: Final[frozenset[int]] = frozenset()
Place = frozenset[int] | None
"""An agent's cohorts, None while it is unknown."""
_Move = tuple[Place, Place]
"""An agent's place in the old and in the new topology."""


class Policy(StrEnum):
    """What the gate does with an agent that is in no cohort: everybody, nobody, or no gate."""

    OPEN = "open"
    ISOLATED = "isolated"
    OFF = "off"


class Verdict(StrEnum):
    """What the preflight found: a refused gate is treated as off, so it silences nobody."""

    IN_FORCE = "in_force"
    OFF = "off"
    REFUSED = "refused"


class Rule(StrEnum):
    """The step of the decision order that answered."""

    PREFLIGHT = "preflight"
    OFF = "1"
    PERSON = "2"
    PRIVATE_CHANNEL = "3"
    OPEN_THREAD = "4"
    UNATTRIBUTED = "5"
    COHORTS = "6"
    APART = "7"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """One answer of the gate: with its rule, a sentence for people, and the shared cohorts."""

    permitted: bool
    rule: Rule
    reason: str
    shared: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """Everything the gate answers from, at one version; made by `build_topology` alone.

    `agents` are all known agents, whatever their status, so that old entries stay attributable;
    `cohorts_of` holds only agents that are in a cohort; `members_of` maps private channels to
    their agents; `loose_running` are running agents in no cohort.
    """

    version: int
    policy: Policy
    verdict: Verdict
    cohorts_of: Mapping[int, frozenset[int]]
    names: Mapping[int, str]
    agents: frozenset[int]
    running: frozenset[int]
    members_of: Mapping[int, frozenset[int]]
    loose_running: tuple[int, ...]

    def permits(self, actor: int, author: int) -> bool:
        """Tell whether two agents may deal with each other; symmetric for every pair.

        An unknown agent is permitted only while no gate is in force.
        """
        if self.verdict is not Verdict.IN_FORCE:
            return True
        if actor not in self.agents or author not in self.agents:
            return False
        return actor == author or self.meet(self.cohorts(actor), self.cohorts(author))

    def decide(
        self,
        actor: int,
        *,
        author: int | None,
        is_bot: bool,
        private_channel: int | None = None,
        own_open_thread: bool = False,
    ) -> Decision:
        """Decide whether `actor` may act on an entry, in the order of the rules.

        `author` is the agent of an entry, None where it cannot be attributed. What makes an
        entry a person's is `is_bot` alone, never a missing author. `own_open_thread` says that
        the entry is in a thread which the actor already has open.
        """
        if self.verdict is Verdict.REFUSED:
            return _yes(
                Rule.PREFLIGHT,
                "The gate is treated as off: the policy is isolated and no running agent is in "
                "a cohort.",
            )
        if self.verdict is Verdict.OFF:
            return _yes(Rule.OFF, "The policy is off: there is no gate.")
        if not is_bot:
            return _yes(Rule.PERSON, "The entry is by a person.")
        if private_channel is not None and actor in self.members_of.get(private_channel, _NOBODY):
            return _yes(
                Rule.PRIVATE_CHANNEL, "The entry is in a private channel that the actor belongs to."
            )
        if own_open_thread:
            return _yes(
                Rule.OPEN_THREAD, "The entry is in a thread that the actor already has open."
            )
        return self._decide_between(actor, author)

    def publishes(self, author: int | None, *, is_bot: bool) -> tuple[int, ...]:
        """Return the feed keys under which an entry is filed, sorted.

        For two different known agents, `permits(a, b)` is true exactly when a key of
        `publishes(b, is_bot=True)` is in `reads(a)`. A bot that cannot be attributed is filed
        under none.
        """
        if self.verdict is not Verdict.IN_FORCE or not is_bot:
            return (EVERYBODY,)
        if author is None or author not in self.agents:
            return ()
        cohorts = self.cohorts(author)
        if self.policy is Policy.ISOLATED:
            return tuple(sorted(cohorts))
        return (COHORTED, *sorted(cohorts)) if cohorts else (EVERYBODY,)

    def reads(self, agent: int) -> tuple[int, ...]:
        """Return the feed keys that a known agent reads, sorted."""
        if self.verdict is not Verdict.IN_FORCE:
            return (EVERYBODY,)
        cohorts = self.cohorts(agent)
        if self.policy is Policy.OPEN and not cohorts:
            return (COHORTED, EVERYBODY)
        return (EVERYBODY, *sorted(cohorts))

    def shared(self, one: int, other: int) -> tuple[str, ...]:
        """Return the names of the cohorts that two agents share, sorted."""
        return tuple(sorted(self.names[key] for key in self.cohorts(one) & self.cohorts(other)))

    def changed_since(self, old: Topology) -> tuple[int, ...]:
        """Return, sorted, the agents whose gate differs from the one of `old`."""
        return mates_changed(old, self)

    def gained_since(self, old: Topology) -> tuple[int, ...]:
        """Return, sorted, the agents that may deal with somebody, or in a channel, anew."""
        return gainers(old, self)

    def cohorts(self, agent: int) -> frozenset[int]:
        """Return the cohorts of an agent, by id; empty for one in none."""
        return self.cohorts_of.get(agent, _NOBODY)

    def meet(self, one: frozenset[int], other: frozenset[int]) -> bool:
        """Apply the pair rule to the cohorts of two different known agents; the gate is in force."""
        if not one.isdisjoint(other):
            return True
        return self.policy is Policy.OPEN and not (one and other)

    def _decide_between(self, actor: int, author: int | None) -> Decision:
        """Apply rules 5 to 7: only the two agents count now."""
        if author is None or author not in self.agents:
            return Decision(
                permitted=False,
                rule=Rule.UNATTRIBUTED,
                reason="The entry is by a bot that is not a known agent.",
            )
        shared = self.shared(actor, author)
        if self.permits(actor, author):
            return _yes(Rule.COHORTS, self._why_permitted(actor, author, shared), shared)
        return Decision(
            permitted=False,
            rule=Rule.APART,
            reason=f"They share no cohort, and the policy is {self.policy}.",
        )

    def _why_permitted(self, actor: int, author: int, shared: tuple[str, ...]) -> str:
        if actor == author:
            return "The entry is the actor's own."
        if shared:
            return f"They share {_listed(shared)}."
        who = "the author" if self.cohorts(actor) else "the actor"
        return f"The policy is open, and {who} is in no cohort."


def build_topology(
    *,
    version: int,
    policy: Policy,
    memberships: Iterable[tuple[int, int]],
    names: Mapping[int, str],
    agents: Iterable[int],
    running: Iterable[int],
    members_of: Mapping[int, Iterable[int]],
) -> Topology:
    """Make the topology of one version and run the preflight.

    `memberships` are (cohort id, agent id); those of unknown agents are inert. The policy
    `isolated` with no running member would silence everybody: the verdict is then `refused`.
    """
    known = frozenset(agents)
    at_work = frozenset(running) & known
    cohorts_of: defaultdict[int, set[int]] = defaultdict(set)
    for cohort, agent in memberships:
        if agent in known:
            cohorts_of[agent].add(cohort)
    return Topology(
        version=version,
        policy=policy,
        verdict=_preflight(policy, any_running_member=not at_work.isdisjoint(cohorts_of)),
        cohorts_of={agent: frozenset(cohorts) for agent, cohorts in cohorts_of.items()},
        names=names,
        agents=known,
        running=at_work,
        members_of={channel: frozenset(members) for channel, members in members_of.items()},
        loose_running=tuple(sorted(at_work - cohorts_of.keys())),
    )


def mates_changed(old: Topology, new: Topology) -> tuple[int, ...]:
    """Return, sorted, the agents whose gate differs: mates, own cohorts or private channels."""
    if _rule_changed(old, new):
        return tuple(sorted(old.agents | new.agents))
    moved = _moved(old, new)
    differing = _with_a_pair(old, new, moved, lambda before, after: before ^ after)
    return tuple(sorted(moved | differing | _joined(old, new) | _joined(new, old)))


def gainers(old: Topology, new: Topology) -> tuple[int, ...]:
    """Return, sorted, the agents that may deal with somebody, or in a private channel, anew."""
    moved = old.agents | new.agents if _rule_changed(old, new) else _moved(old, new)
    gaining = _with_a_pair(old, new, moved, lambda before, after: after & ~before)
    return tuple(sorted(gaining | _joined(old, new)))


def gained(old: Topology, new: Topology, agent: int) -> bool:
    """Tell whether one agent is among the `gainers`; for many agents, ask for those once."""
    return agent in gainers(old, new)


class Reach:
    """Whom agents may deal with in one topology: a bit for each group of agents at one place."""

    def __init__(self, topology: Topology, places: Iterable[Place]) -> None:
        self._gated = topology.verdict is Verdict.IN_FORCE
        self._open = topology.policy is Policy.OPEN
        self._known = self._loose = 0
        self._in_cohort: defaultdict[int, int] = defaultdict(int)
        for number, place in enumerate(places):
            if place is not None:
                self._enter(1 << number, place)

    def _enter(self, bit: int, place: frozenset[int]) -> None:
        self._known |= bit
        if not place:
            self._loose |= bit
        for cohort in place:
            self._in_cohort[cohort] |= bit

    def of(self, place: Place) -> int:
        """Return the groups that an agent at this place may deal with, by the pair rule."""
        if place is None:
            return 0
        if not self._gated or (self._open and not place):
            return self._known
        reach = self._loose if self._open else 0
        for cohort in place:
            reach |= self._in_cohort[cohort]
        return reach


def _with_a_pair(
    old: Topology,
    new: Topology,
    moved: frozenset[int],
    differs: Callable[[int, int], int],
) -> frozenset[int]:
    """Return the agents that differ towards at least one other agent.

    A pair can differ only if one of the two is in `moved`. Agents whose cohorts were and are
    the same answer alike, so groups of them are compared, one with all others at once.
    """
    everybody = old.agents | new.agents
    move_of = {agent: (_place(old, agent), _place(new, agent)) for agent in everybody}
    sizes = Counter(move_of.values())
    number_of = {group: number for number, group in enumerate(sizes)}
    before = Reach(old, (group[0] for group in sizes))
    after = Reach(new, (group[1] for group in sizes))
    differing = 0
    for group in {move_of[agent] for agent in moved}:
        own = 1 << number_of[group]
        found = differs(before.of(group[0]), after.of(group[1]))
        if sizes[group] == 1:
            found &= ~own
        if found:
            differing |= found | own
    return frozenset(agent for agent in everybody if differing >> number_of[move_of[agent]] & 1)


def _rule_changed(old: Topology, new: Topology) -> bool:
    return (old.policy, old.verdict) != (new.policy, new.verdict)


def _place(topology: Topology, agent: int) -> Place:
    return topology.cohorts(agent) if agent in topology.agents else None


def _moved(old: Topology, new: Topology) -> frozenset[int]:
    """Return the agents whose cohorts differ, or that came or went."""
    return frozenset(
        agent for agent in old.agents | new.agents if _place(old, agent) != _place(new, agent)
    )


def _joined(old: Topology, new: Topology) -> frozenset[int]:
    """Return the agents that are in a private channel now and were not before."""
    return frozenset().union(
        *(
            members - old.members_of.get(channel, _NOBODY)
            for channel, members in new.members_of.items()
        )
    )


def _preflight(policy: Policy, *, any_running_member: bool) -> Verdict:
    match policy:
        case Policy.OFF:
            return Verdict.OFF
        case Policy.ISOLATED if not any_running_member:
            return Verdict.REFUSED
    return Verdict.IN_FORCE


def _yes(rule: Rule, reason: str, shared: tuple[str, ...] = ()) -> Decision:
    return Decision(permitted=True, rule=rule, reason=reason, shared=shared)


def _listed(names: tuple[str, ...]) -> str:
    if len(names) == 1:
        return f"the cohort {names[0]}"
    return f"the cohorts {', '.join(names[:-1])} and {names[-1]}"
