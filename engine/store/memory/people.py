"""The people's side of the in-memory store: what the pages and commands of a site would write.

Each change leaves its mail with it, as the site does in one transaction.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.core.records import Memory, Status
from engine.store.memory.tables import Note, NoteKind, Tables, Waiting

if TYPE_CHECKING:
    from datetime import datetime

    from engine.core.effects import Verdict
    from engine.core.gate import Gate
    from engine.core.records import AgentSpec, Channel


class AlreadyReviewed(Exception):
    """Somebody reviewed the proposal before; the first review stands."""


class People:
    """What persons and other processes do to one simulation."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def write_message(
        self, *, channel: int, text: str, at: datetime, root: int | None = None, person: str = "Ada"
    ) -> int:
        """Store a message without `seq`, under `root` or as a new root; return its id."""
        message_id = self._tables.new_id()
        self._tables.waiting[message_id] = Waiting(
            channel=channel, root=root, person=person, text=text, written_at=at
        )
        return message_id

    def review(
        self,
        *,
        root: int,
        cycle: int,
        verdict: Verdict,
        at: datetime,
        note: str = "",
        person: str = "Ada",
    ) -> int:
        """Decide about a proposal; return the note's id. Raises `AlreadyReviewed`."""
        row = self._tables.proposals[root, cycle]
        if row.verdict is not None:
            raise AlreadyReviewed(f"{row.reviewed_by} has reviewed this proposal already")
        self._tables.proposals[root, cycle] = replace(
            row, verdict=verdict, reviewed_by=person, reviewed_at=at, note=note
        )
        return self._leave(NoteKind.REVIEW, root, cycle)

    def save_agent(self, spec: AgentSpec) -> int:
        """Save an agent, known or new; return the note's id."""
        self._tables.agents[spec.id] = spec
        return self._leave(NoteKind.AGENT, spec.id)

    def remove_agent(self, agent: int) -> int:
        """Take an agent off the roster: it stays known, as retired; return the note's id."""
        return self.save_agent(replace(self._tables.agents[agent], status=Status.RETIRED))

    def save_channel(self, channel: Channel) -> int:
        """Save a channel, known or new; return the note's id."""
        self._tables.channels[channel.id] = channel
        return self._leave(NoteKind.CHANNEL, channel.id)

    def edit_memory(self, *, agent: int, channel: int | None, text: str) -> int:
        """Write a new version of a memory segment; return the note's id."""
        key = (agent, channel)
        memory = self._tables.memories.get(key, Memory(agent=agent, channel=channel))
        memory = replace(memory, version=memory.version + 1)
        self._tables.memories[key] = memory
        self._tables.memory_texts[(*key, memory.version)] = text
        return self._leave(NoteKind.MEMORY, agent, channel)

    def set_topology(self, gate: Gate) -> None:
        """Put another topology into force."""
        self._tables.gate = gate

    def _leave(self, kind: NoteKind, key: int, part: int | None = None) -> int:
        note = self._tables.new_id()
        self._tables.inbox[note] = Note(kind=kind, key=(key, part))
        return note
