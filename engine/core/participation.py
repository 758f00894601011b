"""Who may speak with whom now: debts, entitlement, pairs and seats.

Every function is pure and reads facts through a world or a draft; phases, scheduler and commit
door ask the very same ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, TypeAlias

from engine.core.records import InvitationKind, Status, Visibility, pair_of

if TYPE_CHECKING:
    from engine.core.budget import Budget
    from engine.core.claims import Claims
    from engine.core.config import RunConfig
    from engine.core.draft import Draft
    from engine.core.records import Invitation, Root, Thread
    from engine.core.world import World

    Facts: TypeAlias = World | Draft

#: After this many closes in a row without a proposal a pair rests twice as long.
BARREN = 3
#: What `Refusal.reason` may be while time, a close or a person can still lift it.
PASSING = frozenset({"pair_taken", "pair_resting", "partner_full", "partner_out", "seats_full"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why an interaction cannot start now.

    `until` is when time alone lifts it, `waits_for` the agent whose seat or thread is in the way.
    """

    reason: str
    until: datetime | None = None
    waits_for: int | None = None

    @property
    def passes(self) -> bool:
        return self.reason in PASSING


@dataclass(slots=True, kw_only=True)
class Rules:
    """What standing is judged by, beside the facts: the run's own state.

    While `draining`, nothing that starts an interaction is offered any more.
    """

    config: RunConfig
    claims: Claims
    budget: Budget
    draining: bool = False


def owes(thread: Thread, agent: int) -> bool:
    """Tell whether an agent owes an answer in an open thread.

    It does if the last agent's message of the cycle is the other's, or if a person spoke after its
    last view and called it by name, or called nobody and it has not spoken since: neither as the
    last of two agents, nor as the only one.
    """
    side = thread.side(agent)
    if side is None:
        return False
    other = thread.other(agent)
    if other is not None and thread.last_agent == other:
        return True
    if side.called > side.viewed:
        return True
    if thread.asked <= side.viewed:
        return False
    return thread.last_agent != agent or (
        other is None and thread.last_agent_ordinal < thread.asked
    )


def debts(facts: Facts, agent: int) -> tuple[Thread, ...]:
    """Return the open threads in which an agent owes, oldest root first."""
    threads = (facts.threads[root] for root in facts.desk(agent).threads)
    return tuple(thread for thread in threads if owes(thread, agent))


def has_seat(facts: Facts, claims: Claims, agent: int, config: RunConfig) -> bool:
    """Tell whether an agent may be in one thread more, claims of its turn counted."""
    taken = len(facts.desk(agent).threads) + claims.n_seats(agent)
    return taken < config.active_thread_threshold


def opposite(root: Root, agent: int) -> int | None:
    """Return the agent that an answer by `agent` would deal with; None for a person alone."""
    if root.author not in {None, agent}:
        return root.author
    return root.answered_by[0] if root.answered_by else None


def answer_refusal(
    facts: Facts, agent: int, root: Root, now: datetime, rules: Rules
) -> Refusal | None:
    """Tell why an agent may not open a thread by answering a root, or None if it may.

    The gate comes first, then who is entitled, then pair and the other side's seat. The agent's
    own seat is asked for apart, since its turn may hold a claim on it.
    """
    if not may_post_in(facts, agent, root.channel):
        return Refusal(reason="not_a_member")
    if not may_act_on(facts, agent, root):
        return Refusal(reason="not_permitted")
    if not _is_entitled(agent, root):
        return Refusal(reason="not_entitled")
    other = opposite(root, agent)
    if other is None:
        return None
    if not may_deal(facts, agent, other, root.channel):
        return Refusal(reason="not_permitted")
    pair = pair_refusal(facts, agent, other, root.seq, now, rules)
    if pair is None or pair.reason != "partner_full":
        return pair
    # Whoever is alone in the root's thread has its seat in it already.
    return None if facts.threads.get(root.seq) is not None else pair


def may_deal(facts: Facts, agent: int, other: int, channel: int) -> bool:
    """Tell whether two agents may start something in a channel: members of a private one, else
    whom the gate permits."""
    if facts.channels[channel].visibility is Visibility.PRIVATE:
        members = facts.gate.members_of.get(channel, frozenset())
        return agent in members and other in members
    return facts.gate.permits(agent, other)


def may_act_on(facts: Facts, agent: int, root: Root) -> bool:
    """Tell whether the gate lets an agent keep a root or answer it."""
    private = facts.channels[root.channel].visibility is Visibility.PRIVATE
    return facts.gate.decide(
        agent,
        author=root.author,
        is_bot=root.is_bot,
        private_channel=root.channel if private else None,
    ).permitted


def _is_entitled(agent: int, root: Root) -> bool:
    """Apply participation: the addressed alone, else the first to answer (two on a person's)."""
    if root.closed:
        return False
    if root.author == agent:
        return not root.answered_by and root.n_messages > 1
    if agent in root.answered_by or (root.is_bot and root.author is None):
        return False
    if root.addressed is not None:
        return root.addressed == agent and not root.answered_by
    return len(root.answered_by) < (1 if root.author is not None else 2)


def pair_refusal(
    facts: Facts, agent: int, other: int, root: int | None, now: datetime, rules: Rules
) -> Refusal | None:
    """Tell why two agents may not open a thread now: pair, rest, status, the other's seat.

    `root` is the root that would be answered, None for a root still to be written.
    """
    if any(facts.threads[open_].other(agent) == other for open_ in facts.desk(agent).threads):
        return Refusal(reason="pair_taken", waits_for=other)
    history = facts.pairs.get(pair_of(agent, other))
    if history is not None:
        if root is not None and root <= history.closed_seq:
            return Refusal(reason="older_than_close")
        rest_seconds = rules.config.pair_rest_seconds * (2 if history.n_barren >= BARREN else 1)
        until = history.closed_at + timedelta(seconds=rest_seconds)
        if now < until:
            return Refusal(reason="pair_resting", until=until)
    partner = facts.agents.get(other)
    if partner is None or partner.status is Status.RETIRED:
        return Refusal(reason="partner_gone", waits_for=other)
    if partner.status is Status.PAUSED:
        return Refusal(reason="partner_out", waits_for=other)
    if not has_seat(facts, rules.claims, other, rules.config):
        return Refusal(reason="partner_full", waits_for=other)
    return None


def invitation_refusal(
    facts: Facts, invitation: Invitation, now: datetime, rules: Rules
) -> Refusal | None:
    """Tell why an invitation cannot be taken up now, or None if it can."""
    root = facts.roots.get(invitation.root)
    if root is None:
        return Refusal(reason="root_gone")
    if not may_post_in(facts, invitation.agent, root.channel):
        return Refusal(reason="not_a_member")
    if invitation.kind is InvitationKind.REFERENCE:
        return None
    thread = facts.threads.get(root.seq)
    if thread is not None and thread.side(invitation.agent) is not None:
        return Refusal(reason="in_thread")
    refusal = answer_refusal(facts, invitation.agent, root, now, rules)
    if refusal is None and not has_seat(facts, rules.claims, invitation.agent, rules.config):
        return Refusal(reason="seats_full", waits_for=invitation.agent)
    return refusal


def may_post_in(facts: Facts, agent: int, channel: int) -> bool:
    """Tell whether a channel is public, or private with the agent as a member."""
    if facts.channels[channel].visibility is Visibility.PUBLIC:
        return True
    return agent in facts.gate.members_of.get(channel, frozenset())
