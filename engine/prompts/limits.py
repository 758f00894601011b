"""How much of each text is shown, in bytes of UTF-8; see `texts` for what that is in tokens."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from engine.prompts.texts import size

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The most bytes of the house rules, of the agent's own profile and instructions (each), of its
    memory, of another agent's profile (in a thread; in a list), of one message, of all the messages
    of a prompt together, and of each of the agent's own latest texts."""

    house_rules: int = 8_000
    own: int = 16_000
    memory: int = 8_000
    profile: int = 3_000
    listed_profile: int = 500
    message: int = 6_000
    window: int = 40_000
    recent: int = 600

    def halved(self) -> Limits:
        """Return half of each, for a prompt that was too long."""
        return Limits(**{one.name: getattr(self, one.name) // 2 for one in fields(self)})


LIMITS = Limits()


def equal_share(texts: Iterable[str], limits: Limits) -> int:
    """Return the most bytes of each message, so that all of them fit into the window.

    Those that are short leave their room to the others.
    """
    sizes = sorted(size(text) for text in texts)
    left = limits.window
    for n_done, one in enumerate(sizes):
        share = left // (len(sizes) - n_done)
        if one > share:
            return min(share, limits.message)
        left -= one
    return limits.message
