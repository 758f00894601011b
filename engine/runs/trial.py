"""A first try for real: three agents of a simulation, in a simulation of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.db import transaction

from cohorts.models import Agent
from engine.models import Channel, RosterEntry, Simulation
from engine.simulations import house_rules_of, save_house_rules
from engine.store.database.topology import load_gate

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cohorts.rules import Topology

AGENTS: Final = 3
TURNS: Final = 5
PREFIX: Final = "try-"


def chosen_for_trial(simulation: Simulation) -> list[Agent]:
    """Return three agents that may deal with each other, if there are such; fewer if there are fewer."""
    topology = load_gate(simulation.pk, simulation.policy)
    rows = Agent.objects.filter(pk__in=topology.running).order_by("slug")
    running = {agent.pk: agent for agent in rows}
    keys = _together(topology, running) or list(running)[:AGENTS]
    return [running[key] for key in keys]


def trial_asked() -> dict[str, Any]:
    """Return what a try is asked for: few turns, all of them by the small model."""
    return {
        "llm": "anthropic",
        "max_turns": TURNS,
        "until_idle": True,
        "small_model": settings.SIM_ANTHROPIC_SMALL_MODEL,
        "large_model": settings.SIM_ANTHROPIC_SMALL_MODEL,
    }


def trial_world(simulation: Simulation, *, who: str) -> Simulation:
    """Make, or bring up to date, the simulation in which three agents are tried.

    It has the settings, policy, house rules and public channels of the other, which stays as it is.
    """
    with transaction.atomic():
        trial, _ = Simulation.objects.update_or_create(
            name=f"{PREFIX}{simulation.name}"[:48].rstrip("-"),
            defaults={
                "description": f"Three agents of {simulation.name}, tried for real.",
                "policy": simulation.policy,
                "settings": simulation.settings,
                "roster_chosen": True,
            },
        )
        for channel in simulation.channels.filter(visibility="public"):
            Channel.objects.get_or_create(
                simulation=trial, name=channel.name, defaults={"topic": channel.topic}
            )
        chosen = chosen_for_trial(simulation)
        for entry in RosterEntry.objects.filter(simulation=trial).exclude(agent__in=chosen):
            entry.delete()
        for agent in chosen:
            RosterEntry.objects.get_or_create(simulation=trial, agent=agent)
        save_house_rules(trial, house_rules_of(simulation).text, who=who)
    return trial


def _together(topology: Topology, keys: Iterable[int]) -> list[int]:
    """Return the first agent with two others that it may deal with, and those; [] if none has."""
    ordered = list(keys)
    for one in ordered:
        found = [one]
        for other in ordered:
            if other != one and topology.permits(one, other):
                found.append(other)
            if len(found) == AGENTS:
                return found
    return []
