"""Who may do what now: the preconditions that scheduler, phases and commit door share.

Every function is pure and reads facts through a world or a draft. `standing` is the only judge of
whether an agent is eligible; the others are its parts, and the phases ask the very same ones.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, time, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

from engine.core.config import SCAN_CROWD
from engine.core.interests import wanted_channels
from engine.core.records import (
    AgentState,
    InvitationKind,
    Status,
    Visibility,
    pair_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.core.claims import Budget, Claims
    from engine.core.config import RunConfig
    from engine.core.draft import Draft
    from engine.core.records import Channel, Invitation, Root, Thread
    from engine.core.world import World

    Facts: TypeAlias = World | Draft


class Work(StrEnum):
    """What an agent may have to do, in the order of the phases."""

    REMEMBER = "remember"
    DISCOVER = "discover"
    SCAN = "scan"
    INVITATION = "invitation"
    DEBT = "debt"
    POST = "post"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Where an agent stands. It is eligible when it has `work`.

    `due_at` is when a timer of the engine may give it work, `calendar_at` when the calendar may
    (midnight, a post timer, a pair's rest): idle waits for the first and not for the second.
    `out` says it is out for good; `waits_for` are agents whose seats it waits for; `why` is the
    reason that it has no work, in one word of the glossary.
    """

    work: tuple[Work, ...] = ()
    due_at: datetime | None = None
    calendar_at: datetime | None = None
    out: bool = False
    waits_for: tuple[int, ...] = ()
    why: str = ""


# --- threads -----------------------------------------------------------------------------------


def owes(thread: Thread, agent: int) -> bool:
    """Tell whether an agent owes an answer in an open thread.

    It does if the last agent's message of the cycle is the other's, or if a person has called it
    since it last looked.
    """
    side = thread.side(agent)
    if side is None:
        return False
    other = thread.other(agent)
    if other is not None and thread.last_agent == other:
        return True
    return side.called > side.viewed


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
    if root.author is not None:
        if root.author != agent:
            return root.author
        return root.answered_by[0] if root.answered_by else None
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
        return Refusal(reason="partner_gone")
    if partner.status is Status.PAUSED:
        return Refusal(reason="partner_out", waits_for=other)
    if not has_seat(facts, rules.claims, other, rules.config):
        return Refusal(reason="partner_full", waits_for=other)
    return None


# --- invitations and posts -----------------------------------------------------------------------


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


def posts_on(state: AgentState, now: datetime, config: RunConfig) -> tuple[int, int]:
    """Return the public and private roots an agent has written on the local day of `now`."""
    if state.posts_on != now.astimezone(config.zone).date():
        return 0, 0
    return state.posts_made, state.private_posts_made


def offered_channels(
    facts: Facts, agent: int, now: datetime, config: RunConfig
) -> tuple[Channel, ...]:
    """Return the channels in which an agent may write a new root now, ascending.

    None while its proposals wait for review; public ones within its daily posts, private ones
    within as many again (they do not count as daily posts).
    """
    if len(facts.desk(agent).unreviewed) >= config.unreviewed_proposals:
        return ()
    own_limit = facts.agents[agent].daily_posts
    limit = config.daily_posts if own_limit is None else own_limit
    n_public, n_private = posts_on(facts.state(agent), now, config)
    channels = (facts.channels[channel] for channel in _subscribed(facts, agent))
    return tuple(
        channel
        for channel in channels
        if (n_private if channel.visibility is Visibility.PRIVATE else n_public) < limit
    )


def _subscribed(facts: Facts, agent: int) -> tuple[int, ...]:
    channels = facts.subscriptions.get(agent, ())
    return tuple(channel for channel in channels if may_post_in(facts, agent, channel))


def may_post_in(facts: Facts, agent: int, channel: int) -> bool:
    """Tell whether a channel is public, or private with the agent as a member."""
    if facts.channels[channel].visibility is Visibility.PUBLIC:
        return True
    return agent in facts.gate.members_of.get(channel, frozenset())


def banked(
    facts: Facts, agent: int, now: datetime, rules: Rules
) -> Iterator[tuple[Root, Refusal | None]]:
    """Yield the posts of an agent's bank with why each cannot be answered now, or None."""
    for seq in facts.state(agent).bank:
        root = facts.roots.get(seq)
        if root is not None:
            yield root, answer_refusal(facts, agent, root, now, rules)


# --- the judge -------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Findings:
    """What the parts of `standing` found so far."""

    work: list[Work] = field(default_factory=list)
    due: list[datetime] = field(default_factory=list)
    calendar: list[datetime] = field(default_factory=list)
    waits_for: dict[int, None] = field(default_factory=dict)
    whys: list[str] = field(default_factory=list)

    def refused(self, refusal: Refusal) -> None:
        self.whys.append(refusal.reason)
        if refusal.until is not None:
            self.calendar.append(refusal.until)
        if refusal.waits_for is not None:
            self.waits_for[refusal.waits_for] = None


