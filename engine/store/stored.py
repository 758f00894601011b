"""What a group says, as it is read later; the same in every store in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.ports.store import StoredMessage

if TYPE_CHECKING:
    from engine.core.group import NewMessage


def stored(new: NewMessage) -> StoredMessage:
    """Return an agent's new message as it is stored."""
    return StoredMessage(
        seq=new.seq,
        channel=new.channel,
        root=new.root,
        ordinal=new.ordinal,
        author=new.author,
        person="",
        is_bot=True,
        text=new.text,
        at=new.committed_at,
    )
