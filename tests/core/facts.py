"""Worlds for the tests of the core: agents and channels numbered from 1, times from `AT`."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from cohorts.rules import Policy, Topology, build_topology
from engine.core.budget import Budget
from engine.core.claims import Claims
from engine.core.config import RunConfig
from engine.core.draft import Draft
from engine.core.effects import TurnRecord
from engine.core.group import Group
from engine.core.participation import Rules
from engine.core.records import (
    AgentSpec,
    Channel,
    Invitation,
    InvitationKind,
    Root,
    Side,
    Status,
    Thread,
    Visibility,
)
from engine.core.world import World

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

AT = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
PUBLIC, PRIVATE = 1, 2


def later(seconds: float) -> datetime:
    return AT + timedelta(seconds=seconds)


def agent(number: int, **fields: Any) -> AgentSpec:
    plain = AgentSpec(
        id=number,
        slug=f"a{number}",
        bot_name=f"Bot{number}",
        represents=f"House {number}",
        public_profile="",
        private_instructions="",
        interests="",
        status=Status.ACTIVE,
        version=1,
    )
    return replace(plain, **fields)


def topology(
    agents: Iterable[int],
    cohorts: Mapping[str, Iterable[int]] | None = None,
    *,
    policy: str = "open",
    members: Iterable[int] = (),
    version: int = 1,
) -> Topology:
    """Return a topology; `members` are those of the private channel."""
    known = tuple(agents)
    names = dict(enumerate(cohorts or {}, 1))
    return build_topology(
        version=version,
        policy=Policy(policy),
        memberships=[(key, one) for key, name in names.items() for one in (cohorts or {})[name]],
        names=names,
        agents=known,
        running=known,
        members_of={PRIVATE: tuple(members)},
    )


def world(
    agents: int | Iterable[AgentSpec] = 3,
    cohorts: Mapping[str, Iterable[int]] | None = None,
    *,
    policy: str = "open",
    members: Iterable[int] = (),
    joined: bool = True,
) -> World:
    """Return a world with a public channel 1 and a private one 2; all have joined the public one."""
    specs = tuple(map(agent, range(1, agents + 1)) if isinstance(agents, int) else agents)
    numbers = tuple(spec.id for spec in specs)
    inside = tuple(members)
    made = World(
        gate=topology(numbers, cohorts, policy=policy, members=inside),
        agents={spec.id: spec for spec in specs},
        channels={
            PUBLIC: Channel(id=PUBLIC, name="general", topic="", visibility=Visibility.PUBLIC),
            PRIVATE: Channel(id=PRIVATE, name="board", topic="", visibility=Visibility.PRIVATE),
        },
        subscriptions={
            one: (PUBLIC, PRIVATE) if one in inside else (PUBLIC,) for one in numbers if joined
        },
    )
    made.rebuild_caches()
    return made


def root(seq: int, author: int | None, **fields: Any) -> Root:
    plain = Root(
        seq=seq,
        channel=PUBLIC,
        author=author,
        is_bot=author is not None,
        addressed=None,
        at=AT,
    )
    return replace(plain, **fields)


def add_root(facts: World, seq: int, author: int | None, **fields: Any) -> Root:
    """Enter a root into a world, the newest of all."""
    made = root(seq, author, **fields)
    facts.roots[seq] = made
    facts.last_seq = max(facts.last_seq, seq)
    facts.publish(made)
    return made


def thread(seq: int, opener: int, partner: int | None, **fields: Any) -> Thread:
    """Return an open thread on root `seq` that `opener` answered; the partner wrote the root."""
    plain = Thread(
        root=seq,
        channel=PUBLIC,
        opener=Side(agent=opener, viewed=1),
        partner=None if partner is None else Side(agent=partner, viewed=1),
        n_agent_messages=2,
        last_agent=opener,
        last_agent_ordinal=2,
        opened_seq=seq + 1,
        opened_at=AT,
        owed_since=AT,
        topology_version=1,
    )
    return replace(plain, **fields)


def add_thread(facts: World, seq: int, opener: int, partner: int | None, **fields: Any) -> Thread:
    """Enter an open thread and its root (by the partner, else by a person) into a world."""
    made = thread(seq, opener, partner, **fields)
    add_root(
        facts,
        seq,
        partner,
        channel=made.channel,
        n_messages=made.last_agent_ordinal,
        answered_by=(opener,),
    )
    facts.last_seq = max(facts.last_seq, made.opened_seq)
    facts.threads[seq] = made
    for side in made.sides:
        desk = facts.desk(side.agent)
        facts.desks[side.agent] = replace(desk, threads=tuple(sorted((*desk.threads, seq))))
    return made


def invitation(to: int, message: int, **fields: Any) -> Invitation:
    plain = Invitation(
        agent=to, message=message, root=message, kind=InvitationKind.MENTION, by_person=False
    )
    return replace(plain, **fields)


def add_invitation(facts: World, to: int, message: int, **fields: Any) -> Invitation:
    made = invitation(to, message, **fields)
    desk = facts.desk(to)
    facts.desks[to] = replace(desk, invitations=(*desk.invitations, made))
    return made


def rules(**settings: Any) -> Rules:
    config = RunConfig(**settings)
    return Rules(config=config, claims=Claims(), budget=Budget(config))


def draft(facts: World, judged_by: Rules | None = None, *, at: datetime = AT) -> Draft:
    return Draft(
        facts,
        rules=judged_by or rules(),
        group=Group(number=facts.commit_no + 1, at=at),
        n_selections=7,
    )


def turn(of: int, number: int = 5) -> TurnRecord:
    return TurnRecord(
        number=number,
        agent=of,
        agent_version=1,
        selected_at=AT,
        waited_seconds=0.0,
        wait_bound_seconds=60.0,
    )
