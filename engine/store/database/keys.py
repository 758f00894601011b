"""The keys of rows by `seq`: a driver names messages by `seq`, the tables by their row's key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.core.errors import RowRefused
from engine.models import Message

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.core.group import Group

#: How many keys are kept; then all are forgotten and asked for again.
MOST_KEYS = 100_000
#: How many values one query names: SQLite bounds the variables of a statement.
CHUNK = 500


class Keys:
    """A cache of keys that were committed, asked for all missing ones of a group at once."""

    def __init__(self, simulation: int) -> None:
        self._simulation = simulation
        self._known: dict[int, int] = {}

    def find(self, seqs: Iterable[int]) -> dict[int, int]:
        """Return `seq` → key; raise `RowRefused` for a `seq` that no message has."""
        wanted = set(seqs)
        missing = sorted(wanted - self._known.keys())
        found = dict(self.read(missing))
        if len(found) < len(missing):
            unknown = next(seq for seq in missing if seq not in found)
            raise RowRefused(f"message {unknown} is unknown")
        return found | {seq: self._known[seq] for seq in wanted if seq in self._known}

    def read(self, seqs: list[int]) -> Iterable[tuple[int, int]]:
        """Yield (`seq`, key) of stored messages."""
        stored = Message.objects.filter(simulation_id=self._simulation)
        for start in range(0, len(seqs), CHUNK):
            chunk = stored.filter(seq__in=seqs[start : start + CHUNK])
            yield from ((seq, key) for seq, key in chunk.values_list("seq", "pk") if seq)

    def keep(self, keys: dict[int, int]) -> None:
        """Remember keys of messages that are committed."""
        if len(self._known) + len(keys) > MOST_KEYS:
            self._known.clear()
        self._known.update(keys)


def named_seqs(group: Group) -> set[int]:
    """Return the `seq` of every message that a row of the group names."""
    seqs = {message.root for message in group.messages if message.root is not None}
    seqs.update(thread.root for thread in group.threads)
    seqs.update(decision.thread.root for decision in group.decisions)
    for proposal in group.proposals:
        seqs.update((proposal.root, proposal.summary_seq))
    for invitation in group.invitations:
        seqs.update((invitation.message, invitation.root))
    return seqs
