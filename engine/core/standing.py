"""What an agent may do now: `standing` is the only judge of whether it is eligible.

Every function is pure and reads facts through a world or a draft; with those of `participation`
they are the preconditions that scheduler, phases and commit door share.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from engine.core.config import SCAN_CROWD
from engine.core.days import local_day, midnight_after
from engine.core.participation import (
    Refusal,
    answer_refusal,
    debts,
    has_seat,
    invitation_refusal,
    may_post_in,
)
from engine.core.records import AgentState, Status, Visibility

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.core.config import RunConfig
    from engine.core.participation import Facts, Rules
    from engine.core.records import Channel, Root
    from engine.core.world import World


class Work(StrEnum):
    """What an agent may have to do, in the order of the phases."""

    REMEMBER = "remember"
    DISCOVER = "discover"
    SCAN = "scan"
    INVITATION = "invitation"
    DEBT = "debt"
    POST = "post"


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Where an agent stands. It is eligible when it has `work`.

    `due_at` is when a timer of the engine may give it work, `calendar_at` when the calendar may
    (midnight, a post timer, a pair's rest): idle waits for the first and not for the second.
    `out` says it is out for good; `waits_for` are agents whose seats it waits for, `invited_to` the
    roots that it would answer then, unless somebody else does before; `n_posts_wanted`
    is how many new posts of agents would make it eligible at once (one of a person's does then), 0
    if no post would; `why` is the reason that it has no work, in one word of the glossary.
    """

    work: tuple[Work, ...] = ()
    due_at: datetime | None = None
    calendar_at: datetime | None = None
    out: bool = False
    waits_for: tuple[int, ...] = ()
    invited_to: tuple[int, ...] = ()
    n_posts_wanted: int = 0
    why: str = ""


# --- posts --------------------------------------------------------------------------------------


def posts_on(state: AgentState, now: datetime, config: RunConfig) -> tuple[int, int]:
    """Return the public and private roots an agent has written on the local day of `now`."""
    if state.posts_on != local_day(now, config.time_zone):
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
    invited_to: dict[int, None] = field(default_factory=dict)
    n_posts_wanted: int = 0
    whys: list[str] = field(default_factory=list)

    def refused(self, refusal: Refusal) -> None:
        self.whys.append(refusal.reason)
        if refusal.until is not None:
            self.calendar.append(refusal.until)
        if refusal.waits_for is not None:
            self.waits_for[refusal.waits_for] = None


def standing(
    world: World, agent: int, now: datetime, rules: Rules, *, briefly: bool = False
) -> Standing:
    """Judge where an agent that is not in flight stands now.

    `briefly`, whoever owes something is not looked at any further: it has work, if not all of it.
    """
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
    if not rules.draining and not (briefly and found.work):
        _find_new(world, agent, now, rules, found)
    return Standing(
        work=tuple(found.work),
        due_at=min(found.due, default=None),
        calendar_at=min(found.calendar, default=None),
        waits_for=tuple(found.waits_for),
        invited_to=tuple(found.invited_to),
        n_posts_wanted=0 if found.work else found.n_posts_wanted,
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
    if world.to_join(agent):
        found.work.append(Work.DISCOVER)
    _find_scan(world, agent, now, rules.config, found)
    _find_invitation(world, agent, now, rules, found)
    _find_post(world, agent, now, rules, found)


def _find_scan(
    world: World, agent: int, now: datetime, config: RunConfig, found: _Findings
) -> None:
    unread = world.unread(agent, most=SCAN_CROWD)
    found.n_posts_wanted = SCAN_CROWD - len(unread) if config.scan_delay_seconds > 0 else 1
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
        found.invited_to[invitation.root] = None


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
    found.calendar.append(midnight_after(now, rules.config.time_zone))
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
