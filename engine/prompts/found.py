"""What was looked up, as the model is shown it; what cannot be had is said to be unavailable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.ports.llm import Hits, Profile
from engine.prompts.entries import channel, profile, speaker
from engine.prompts.limits import LIMITS, equal_share
from engine.prompts.marks import marked

if TYPE_CHECKING:
    from engine.ports.llm import Found, Persona
    from engine.prompts.limits import Limits

_UNAVAILABLE = "Unavailable. That does not mean that there is nothing.\n"
_NOTHING = "None of the newest messages that you may read holds all of these words.\n"
_CUT = "There are more; only the newest are shown.\n"


def show_found(found: Found, persona: Persona, limits: Limits = LIMITS) -> str:
    """Return the result of one look-up."""
    match found:
        case None:
            return _UNAVAILABLE
        case Profile():
            return profile(found, limits.profile)
        case Hits():
            return _hits(found, persona, limits)


def _hits(found: Hits, persona: Persona, limits: Limits) -> str:
    share = equal_share((entry.text for entry in found.entries), limits)
    shown = [
        marked(
            "message",
            entry.text,
            share,
            {**speaker(entry, persona), "channel": channel(entry.channel)},
        )
        for entry in found.entries
    ]
    cut = [_CUT] if found.is_cut else []
    return "\n".join([*cut, *(shown or [_NOTHING])])
