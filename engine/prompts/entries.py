"""Messages, posts and profiles as they are shown, by numbers that an answer can name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.prompts.forms import MOST_OFFERED
from engine.prompts.limits import equal_share
from engine.prompts.marks import marked, word

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.ports.llm import Entry, Persona, Profile
    from engine.prompts.limits import Limits


def speaker(entry: Entry, persona: Persona) -> dict[str, str | int]:
    """Return what a mark says of a message's author: nobody can pass for the agent itself."""
    if entry.is_bot and entry.author == persona.bot_name:
        return {"by": "you"}
    return {"by": entry.author, "kind": "agent" if entry.is_bot else "person"}


def posts(entries: Sequence[Entry], persona: Persona, limits: Limits) -> str:
    """Return posts with their numbers; all of them are shown, long ones less than whole."""
    shown = entries[:MOST_OFFERED]
    share = equal_share((entry.text for entry in shown), limits)
    return "\n".join(
        marked(
            "post",
            entry.text,
            share,
            {"number": number, **speaker(entry, persona), "channel": channel(entry.channel)},
        )
        for number, entry in enumerate(shown, start=1)
    )


def profile(of: Profile, most_bytes: int, number: int | None = None) -> str:
    """Return what every agent may read about another one."""
    about: dict[str, str | int] = {} if number is None else {"number": number}
    about |= {"of": of.bot_name, "speaks-for": of.represents}
    return marked("profile", of.public_profile, most_bytes, about)


def channel(name: str) -> str:
    return f"#{word(name)}"


def left_out(n_messages: int) -> str:
    """Return the line that stands where messages are not shown; nothing if all are."""
    if not n_messages:
        return ""
    plural = "message is" if n_messages == 1 else "messages are"
    return f"[{n_messages} {plural} left out here]\n"
