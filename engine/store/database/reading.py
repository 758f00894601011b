"""Reads that are rare: closed talks, roots and agents, which the world names and does not hold."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from django.db.models import Exists, Max, Min, OuterRef, Q, QuerySet

from cohorts.models import Agent
from engine.core.records import AgentSpec, Root, Talk
from engine.models import AgentState, Decision, Memory, Message, Thread
from engine.ports.store import SEARCHED, StoredMessage, ToldTalk
from engine.store.database.keys import CHUNK
from engine.store.database.rows import agent_spec
from engine.store.database.topology import roster

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: The columns of a `StoredMessage`, in its order.
STORED = (
    "seq",
    "channel_id",
    "root__seq",
    "ordinal",
    "author_id",
    "person",
    "is_bot",
    "text",
    "committed_at",
)


def memory_versions(simulation: int, agent: int, channel: int | None) -> QuerySet[Memory]:
    """Return the versions of a memory segment."""
    versions = Memory.objects.filter(simulation_id=simulation, agent_id=agent)
    if channel is None:
        return versions.filter(channel__isnull=True)
    return versions.filter(channel_id=channel)


def search(
    simulation: int, words: tuple[str, ...], *, channels: tuple[int, ...], most: int
) -> tuple[StoredMessage, ...]:
    """Return the newest messages of channels that hold all the words, newest first."""
    every = Message.objects.filter(simulation_id=simulation, seq__isnull=False)
    newest = every.aggregate(newest=Max("seq", default=0))["newest"]
    holding = every.filter(seq__gt=newest - SEARCHED, channel_id__in=channels)
    for word in words:
        holding = holding.filter(text__icontains=word)
    rows = holding.order_by("-seq").values_list(*STORED)[:most]
    return tuple(map(StoredMessage._make, rows))


def told_talks(simulation: int, talks: tuple[Talk, ...], *, agent: int) -> tuple[ToldTalk, ...]:
    """Return conclusions with the thread's messages up to each, in the order given."""
    roots = {talk.root for talk in talks}
    decisions = {
        (root, seq): (opener, partner, outcome)
        for root, seq, opener, partner, outcome in Decision.objects.filter(
            simulation_id=simulation,
            root_seq__in=roots,
            seq__in={talk.closed_seq for talk in talks},
        ).values_list("root_seq", "seq", "opener_id", "partner_id", "outcome")
    }
    histories = _histories(simulation, roots)
    return tuple(
        _told(talk, agent, decisions[talk.root, talk.closed_seq], histories[talk.root])
        for talk in talks
    )


def _told(
    talk: Talk,
    agent: int,
    decision: tuple[int, int | None, str],
    whole: list[StoredMessage],
) -> ToldTalk:
    opener, partner, outcome = decision
    return ToldTalk(
        root=talk.root,
        partner=partner if opener == agent else opener,
        outcome=outcome,
        history=tuple(message for message in whole if message.seq <= talk.closed_seq),
    )


def _histories(simulation: int, roots: set[int]) -> dict[int, list[StoredMessage]]:
    rows = Message.objects.filter(
        Q(seq__in=roots) | Q(root__seq__in=roots, seq__isnull=False), simulation_id=simulation
    )
    found: dict[int, list[StoredMessage]] = defaultdict(list)
    for row in rows.order_by("ordinal").values_list(*STORED):
        message = StoredMessage._make(row)
        found[message.seq if message.root is None else message.root].append(message)
    return found


def roots_above(simulation: int, lowest: int) -> Iterator[Root]:
    """Yield every root above a `seq`, ascending."""
    above = Message.objects.filter(simulation_id=simulation, seq__gt=lowest)
    # An answer stands above its root: to say so spares the database all those below.
    stored, answers = above.filter(root__isnull=True), above.filter(root__seq__gt=lowest)
    yield from _roots(stored, answers)


def roots_named(simulation: int, seqs: Iterable[int]) -> Iterator[Root]:
    """Yield the roots of these `seq`, ascending."""
    wanted = sorted(set(seqs))
    for start in range(0, len(wanted), CHUNK):
        chunk = wanted[start : start + CHUNK]
        stored = Message.objects.filter(simulation_id=simulation, seq__in=chunk, root__isnull=True)
        answers = Message.objects.filter(simulation_id=simulation, root__seq__in=chunk)
        yield from _roots(stored, answers)


def _roots(stored: QuerySet[Message], answers: QuerySet[Message]) -> Iterator[Root]:
    """Yield roots with what their answers add: how many there are, and by which agents."""
    heights: dict[int, int] = {}
    answered_by: dict[int, list[int]] = defaultdict(list)
    counted = (
        answers.filter(seq__isnull=False)
        .values("root_id", "author_id")
        .annotate(first=Min("ordinal"), last=Max("ordinal"))
        .order_by("root_id", "first")
    )
    for row in counted:
        root = row["root_id"]
        heights[root] = max(row["last"], heights.get(root, 1))
        if row["author_id"] is not None:
            answered_by[root].append(row["author_id"])
    closed_threads = Thread.objects.filter(root_id=OuterRef("pk"), closed_seq__isnull=False)
    columns = ("pk", "seq", "channel_id", "author_id", "is_bot", "addressed_id", "committed_at")
    for key, seq, channel, author, is_bot, addressed, at, closed in (
        stored.annotate(closed=Exists(closed_threads))
        .order_by("seq")
        .values_list(*columns, "closed")
    ):
        yield Root(
            seq=seq,
            channel=channel,
            author=author,
            is_bot=is_bot,
            addressed=addressed,
            at=at,
            n_messages=heights.get(key, 1),
            answered_by=tuple(agent for agent in answered_by[key] if agent != author),
            closed=closed,
        )


def agent_specs(simulation: int, ids: Iterable[int] | None = None) -> Iterator[AgentSpec]:
    """Yield the agents of a simulation by number, or those of `ids`.

    An agent that has left a chosen roster stays known, as retired, if it ever took a turn.
    """
    chosen = roster(simulation)
    agents = Agent.objects.order_by("pk")
    if ids is not None:
        agents = agents.filter(pk__in=ids)
    elif chosen is not None:
        was_here = AgentState.objects.filter(simulation_id=simulation)
        agents = agents.filter(Q(pk__in=chosen) | Q(pk__in=was_here.values("agent_id")))
    running = None if chosen is None else frozenset(chosen)
    for agent in agents.annotate(newest=Max("versions__number", default=0)):
        on_roster = running is None or agent.pk in running
        yield agent_spec(agent, version=agent.newest, on_roster=on_roster)
