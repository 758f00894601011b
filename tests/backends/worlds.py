"""Worlds whose agents ask the rehearsed API, through the real client and the command line."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from cohorts.models import Agent
from engine.models import Turn
from tests.anthropic_api.server import KEY
from tests.core.offline_society import load_roster
from tests.doors import Told, make_world, runsim

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_django.fixtures import Settings

    from engine.models import Run, Simulation
    from tests.anthropic_api.server import AnthropicApi

TEN = ("ash", "elm", "fir", "oak", "alder", "birch", "cedar", "hazel", "larch", "rowan")
AT_ONCE = {"scan_delay_seconds": 0.0, "post_interval_seconds": 0.0, "pair_rest_seconds": 0.0}


def use(settings: Settings, server: AnthropicApi) -> None:
    settings.SIM_ANTHROPIC_API_KEY = KEY
    settings.SIM_ANTHROPIC_BASE_URL = server.url


def quick_world(
    name: str = "main", *, agents: Sequence[str] = TEN[:4], **settings: float
) -> Simulation:
    """Make a world in which nobody waits where nothing is to be waited for."""
    simulation = make_world(name, agents=agents)
    simulation.settings = AT_ONCE | settings
    simulation.save()
    return simulation


def give_texts(slugs: Sequence[str]) -> None:
    """Give agents the texts of the invented organisations, which are as long as real ones."""
    for slug, who in zip(slugs, load_roster().personas.values(), strict=False):
        Agent.objects.filter(slug=slug).update(
            public_profile=who.public_profile, private_instructions=who.private_instructions
        )


def reasons(run: Run) -> Counter[str]:
    """Count what was refused in a run, by reason."""
    found: Counter[str] = Counter()
    for rejected in Turn.objects.filter(run=run).values_list("rejected", flat=True):
        found.update(rejected)
    return found


def play(*words: str) -> Told:
    return runsim("--llm", "anthropic", "--seed", "1", "--until-idle", "--json", *words)
