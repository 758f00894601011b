"""A chance to post, as it is shown: kept posts, channels, agents to address, and own last words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.prompts.entries import channel, posts, profile
from engine.prompts.forms import MOST_OFFERED
from engine.prompts.marks import marked

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from engine.ports.llm import PostContext, Profile
    from engine.prompts.limits import Limits


def post_values(context: PostContext, limits: Limits) -> dict[str, str | int]:
    """Return what the chance may be used for; roots are shown only where one may be written."""
    bank = [banked.entry for banked in context.bank]
    may_start = context.may_start_root and bool(context.channels)
    partners = context.partners[:MOST_OFFERED] if may_start else ()
    kinds = (("answer", bank), ("root", may_start), ("skip", True))
    return {
        "bank": _part("Posts that you kept.", posts(bank, context.persona, limits)),
        "authors": _part("The agents among their authors.", _authors(context, partners, limits)),
        "channels": _part("Channels for a new post.", _channels(context) if may_start else ""),
        "partners": _part(
            "Agents that you may address in a new post.",
            "\n".join(
                profile(one, limits.listed_profile, number)
                for number, one in enumerate(partners, start=1)
            ),
        ),
        "recent": _part("What you wrote last, the newest at the end.", _recent(context, limits)),
        "offer": ", ".join(kind for kind, is_offered in kinds if is_offered),
    }


def _part(title: str, shown: str) -> str:
    return f"{title}\n\n{shown}\n" if shown else ""


def _authors(context: PostContext, partners: Sequence[Profile], limits: Limits) -> str:
    """Return who wrote the kept posts, but for those who are shown as partners anyway."""
    authors = dict.fromkeys(banked.author for banked in context.bank)
    return _joined(
        profile(one, limits.listed_profile)
        for one in authors
        if one is not None and one not in partners
    )


def _channels(context: PostContext) -> str:
    return _joined(
        marked("channel", one.topic, 600, {"number": number, "name": channel(one.name)})
        for number, one in enumerate(context.channels[:MOST_OFFERED], start=1)
    )


def _recent(context: PostContext, limits: Limits) -> str:
    return _joined(marked("earlier", text, limits.recent) for text in context.recent)


def _joined(parts: Iterable[str]) -> str:
    return "\n".join(parts)
