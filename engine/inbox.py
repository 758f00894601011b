"""What people change beside a live run: each function one transaction, the change and its note.

The pages, the commands and the chat's inbound side write through here, so that a driver learns of
everything it holds in memory. A note says that a row changed; the driver reads the row itself.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from engine.core.texts import is_storable
from engine.models import (
    Channel,
    Inbox,
    Memory,
    Message,
    Proposal,
    RosterEntry,
    Simulation,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cohorts.models import Agent

#: What a person writes at once, and a reviewer's note.
MESSAGE_CHARACTERS = 20_000
NOTE_CHARACTERS = 4_000
#: Shorter words would be in too much that is meant otherwise.
SHORTEST_STATEMENT = 8
VERDICTS = frozenset({Proposal.State.ACCEPTED, Proposal.State.DECLINED, Proposal.State.REVISED})


class RefusedChangeError(Exception):
    """A change that cannot be made; the message is one sentence for the person."""


def write_message(
    *, channel: Channel, person: str, text: str, root: Message | None = None
) -> Message:
    """Store a person's message, under `root` or as a new root; the driver gives it its place.

    Raises `RefusedChangeError` for a text without a word, of too many characters or of such as no
    database holds, or a root of another channel.
    """
    if not text.strip():
        raise RefusedChangeError("The message is empty: write something.")
    _check_text(text, "message", at_most=MESSAGE_CHARACTERS)
    if root is not None and (root.channel_id != channel.pk or root.root_id is not None):
        raise RefusedChangeError("The thread is not in this channel: reload the page.")
    return Message.objects.create(
        simulation_id=channel.simulation_id,
        channel=channel,
        root=root,
        person=person,
        text=text,
        visibility=channel.visibility,
        written_at=timezone.now(),
    )


def review_proposal(
    proposal: Proposal, *, version: int, state: str, person: str, note: str = ""
) -> Proposal:
    """Decide about a proposal that the person has seen in `version`; the first review stands.

    The same decision by the same person again changes nothing. Raises `RefusedChangeError` if it was
    decided otherwise, or for a note as `write_message` does for a text.
    """
    if state not in VERDICTS:
        raise RefusedChangeError("A review accepts, declines or asks for a revision.")
    _check_text(note, "note", at_most=NOTE_CHARACTERS)
    with transaction.atomic():
        pending = Proposal.objects.filter(pk=proposal.pk, version=version, state="pending")
        n_reviewed = pending.update(
            state=state,
            version=F("version") + 1,
            reviewed_by=person,
            reviewed_at=timezone.now(),
            note=note,
        )
        if n_reviewed:
            _leave(proposal.simulation_id, Inbox.Kind.REVIEW, proposal.pk)
    proposal.refresh_from_db()
    if not n_reviewed and (proposal.state, proposal.reviewed_by) != (state, person):
        who = proposal.reviewed_by or "somebody else"
        raise RefusedChangeError(
            f"It is already reviewed, by {who}: {proposal.get_state_display()}."
        )
    return proposal


def edit_memory(
    *,
    simulation: Simulation,
    agent: Agent,
    channel: Channel | None,
    version: int,
    text: str,
    person: str,
) -> Memory:
    """Replace the text of a memory segment that the person has seen in `version` (0: none yet).

    Raises `RefusedChangeError` if the segment has a newer version by now, or for a text with
    characters that no database holds.
    """
    _check_text(text, "memory")
    segment = Memory.objects.filter(simulation=simulation, agent=agent)
    segment = (
        segment.filter(channel__isnull=True) if channel is None else segment.filter(channel=channel)
    )
    with transaction.atomic():
        newest = segment.order_by("-version").first()
        if (newest.version if newest else 0) != version:
            raise RefusedChangeError(
                "The memory has changed meanwhile: reload the page and edit again."
            )
        row = Memory.objects.create(
            simulation=simulation,
            agent=agent,
            channel=channel,
            version=version + 1,
            text=text,
            upto_seq=newest.upto_seq if newest else 0,
            person=person,
            written_at=timezone.now(),
        )
        key = None if channel is None else channel.pk
        _leave(simulation.pk, Inbox.Kind.MEMORY, agent.pk, channel=key)
    return row


def forget_statement(
    *, simulation: Simulation, agents: Sequence[Agent], channel: Channel, text: str, person: str
) -> list[Agent]:
    """Take the sentences with a statement out of what agents remember of a channel's talks.

    A trace stays: the older versions, and who made the newest. Returns whose memory had it. Raises
    `RefusedChangeError` for a text that is too short to mean one statement.
    """
    words = _folded(text)
    if len(words) < SHORTEST_STATEMENT:
        raise RefusedChangeError(
            f"Write at least {SHORTEST_STATEMENT} characters of what is to be forgotten."
        )
    private = channel if channel.visibility == Channel.Visibility.PRIVATE else None
    changed = []
    with transaction.atomic():
        for agent in agents:
            rows = Memory.objects.filter(simulation=simulation, agent=agent, channel=private)
            newest = rows.order_by("-version").first()
            lines = [] if newest is None else newest.text.splitlines()
            kept = [_without(line, words) for line in lines]
            if newest is not None and kept != lines:
                edit_memory(
                    simulation=simulation,
                    agent=agent,
                    channel=private,
                    version=newest.version,
                    text="\n".join(line for line in kept if line is not None),
                    person=person,
                )
                changed.append(agent)
    return changed


def _without(line: str, words: str) -> str | None:
    """Return a line without the sentences that have the words, None if nothing is left of it."""
    if words not in _folded(line):
        return line
    sentences = re.split(r"(?<=[.!?])\s+", line)
    kept = [sentence for sentence in sentences if words not in _folded(sentence)]
    # Words that go over the end of a sentence take the line with them.
    return " ".join(kept) if kept and len(kept) < len(sentences) else None


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()


def note_agents(agent_ids: list[int], **_: object) -> None:
    """Tell every simulation that an agent is in of its new texts, limits or status."""
    everywhere = Simulation.objects.filter(roster_chosen=False).values_list("pk", flat=True)
    places = [(simulation, agent) for simulation in everywhere for agent in agent_ids]
    saved = frozenset(agent_ids)
    chosen = RosterEntry.objects.filter(simulation__roster_chosen=True)
    for simulation, agent in chosen.values_list("simulation_id", "agent_id"):
        if agent in saved:
            places.append((simulation, agent))
    Inbox.objects.bulk_create(
        [
            Inbox(simulation_id=simulation, kind=Inbox.Kind.AGENT, key=agent)
            for simulation, agent in places
        ]
    )


def note_roster(simulation: int, agent_ids: Iterable[int]) -> None:
    """Tell a simulation of agents whose entries were written in bulk, without signals."""
    Inbox.objects.bulk_create(
        (Inbox(simulation_id=simulation, kind=Inbox.Kind.AGENT, key=agent) for agent in agent_ids),
        batch_size=500,
    )


def note_roster_entry(instance: RosterEntry, **_: object) -> None:
    """Tell a simulation of an agent that came to its roster or left it."""
    _leave(instance.simulation_id, Inbox.Kind.AGENT, instance.agent_id)


def note_channel(instance: Channel, **_: object) -> None:
    """Tell a simulation of a channel that is new or was edited."""
    _leave(instance.simulation_id, Inbox.Kind.CHANNEL, instance.pk)


def _check_text(text: str, what: str, *, at_most: int | None = None) -> None:
    if at_most is not None and len(text) > at_most:
        raise RefusedChangeError(
            f"The {what} has {len(text):,} characters, and {at_most:,} are possible: shorten it."
        )
    if not is_storable(text):
        raise RefusedChangeError(
            f"The {what} holds a character that cannot be stored (a NUL or half of a pair): "
            "leave it out."
        )


def _leave(simulation: int, kind: Inbox.Kind, key: int, channel: int | None = None) -> None:
    Inbox.objects.create(simulation_id=simulation, kind=kind, key=key, channel_id=channel)
