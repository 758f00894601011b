"""Posts to sort, and talks to remember, as they are shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.prompts.entries import posts, profile, speaker
from engine.prompts.forms import MOST_OFFERED
from engine.prompts.limits import equal_share
from engine.prompts.marks import marked, word

if TYPE_CHECKING:
    from engine.ports.llm import ClosedTalk, PruneContext, RememberContext, ScanContext
    from engine.prompts.limits import Limits


def scan_values(context: ScanContext, limits: Limits) -> dict[str, str | int]:
    """Return new posts, and who wrote them."""
    authors = "\n".join(profile(one, limits.listed_profile) for one in context.authors)
    return {
        "posts": posts(context.posts, context.persona, limits),
        "authors": f"The agents among their authors.\n\n{authors}" if authors else "",
        "n_posts": len(context.posts[:MOST_OFFERED]),
    }


def prune_values(context: PruneContext, limits: Limits) -> dict[str, str | int]:
    """Return the posts of a bank over its bound."""
    return {
        "posts": posts(context.posts, context.persona, limits),
        "n_posts": len(context.posts[:MOST_OFFERED]),
        "n_keep": context.n_keep,
    }


def remember_values(context: RememberContext, limits: Limits) -> dict[str, str | int]:
    """Return finished talks; their messages share one window."""
    texts = (entry.text for talk in context.talks for entry in talk.history)
    share = equal_share(texts, limits)
    return {
        "memory": marked("memory", context.memory, limits.memory),
        "talks": "\n".join(_talk(context, talk, share) for talk in context.talks),
    }


def _talk(context: RememberContext, talk: ClosedTalk, share: int) -> str:
    messages = "\n".join(
        marked("message", entry.text, share, speaker(entry, context.persona))
        for entry in talk.history
    )
    head = f'<talk with="{word(talk.partner)}" ended-as="{word(talk.outcome)}">'
    return f"{head}\n{messages}</talk>\n"
