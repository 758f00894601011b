"""Why an agent is quiet: asked of the engine's own judge, over the world as it is stored now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db import transaction
from django.utils import timezone

from engine.core.budget import Budget
from engine.core.claims import Claims
from engine.core.participation import Rules
from engine.core.standing import standing
from engine.loop.rebuild import world_from
from engine.models import Run
from engine.models.runs import LIVE
from engine.runs.asked import configured
from engine.runs.end import first_moment
from engine.runs.start import spent_until_now, with_raised_caps
from engine.store.database import read_lease
from engine.store.database.loading import load

if TYPE_CHECKING:
    from engine.core.standing import Standing
    from engine.models import Simulation


@dataclass(frozen=True, slots=True, kw_only=True)
class Quiet:
    """Where an agent stands; `run` is the live run that was asked about, None for the next one.

    `takes_part` is False for one that is not of the roster, of which the judge knows nothing.
    """

    standing: Standing
    run: Run | None
    takes_part: bool


def why_quiet(simulation: Simulation, agent: int) -> Quiet:
    """Judge one agent as the driver of the simulation would now; nothing is written."""
    run = Run.objects.filter(simulation=simulation, status__in=LIVE).first()
    config = configured(simulation, {}) if run is None else with_raised_caps(run)
    with transaction.atomic():
        read_lease(simulation.pk)
        loaded = load(simulation.pk, config.policy)
        now = max(timezone.now(), first_moment(simulation.pk))
        transaction.set_rollback(True)
    rules = Rules(config=config, claims=Claims(), budget=Budget(config, loaded.calls))
    for one in () if run is None else spent_until_now(run):
        rules.budget.count(one.agent, n_calls=one.n_calls, nano_usd=one.nano_usd)
    world = world_from(loaded)
    return Quiet(
        standing=standing(world, agent, now, rules), run=run, takes_part=agent in world.agents
    )
