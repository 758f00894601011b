"""Small values for the store's tests: a roster of four, two channels, and rows by short calls."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from cohorts.rules import Policy, Topology, build_topology
from engine.core.effects import CallRecord, TurnOutcome, TurnRecord
from engine.core.group import Decision, Group, NewMessage, TakenIn
from engine.core.records import (
    AgentSpec,
    Channel,
    Outcome,
    Side,
    Status,
    Thread,
    ThreadState,
    Visibility,
)

AGENTS = (1, 2, 3, 4)
START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


def at(seconds: float) -> datetime:
    """Return the moment `seconds` after the tests' first one."""
    return START + timedelta(seconds=seconds)


def topology(*, version: int = 0) -> Topology:
    """Return a topology without cohorts: agents 1 to 4; 1 and 2 are in private channel 2."""
    return build_topology(
        version=version,
        policy=Policy.OPEN,
        memberships=(),
        names={},
        agents=AGENTS,
        running=AGENTS,
        members_of={2: (1, 2)},
    )


def agent(number: int, *, status: Status = Status.ACTIVE) -> AgentSpec:
    return AgentSpec(
        id=number,
        slug=f"lab-{number}",
        bot_name=f"Bot{number}",
        represents=f"Lab {number}",
        public_profile=f"We grow crystal {number}.",
        private_instructions="Be brief.",
        interests="crystals",
        status=status,
        version=1,
    )


def channel(number: int, *, visibility: Visibility = Visibility.PUBLIC) -> Channel:
    return Channel(id=number, name=f"room-{number}", topic="Crystals", visibility=visibility)


def post(seq: int, *, author: int = 1, addressed: int | None = None) -> NewMessage:
    """Return a root by an agent."""
    return message(seq, author=author, root=None, ordinal=1, addressed=addressed)


def message(
    seq: int,
    *,
    author: int,
    root: int | None,
    ordinal: int,
    channel: int = 1,
    text: str = "",
    addressed: int | None = None,
) -> NewMessage:
    return NewMessage(
        seq=seq,
        channel=channel,
        visibility=Visibility.PUBLIC,
        root=root,
        ordinal=ordinal,
        author=author,
        text=text or f"text {seq}",
        answers_ordinal=None if root is None else ordinal - 1,
        committed_at=at(seq),
        turn=1,
        addressed=addressed,
    )


def taken_in(message_id: int, seq: int, *, root: int | None = None, ordinal: int = 1) -> TakenIn:
    return TakenIn(
        message_id=message_id,
        seq=seq,
        root=root,
        ordinal=ordinal,
        committed_at=at(seq),
        addressed=None,
    )


def thread(
    root: int, opener: int, partner: int | None, *, cycle: int = 1, channel: int = 1
) -> Thread:
    return Thread(
        root=root,
        channel=channel,
        opener=Side(agent=opener, viewed=1),
        partner=None if partner is None else Side(agent=partner),
        cycle=cycle,
        n_agent_messages=2,
        last_agent=opener,
        opened_seq=root + 1,
        opened_at=at(root + 1),
        owed_since=at(root + 1),
        topology_version=0,
        shared_cohorts=("alpha", "beta"),
    )


def closed(row: Thread, seq: int, outcome: Outcome = Outcome.NO_PROPOSAL) -> Thread:
    """Return the thread as closed at `seq`."""
    return replace(
        row,
        state=ThreadState.CLOSED,
        outcome=outcome,
        closed_seq=seq,
        closed_at=at(seq),
    )


def decision(row: Thread) -> Decision:
    """Return the conclusion of a closed thread."""
    assert row.outcome is not None
    assert row.closed_seq is not None
    assert row.closed_at is not None
    return Decision(thread=row, outcome=row.outcome, seq=row.closed_seq, at=row.closed_at)


def turn(number: int, *, agent: int = 1) -> TurnRecord:
    return TurnRecord(
        number=number,
        agent=agent,
        agent_version=1,
        selected_at=at(number),
        waited_seconds=1.5,
        wait_bound_seconds=60.0,
        finished_at=at(number + 0.5),
        outcome=TurnOutcome.WORKED,
        rejected=(("repeats", 2),),
    )


def call(turn: int, number: int, *, agent: int = 1, seconds: float = 0) -> CallRecord:
    return CallRecord(
        turn=turn,
        number=number,
        agent=agent,
        agent_version=1,
        phase="scan",
        thread=None,
        model="offline",
        prompt_version="1",
        attempt=1,
        started_at=at(seconds),
        latency_seconds=0.25,
    )


def group(number: int, *, seconds: float = 0, **rows: object) -> Group:
    made = Group(number=number, at=at(seconds or number))
    for name, value in rows.items():
        setattr(made, name, value)
    return made
