"""What a change of cohorts would do in the simulations there are, from the rows of both databases."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from cohorts.models import Agent, Cohort
from engine.foresee import SIMULATIONS_AT_MOST, Edit, Outlooks, foresee_edit
from engine.models import Message, Run, Simulation, Thread
from tests.doors import make_world
from tests.site.admin_world import NOON

pytestmark = pytest.mark.django_db

ALL = ("ash", "elm", "fir", "oak")


@pytest.fixture
def world() -> Simulation:
    """Return a world of north (ash, elm) and south (fir, oak), isolated."""
    cohorts = {"north": ("ash", "elm"), "south": ("fir", "oak")}
    return make_world(cohorts=cohorts, policy="isolated")


def key(slug: str) -> int:
    return Agent.objects.get(slug=slug).pk


def cell(cohort: str, slug: str) -> tuple[int, int]:
    return Cohort.objects.get(name=cohort).pk, key(slug)


def names(outlooks: Outlooks, pairs: tuple[tuple[int, int], ...]) -> set[tuple[str, ...]]:
    return {tuple(sorted(outlooks.slugs[one] for one in pair)) for pair in pairs}


def test_moving_an_agent_opens_and_closes_its_pairs(world: Simulation) -> None:
    edit = Edit(add=(cell("south", "elm"),), remove=(cell("north", "elm"),))
    found = foresee_edit(edit)
    (outlook,) = found.each
    assert outlook.simulation == world
    assert names(found, outlook.foresight.opened.first) == {("elm", "fir"), ("elm", "oak")}
    assert names(found, outlook.foresight.closed.first) == {("ash", "elm")}
    assert (found.silenced, found.freed) == (("ash",), ())
    assert Edit.from_json(edit.as_json()) == edit


def test_policy_status_and_roster_count_too(world: Simulation) -> None:
    assert foresee_edit(Edit(policies=((world.pk, "off"),))).each[0].foresight.opened.n == 4
    paused = foresee_edit(Edit(statuses=((key("ash"), "paused"),)))
    assert paused.silenced == ("elm",)
    Simulation.objects.update(roster_chosen=True)
    joined = foresee_edit(Edit(join=tuple((world.pk, key(slug)) for slug in ("ash", "elm"))))
    assert joined.each[0].foresight.opened.n == 1
    world.roster.set(Agent.objects.all())
    assert foresee_edit(Edit(leave=((world.pk, key("oak")),))).silenced == ("fir",)


def test_agent_freed_under_open_is_named(world: Simulation) -> None:
    Simulation.objects.update(policy="open")
    found = foresee_edit(Edit(remove=(cell("north", "ash"),)))
    assert found.freed == ("ash",)


def test_open_threads_and_the_last_runs_posts_are_told(world: Simulation) -> None:
    run = Run.objects.create(simulation=world, status="completed", started_at=NOON)
    channel = world.channels.get()
    ash, elm = key("ash"), key("elm")
    roots = [
        Message.objects.create(
            simulation=world, channel=channel, seq=seq, ordinal=1, author_id=author, is_bot=True,
            text="x", visibility="public", written_at=NOON, committed_at=NOON, run=run, turn=seq,
        )
        for seq, author in enumerate((ash, ash, elm, key("fir")), 1)
    ]  # fmt: skip
    Thread.objects.create(
        root=roots[0], root_seq=1, cycle=1, opener_id=elm, partner_id=ash, opened_seq=2,
        opened_at=NOON, topology_version=1, simulation=world, channel=channel,
        low=min(ash, elm), high=max(ash, elm), owed_since=NOON,
    )  # fmt: skip
    (outlook,) = foresee_edit(Edit(remove=(cell("north", "elm"),))).each
    assert [(root, seq) for root, seq, *_ in outlook.grandfathered] == [(roots[0].pk, 1)]
    assert outlook.n_grandfathered == 1
    assert outlook.last_run is not None
    assert (outlook.last_run.n_posts, outlook.last_run.n_kept_back) == (4, 3)
    assert not outlook.last_run.is_cut
    (nothing,) = foresee_edit(Edit(add=(cell("south", "elm"),))).each
    assert (nothing.last_run, nothing.n_grandfathered) == (None, 0)


def test_simulations_that_live_come_first_and_few_are_looked_at() -> None:
    worlds = [make_world(f"world-{number}") for number in range(SIMULATIONS_AT_MOST + 2)]
    Run.objects.create(simulation=worlds[6], status="completed")
    Run.objects.create(simulation=worlds[3], status="running", started_at=NOON)
    Run.objects.create(simulation=worlds[5], status="completed")
    with CaptureQueriesContext(connection) as queries:
        found = foresee_edit(Edit(policies=((worlds[3].pk, "isolated"),)))
    assert [one.simulation.name for one in found.each][:3] == ["world-3", "world-5", "world-6"]
    assert (len(found.each), found.n_more) == (SIMULATIONS_AT_MOST, 2)
    assert len(queries) <= 20
