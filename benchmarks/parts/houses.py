"""Agents that have something to talk about with their cohort, in a simulation of their own."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.models import Simulation

#: What houses have and want.
GOODS = (
    "acorn flour, barrel staves, cart wheels, drying racks, fish glue, goose feathers, hemp rope, "
    "iron nails, kiln bricks, lamp oil, maple syrup, oak tannin, pine pitch, quarry stone, reed "
    "mats, sheep wool, tide mills, wood vinegar, yew bows, zinc pails"
).split(", ")


def make_houses(name: str, n_agents: int, cohort_size: int) -> Simulation:
    """Make agents in cohorts, and a simulation of all of them."""
    from engine.models import Channel, RosterEntry, Simulation

    agents = _agents(n_agents, cohort_size)
    simulation = Simulation.objects.create(
        name=f"{name}-{n_agents}-{cohort_size}", policy="isolated", roster_chosen=True
    )
    Channel.objects.create(simulation=simulation, name="general")
    RosterEntry.objects.bulk_create(
        (RosterEntry(simulation=simulation, agent_id=agent) for agent in agents), batch_size=1000
    )
    return simulation


def _agents(n_agents: int, cohort_size: int) -> list[int]:
    """Make agents that have something to talk about with their cohort; return their numbers."""
    from cohorts.models import Agent, Cohort, Membership

    mark = f"{n_agents}x{cohort_size}"
    luck = Random(1)
    agents = Agent.objects.bulk_create(
        (
            Agent(
                slug=f"a{mark}-{number}",
                bot_name=f"A{mark}n{number}",
                represents=f"House {number}",
                public_profile=_profile(number, luck),
            )
            for number in range(n_agents)
        ),
        batch_size=1000,
    )
    cohorts = Cohort.objects.bulk_create(
        Cohort(name=f"c{mark}-{number}", created_by="benchmark")
        for number in range(-(-n_agents // cohort_size))
    )
    Membership.objects.bulk_create(
        (
            Membership(cohort=cohorts[place // cohort_size], agent=agent, added_by="benchmark")
            for place, agent in enumerate(agents)
        ),
        batch_size=1000,
    )
    return [agent.pk for agent in agents]


def _profile(number: int, luck: Random) -> str:
    goods = luck.sample(GOODS, 6)
    has, wants = ", ".join(goods[:3]), ", ".join(goods[3:])
    return f"House {number} makes {has}. It looks for partners in {wants}."
