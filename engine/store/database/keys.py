"""The keys of rows by `seq`: a driver names messages by `seq`, the tables by their row's key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.core.errors import RowRefused
from engine.models import Message
from engine.store.database.session import quick_cursor

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.core.group import Group

#: How many keys are kept; then all are forgotten and asked for again.
MOST_KEYS = 100_000
#: How many values one query names: SQLite bounds the variables of a statement.
CHUNK = 500

_MESSAGES = f"""
    SELECT seq, id FROM {Message._meta.db_table}
    WHERE simulation_id = %s AND seq IN ({{places}})
"""
_ROOTS = f"{_MESSAGES} AND root_id IS NULL"


class Keys:
    """Finds keys: those of roots are cached, since a thread is named again and again."""

    def __init__(self, simulation: int) -> None:
        self._simulation = simulation
        self._roots: dict[int, int] = {}

    def roots(self, seqs: Iterable[int]) -> dict[int, int]:
        """Return `seq` → key; raise `RowRefused` for a `seq` that no stored root has."""
        wanted = set(seqs)
        found = {seq: self._roots[seq] for seq in wanted & self._roots.keys()}
        return found | self._read(wanted - found.keys(), _ROOTS)

    def messages(self, seqs: Iterable[int]) -> dict[int, int]:
        """Return `seq` → key; raise `RowRefused` for a `seq` that no stored message has."""
        return self._read(set(seqs), _MESSAGES)

    def keep(self, roots: dict[int, int]) -> None:
        """Remember the keys of roots, once they are committed."""
        if len(self._roots) + len(roots) > MOST_KEYS:
            self._roots.clear()
        self._roots.update(roots)

    def _read(self, wanted: set[int], query: str) -> dict[int, int]:
        seqs = sorted(wanted)
        found: dict[int, int] = {}
        for start in range(0, len(seqs), CHUNK):
            chunk = seqs[start : start + CHUNK]
            places = ", ".join(["%s"] * len(chunk))
            with quick_cursor() as cursor:
                cursor.execute(query.format(places=places), [self._simulation, *chunk])
                found.update(cursor.fetchall())
        for seq in seqs:
            if seq not in found:
                raise RowRefused(f"message {seq} is unknown, or no root")
        return found


def named_roots(group: Group) -> set[int]:
    """Return the `seq` of every root that a row of the group names."""
    seqs = {message.root for message in group.messages if message.root is not None}
    seqs.update(thread.root for thread in group.threads)
    seqs.update(decision.thread.root for decision in group.decisions)
    seqs.update(proposal.root for proposal in group.proposals)
    seqs.update(invitation.root for invitation in group.invitations)
    return seqs


def named_messages(group: Group) -> set[int]:
    """Return the `seq` of every message, root or answer, that a row of the group names."""
    seqs = {proposal.summary_seq for proposal in group.proposals}
    seqs.update(invitation.message for invitation in group.invitations)
    return seqs
