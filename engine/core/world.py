"""The world: all that the engine knows of a simulation, as a function of its database.

Rebuilt at commit number n with an empty inbox it equals the live one, field by field. Claims,
places, timers and the caches marked below are not part of it. Only the committer changes it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING

from engine.core.interests import wanted_channels
from engine.core.records import (
    AgentSpec,
    AgentState,
    Channel,
    Desk,
    Memory,
    PairHistory,
    Root,
    Status,
    Thread,
    Visibility,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

    from engine.core.gate import Gate

FeedKey = tuple[int, int]
NOBODY = Desk()
FRESH = AgentState()


@dataclass(slots=True, kw_only=True)
class World:
    """Tables of records. `threads` holds the open ones, `roots` those that somebody may still use.

    These are caches: `feeds` (roots by channel and key of the gate, ascending), `by_channel` and
    `by_author` (all roots of a channel, and an agent's own there), `by_key` (agents by the keys
    they publish under), `handles` (mention handle → agent), `skimmed` (up to where an agent has
    nothing it could scan), `wanted` (the channels that an agent wants to be in), `newest_root`.
    """

    gate: Gate
    commit_no: int = 0
    last_seq: int = 0
    agents: dict[int, AgentSpec] = field(default_factory=dict)
    channels: dict[int, Channel] = field(default_factory=dict)
    states: dict[int, AgentState] = field(default_factory=dict)
    desks: dict[int, Desk] = field(default_factory=dict)
    subscriptions: dict[int, tuple[int, ...]] = field(default_factory=dict)
    roots: dict[int, Root] = field(default_factory=dict)
    threads: dict[int, Thread] = field(default_factory=dict)
    pairs: dict[tuple[int, int], PairHistory] = field(default_factory=dict)
    memories: dict[tuple[int, int | None], Memory] = field(default_factory=dict)
    feeds: dict[FeedKey, list[int]] = field(default_factory=dict, compare=False)
    by_channel: dict[int, list[int]] = field(default_factory=dict, compare=False)
    by_author: dict[FeedKey, list[int]] = field(default_factory=dict, compare=False)
    by_key: dict[int, list[int]] = field(default_factory=dict, compare=False)
    handles: dict[str, int] = field(default_factory=dict, compare=False)
    skimmed: dict[int, int] = field(default_factory=dict, compare=False)
    wanted: dict[int, tuple[int, ...]] = field(default_factory=dict, compare=False)
    newest_root: int = field(default=0, compare=False)

    def desk(self, agent: int) -> Desk:
        return self.desks.get(agent, NOBODY)

    def state(self, agent: int) -> AgentState:
        return self.states.get(agent, FRESH)

    def reading_keys(self, agent: int) -> Iterator[FeedKey]:
        """Yield the feeds that an agent reads: its channels times what its gate lets it read."""
        keys = self.gate.reads(agent)
        for channel in self.subscriptions.get(agent, ()):
            for key in keys:
                yield channel, key

    def publishing_keys(self, root: Root) -> Iterator[FeedKey]:
        """Yield the feeds that a root enters; in a private channel all members read all."""
        private = self.channels[root.channel].visibility is Visibility.PRIVATE
        if private:
            keys = self.gate.publishes(None, is_bot=False)
        else:
            keys = self.gate.publishes(root.author, is_bot=root.is_bot)
        for key in keys:
            yield root.channel, key

    def publish(self, root: Root) -> None:
        """Enter a new root, the newest of all, into its feeds."""
        self.newest_root = root.seq
        self.by_channel.setdefault(root.channel, []).append(root.seq)
        if root.author is not None:
            self.by_author.setdefault((root.channel, root.author), []).append(root.seq)
        for key in self.publishing_keys(root):
            self.feeds.setdefault(key, []).append(root.seq)

    def wants(self, agent: int) -> tuple[int, ...]:
        """Return the channels that an agent wants to be in, ascending."""
        known = self.wanted.get(agent)
        if known is None:
            spec, members_of = self.agents[agent], self.gate.members_of
            known = self.wanted[agent] = wanted_channels(spec, self.channels.values(), members_of)
        return known

    def to_join(self, agent: int) -> tuple[int, ...]:
        """Return the channels that an agent wants to be in and is not, ascending."""
        joined = self.subscriptions.get(agent, ())
        return tuple(channel for channel in self.wants(agent) if channel not in joined)

    def rebuild_caches(self) -> None:
        """Make the caches anew, after loading and under a new topology."""
        self.feeds = {}
        self.by_channel = {}
        self.by_author = {}
        self.by_key = {}
        self.skimmed = {}
        self.handles = {}
        self.wanted = {}
        for seq in sorted(self.roots):
            self.publish(self.roots[seq])
        for agent in sorted(self.agents):
            self.index_agent(self.agents[agent])

    def index_agent(self, spec: AgentSpec) -> None:
        """Enter an agent into the caches that find it by key and by handle."""
        self.handles[spec.bot_name.lower()] = spec.id
        for key in self.gate.publishes(spec.id, is_bot=True):
            known = self.by_key.setdefault(key, [])
            place = bisect_left(known, spec.id)
            if place == len(known) or known[place] != spec.id:
                known.insert(place, spec.id)

    def n_kept_back(self, agent: int, after: int, upto: int) -> int:
        """Count the roots in the agent's channels, `after` < seq ≤ `upto`, that its gate keeps."""
        n_roots = n_permitted = 0
        for channel in self.subscriptions.get(agent, ()):
            n_roots += _n_between(self.by_channel.get(channel, []), after, upto)
            permitted = set(_between(self.by_author.get((channel, agent), []), after, upto))
            for key in self.gate.reads(agent):
                permitted.update(_between(self.feeds.get((channel, key), []), after, upto))
            n_permitted += len(permitted)
        return n_roots - n_permitted

    def some_mates(self, agent: int, n_most: int, luck: Random) -> list[int]:
        """Return agents that the gate lets an agent deal with, a sample of `n_most` at most.

        Ascending, itself excluded; whoever shares several cohorts is likelier to be among them.
        """
        lists = [self.by_key[key] for key in self.gate.reads(agent) if key in self.by_key]
        ends = list(accumulate(len(known) for known in lists))
        n_all = ends[-1] if ends else 0
        found = set()
        for position in luck.sample(range(n_all), min(n_all, n_most + 1)):
            row = bisect_right(ends, position)
            found.add(lists[row][position - ends[row]])
        return sorted(found - {agent})[:n_most]

    def unread(self, agent: int, *, most: int) -> list[Root]:
        """Return the oldest roots that the agent could scan, at most `most`, oldest first."""
        start = max(self.state(agent).cursor, self.skimmed.get(agent, 0))
        if start >= self.newest_root:
            return []
        found: dict[int, Root] = {}
        for key in self.reading_keys(agent):
            n_found = 0
            feed = self.feeds.get(key, [])
            for position in range(bisect_right(feed, start), len(feed)):
                root = self.roots.get(feed[position])
                if root is not None and self._could_scan(agent, root):
                    found[root.seq] = root
                    n_found += 1
                    if n_found == most:
                        break
        first = sorted(found)[:most]
        self.skimmed[agent] = first[0] - 1 if first else max(start, self.last_seq)
        return [found[seq] for seq in first]

    def _could_scan(self, agent: int, root: Root) -> bool:
        """True of a root that is nobody's own call: neither own, addressed, banked, taken nor closed.

        Except for the bank, which only holds roots before the cursor, and a reopening, after which
        `skimmed` is emptied, none of this is ever undone: what was skimmed over once need not be
        looked at again.
        """
        return (
            root.author != agent
            and root.addressed is None
            and not root.closed
            and agent not in root.answered_by
            and len(root.answered_by) < (2 if root.author is None else 1)
            and root.seq not in self.state(agent).bank
        )

    def trim(self) -> None:
        """Forget the roots that nobody reads, keeps, is invited to or talks under any more."""
        keep = {seq for state in self.states.values() for seq in state.bank}
        keep.update(self.threads)
        for desk in self.desks.values():
            keep.update(invitation.root for invitation in desk.invitations)
        lowest = self._lowest_cursor()
        self.roots = {seq: root for seq, root in self.roots.items() if seq in keep or seq > lowest}
        self.rebuild_caches()

    def _lowest_cursor(self) -> int:
        cursors = [
            self.state(agent).cursor
            for agent, spec in self.agents.items()
            if spec.status is Status.ACTIVE
        ]
        return min(cursors, default=self.last_seq)


def _between(feed: list[int], after: int, upto: int) -> list[int]:
    return feed[bisect_right(feed, after) : bisect_right(feed, upto)]


def _n_between(feed: list[int], after: int, upto: int) -> int:
    return bisect_right(feed, upto) - bisect_right(feed, after)
