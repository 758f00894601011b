"""Laws on threads: two parties, their turns to speak, cycles, and how a cycle ends."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from engine.laws.law import Breach, Law

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.export.schema import MessageRow
    from engine.laws.export import Cycle, Export


def two_parties(export: Export) -> Iterator[Breach]:
    for cycle in export.cycles:
        sides = cycle.sides
        if cycle.row.partner is not None and cycle.row.opener in {None, cycle.row.partner}:
            yield Breach(cycle.where, "its opener and partner are not two agents.")
        root_author = cycle.root.author
        if sides and root_author is not None and root_author not in sides:
            yield Breach(cycle.where, f"the author {root_author} of its root is not a side of it.")
        for message in cycle.by_agents:
            if message.author not in sides and message.ordinal != 1:
                yield Breach(
                    cycle.where,
                    f"{message.author} speaks in it (seq {message.seq}) and is no side.",
                )


def entitled(export: Export) -> Iterator[Breach]:
    for cycle in export.cycles:
        addressee = export.addressee(cycle.root)
        if addressee is None:
            continue
        for side in cycle.sides:
            if side not in (cycle.root.author, addressee):
                yield Breach(
                    cycle.where,
                    f"its root is addressed to {addressee}, but {side} is a side of it.",
                )


def opening(export: Export) -> Iterator[Breach]:
    for cycle in export.cycles:
        row = cycle.row
        if row.cycle != 1:
            continue
        message = _opening_message(cycle)
        if message is None or row.opened_seq is None:
            if (message is None) != (row.opened_seq is None):
                yield Breach(cycle.where, "it names an opening that no message made, or none.")
        elif (row.opened_seq, row.opened_at) != (message.seq, message.committed_at):
            yield Breach(cycle.where, f"the message that opened it is seq {message.seq}.")
        elif cycle.root.author is not None and not _has_answered(cycle, row.opener, message):
            yield Breach(cycle.where, f"{message.author} opened it, not {row.opener}.")


def _has_answered(cycle: Cycle, agent: str | None, until: MessageRow) -> bool:
    """Whether an agent has answered the root: its author may answer a person there first."""
    return any(
        message.author == agent and message.ordinal != 1 and (message.seq or 0) <= (until.seq or 0)
        for message in cycle.by_agents
    )


def _opening_message(cycle: Cycle) -> MessageRow | None:
    """Return the first message of the second agent, or of the only one opposite a person."""
    spoken = cycle.by_agents
    if cycle.row.partner is None:
        return next((message for message in spoken if message.ordinal != 1), None)
    return next((message for message in spoken if message.author != spoken[0].author), None)


def cycle_numbers(export: Export) -> Iterator[Breach]:
    last: tuple[int, int] = (0, 0)
    last_closed: int | None = None
    for cycle in export.cycles:
        row = cycle.row
        expected = last[1] + 1 if row.id == last[0] else 1
        if row.cycle != expected:
            yield Breach(cycle.where, f"cycle {expected} of this thread was due here.")
        elif row.cycle > 1 and (last_closed is None or (row.opened_seq or 0) < last_closed):
            yield Breach(cycle.where, "it was opened before the cycle before it was closed.")
        last, last_closed = (row.id, row.cycle), row.closed_seq


def endings(export: Export) -> Iterator[Breach]:
    for cycle in export.cycles:
        row = cycle.row
        closing = (row.closed_seq, row.closed_at, row.outcome)
        if (row.state == "closed") != (None not in closing) or (
            row.state != "closed" and closing != (None, None, None)
        ):
            yield Breach(cycle.where, "state, outcome, closed_seq and closed_at do not agree.")
        opened = (row.opener, row.opened_seq, row.opened_at, row.topology_version)
        if None in opened and opened != (None, None, None, None):
            yield Breach(cycle.where, "what it says of its opening is not complete.")
        if row.closed_seq is not None and row.closed_seq < (row.opened_seq or row.root_seq):
            yield Breach(cycle.where, "it was closed before it was opened.")
        elif row.opened_at and row.closed_at and row.closed_at < row.opened_at:
            yield Breach(cycle.where, "the time of its close lies before that of its opening.")


def closed_is_closed(export: Export) -> Iterator[Breach]:
    for cycle in export.cycles:
        for message in cycle.late:
            yield Breach(
                cycle.where, f"{message.author} speaks (seq {message.seq}) in the closed thread."
            )


def alternation(export: Export) -> Iterator[Breach]:
    """A person's word right before an agent's may have come while that one was being written: the
    agent answers it then, and nobody else has spoken meanwhile."""
    for cycle in export.cycles:
        spoke_before_that = False
        for before, message in pairwise(cycle.messages):
            answers_itself = message.author is not None and message.author == before.author
            if answers_itself and not spoke_before_that:
                yield Breach(
                    cycle.where, f"{message.author} answers itself with seq {message.seq}."
                )
            spoke_before_that = before.author is None and before.ordinal != 1


def thread_length(export: Export) -> Iterator[Breach]:
    for cycle in export.cycles:
        allowed = 0
        for number, message in enumerate(cycle.by_agents, start=1):
            run = export.run_by_id.get(message.run or 0)
            if run is None:
                break
            # A later run with a smaller number ends the thread at its next message.
            allowed = max(allowed, run.configuration.thread_messages)
            if number > allowed:
                yield Breach(
                    cycle.where,
                    f"seq {message.seq} is the agents' message {number} where {allowed} are allowed.",
                )


def proposal_outcomes(export: Export) -> Iterator[Breach]:
    proposals = [(row.thread, row.cycle) for row in export.proposals]
    known = set(proposals)
    for cycle in export.cycles:
        has_proposal = (cycle.row.id, cycle.row.cycle) in known
        if has_proposal != (cycle.row.outcome == "proposal"):
            yield Breach(
                cycle.where,
                "it has a proposal but another outcome."
                if has_proposal
                else "its outcome is a proposal but there is none.",
            )
    if len(known) != len(proposals):
        yield Breach("all proposals", "a cycle has more than one proposal.")


def proposal_confirmed(export: Export) -> Iterator[Breach]:
    cycles = {(cycle.row.id, cycle.row.cycle): cycle for cycle in export.cycles}
    for proposal in export.proposals:
        cycle = cycles[proposal.thread, proposal.cycle]
        where = f"proposal {proposal.id}"
        spoken = [message.author for message in cycle.by_agents]
        if sorted(proposal.agents) != sorted(cycle.sides) or len(cycle.sides) == 1:
            yield Breach(where, f"its agents are not the two sides of {cycle.where}.")
        elif len(set(spoken[-2:])) < len(cycle.sides):
            yield Breach(where, f"no other side confirmed it in {cycle.where}.")
        if not proposal.summary.strip():
            yield Breach(where, "its summary is empty.")


def reviews(export: Export) -> Iterator[Breach]:
    for proposal in export.proposals:
        given = [proposal.reviewed_by is not None, proposal.reviewed_at is not None]
        expected = proposal.state != "pending"
        if given != [expected, expected]:
            yield Breach(
                f"proposal {proposal.id}",
                f"it is {proposal.state}, which does not agree with who reviewed it and when.",
            )


FILE = "threads.jsonl"
THREAD_LAWS = (
    Law(
        name="two-parties",
        file=FILE,
        says="a thread has at most two agents, and they are its opener and its partner",
        check=two_parties,
    ),
    Law(
        name="entitled",
        file=FILE,
        says="in a thread whose root mentions an agent, only the author and the first agent "
        "mentioned talk",
        check=entitled,
    ),
    Law(
        name="opening",
        file=FILE,
        says="a thread names the message that opened it, its time and its author",
        check=opening,
    ),
    Law(
        name="cycle-numbers",
        file=FILE,
        says="each cycle of a thread concludes once; the next begins when it is closed",
        check=cycle_numbers,
    ),
    Law(
        name="endings",
        file=FILE,
        says="a cycle has an outcome, a closing seq and a closing time when it is closed, and "
        "only then",
        check=endings,
    ),
    Law(
        name="closed-is-closed",
        file=FILE,
        says="no agent speaks in a closed thread until a person reopens it",
        check=closed_is_closed,
    ),
    Law(
        name="alternation",
        file=FILE,
        says="no agent answers itself unless a person spoke in between, or while it wrote",
        check=alternation,
    ),
    Law(
        name="thread-length",
        file=FILE,
        says="the agents' messages of a cycle are at most thread_messages",
        check=thread_length,
    ),
    Law(
        name="proposal-outcomes",
        file=FILE,
        says="a cycle has one proposal if its outcome is one, and none otherwise",
        check=proposal_outcomes,
    ),
    Law(
        name="proposal-confirmed",
        file="proposals.jsonl",
        says="a proposal is a summary by one side that the other side confirmed",
        check=proposal_confirmed,
    ),
    Law(
        name="reviews",
        file="proposals.jsonl",
        says="a proposal is pending until a named person reviews it at a time",
        check=reviews,
    ),
)