def standing(world: World, agent: int, now: datetime, rules: Rules) -> Standing:
    """Judge where an agent that is not in flight stands now."""
    spec = world.agents.get(agent)
    if spec is None or spec.status is not Status.ACTIVE:
        return Standing(out=True, why="left" if spec is None else str(spec.status))
    cooled_at = _cooled_at(world.state(agent), rules.config)
    if cooled_at is not None and now < cooled_at:
        return Standing(due_at=cooled_at, why="cooling")
    n_threads = len(world.desk(agent).threads)
    spent = rules.budget.refusal(spec, now, n_threads=n_threads)
    if spent is not None:
        benched = spent.until is None and not spent.of_run
        return Standing(due_at=spent.until, out=benched, why=spent.reason)
    found = _Findings()
    _find_owed(world, agent, found)
    if not rules.draining:
        _find_new(world, agent, now, rules, found)
    return Standing(
        work=tuple(found.work),
        due_at=min(found.due, default=None),
        calendar_at=min(found.calendar, default=None),
        waits_for=tuple(found.waits_for),
        why="" if found.work else next(iter(found.whys), "nothing_new"),
    )


def _cooled_at(state: AgentState, config: RunConfig) -> datetime | None:
    if state.ended_at is None or config.turn_delay_seconds <= 0:
        return None
    return state.ended_at + timedelta(seconds=config.turn_delay_seconds)


def _find_owed(world: World, agent: int, found: _Findings) -> None:
    if world.desk(agent).untold:
        found.work.append(Work.REMEMBER)
    if debts(world, agent):
        found.work.append(Work.DEBT)


def _find_new(world: World, agent: int, now: datetime, rules: Rules, found: _Findings) -> None:
    if channels_to_join(world, agent):
        found.work.append(Work.DISCOVER)
    _find_scan(world, agent, now, rules.config, found)
    _find_invitation(world, agent, now, rules, found)
    _find_post(world, agent, now, rules, found)


def channels_to_join(world: World, agent: int) -> tuple[int, ...]:
    """Return the channels that an agent wants to be in and is not, ascending."""
    wanted = wanted_channels(world.agents[agent], world.channels.values(), world.gate.members_of)
    joined = world.subscriptions.get(agent, ())
    return tuple(channel for channel in wanted if channel not in joined)


def _find_scan(
    world: World, agent: int, now: datetime, config: RunConfig, found: _Findings
) -> None:
    unread = world.unread(agent, most=SCAN_CROWD)
    if not unread:
        return
    ripe_at = unread[0].at + timedelta(seconds=config.scan_delay_seconds)
    if len(unread) >= SCAN_CROWD or now >= ripe_at or any(not root.is_bot for root in unread):
        found.work.append(Work.SCAN)
    else:
        found.due.append(ripe_at)
        found.whys.append("scan_delay")


def _find_invitation(
    world: World, agent: int, now: datetime, rules: Rules, found: _Findings
) -> None:
    for invitation in world.desk(agent).invitations:
        refusal = invitation_refusal(world, invitation, now, rules)
        if refusal is None or not refusal.passes:
            found.work.append(Work.INVITATION)
            return
        found.refused(refusal)


def _find_post(world: World, agent: int, now: datetime, rules: Rules, found: _Findings) -> None:
    """A chance to post is due when its timer is and there is something it could be used for."""
    if not _could_post(world, agent, now, rules, found):
        return
    next_post_at = world.state(agent).next_post_at
    if next_post_at is not None and now < next_post_at:
        found.calendar.append(next_post_at)
        found.whys.append("post_timer")
    else:
        found.work.append(Work.POST)


def _could_post(world: World, agent: int, now: datetime, rules: Rules, found: _Findings) -> bool:
    if offered_channels(world, agent, now, rules.config):
        return True
    found.calendar.append(_midnight_after(now, rules.config))
    found.whys.append("daily_posts")
    refusals = [refusal for _, refusal in banked(world, agent, now, rules)]
    for refusal in refusals:
        if refusal is not None:
            found.refused(refusal)
    if None not in refusals:
        return False
    if has_seat(world, rules.claims, agent, rules.config):
        return True
    found.refused(Refusal(reason="seats_full", waits_for=agent))
    return False


def _midnight_after(now: datetime, config: RunConfig) -> datetime:
    """Return the next local midnight in UTC."""
    tomorrow = now.astimezone(config.zone).date() + timedelta(days=1)
    return datetime.combine(tomorrow, time(), config.zone).astimezone(now.tzinfo)
