"""Hints about an agent: nothing is wrong with it, and something may not be meant so."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from cohorts.models import Agent

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Longer texts are shortened in prompts, and cost with every call.
LONG_BYTES: Final = 6_000
NAMES_LOOKED_AT: Final = 2_000
_WHAT_FOR: Final = {
    "public profile": "others cannot know what to talk with it about.",
    "private instructions": "it goes by its profile and the house rules alone.",
}


def hints_of(agent: Agent) -> list[str]:
    return [*_of_texts(agent), *_of_limits(agent), *_of_names(agent)]


def _of_texts(agent: Agent) -> Iterator[str]:
    for label, text in (
        ("public profile", agent.public_profile),
        ("private instructions", agent.private_instructions),
    ):
        n_bytes = len(text.encode())
        if not text.strip():
            yield f"It has no {label}: {_WHAT_FOR[label]}"
        elif n_bytes > LONG_BYTES:
            yield (
                f"Its {label} has {n_bytes:,} bytes: it is paid for with every call, and may be "
                "shortened in prompts."
            )
    if agent.public_profile.strip():
        same = Agent.objects.filter(public_profile=agent.public_profile).exclude(pk=agent.pk)
        if other := same.order_by("slug").first():
            yield f"{other} has the same public profile."


def _of_limits(agent: Agent) -> Iterator[str]:
    if agent.max_usd is not None and agent.max_usd == 0:
        yield "It may spend no money: with a real model it does nothing."
    if agent.daily_posts == 0:
        yield "It may start no topic of its own; it only answers."


def _of_names(agent: Agent) -> Iterator[str]:
    others = Agent.objects.exclude(pk=agent.pk).exclude(status=Agent.Status.RETIRED)
    names = list(others.order_by("slug").values_list("bot_name", flat=True)[:NAMES_LOOKED_AT])
    if near := get_close_matches(agent.bot_name, names, n=1, cutoff=0.85):
        yield f"Its bot name is easily taken for {near[0]}."
