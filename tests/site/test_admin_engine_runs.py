"""Runs in the admin: the list and the page with all that is known of one."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from cohorts.models import Agent
from engine.admin.report.figures import AGENTS_SHOWN
from engine.export.summary import summarise
from engine.models import Run, Turn
from tests.site.admin_world import (
    NOON,
    change_url,
    count_queries,
    list_url,
    make_rows,
    page_of,
    see_topology,
    take_turn,
    talk,
)

if TYPE_CHECKING:
    from django.test import Client

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin_user() -> User:
    """Stand in for pytest-django's, whose password takes a second to hash."""
    return User.objects.create(username="admin", is_staff=True, is_superuser=True)


def test_list_of_runs_says_how_each_went(admin_client: Client) -> None:
    rows = make_rows()
    for number in range(1, 4):
        take_turn(rows, number)
    talk(rows, 1)
    Run.objects.filter(pk=rows.run.pk).update(summary=summarise(rows.run.pk))

    page = page_of(admin_client, list_url("run"))

    for cell in (
        ">stopped</span>",
        "somebody stopped it",
        "1 Jan 2026 12:00",
        "1 min 35 s",
        'class="field-turns">3<',
        'class="field-llm_calls">3<',
        'class="field-threads">1<',
        'class="field-proposals">1<',
        'class="field-started_by">root<',
    ):
        assert cell in page


def test_live_run_is_counted_from_its_rows_and_not_from_an_old_summary(
    admin_client: Client,
) -> None:
    rows = make_rows()
    stale = summarise(rows.run.pk)
    Run.objects.update(status="running", end_reason="", finished_at=None, summary=stale)
    Run.objects.update(started_at=timezone.now() - timedelta(hours=3))
    take_turn(rows, 1)
    talk(rows, 1)

    lists = page_of(admin_client, list_url("run"))

    assert 'class="field-turns">1<' in lists
    assert 'class="field-proposals">1<' in lists
    assert "3 h 0 min" in lists


def test_run_that_ended_before_it_began_shows_dashes(admin_client: Client) -> None:
    rows = make_rows()
    stopped = Run.objects.create(simulation=rows.simulation, status="stopped")

    page = page_of(admin_client, change_url(stopped))

    assert "<dt>Duration</dt><dd>–</dd>" in page
    assert "No agent has had a turn in this run yet." in page
    assert "The run has not read the cohorts yet." in page
    assert "Nothing was refused." in page


def test_run_page_shows_all_that_is_known(admin_client: Client) -> None:
    rows = make_rows()
    take_turn(rows, 1)
    take_turn(rows, 2)
    take_turn(rows, 3, agent=rows.bob)
    talk(rows, 1)
    see_topology(rows, 4)
    Run.objects.update(detail="Stopped by <b>eve</b>.")
    summary = summarise(rows.run.pk) | {
        "longest_wait_seconds": 3.0,
        "wait_bound_seconds": 1200.0,
        "slot_utilisation": 0.5,
    }
    Run.objects.update(summary=summary)

    page = page_of(admin_client, change_url(rows.run))

    for text in (
        "3.0 s (bound: 20 min 0 s)",
        "somebody stopped it: Stopped by &lt;b&gt;eve&lt;/b&gt;.",
        "<dt>Slots in use</dt><dd>50%</dd>",
        "<dt>Cost</dt><dd>$0.0045</dd>",
        '<th scope="row">ended with a proposal</th><td>1</td>',
        '<th scope="row">scan</th><td>3</td>',
        '<th scope="row">pair_taken</th><td>3</td>',
        '<th scope="row">ada-lab</th><td>2</td><td>0</td><td>2</td><td>2</td><td>4</td>',
        "policy open, cohorts in force",
        "<dt>makers (2)</dt><dd>ada-lab, bob-lab</dd>",
        "<dt>crowd (60)</dt>",
        "a49 and 10 more",
        "<dt>New posts per agent and day</dt><dd>3</dd>",
        "<dt>At most so much money</dt><dd>$2.5000</dd>",
    ):
        assert text in page, text
    assert page.index(">ada-lab</th>") < page.index(">bob-lab</th>")


def test_run_page_costs_the_same_for_many_and_cuts_the_agents(admin_client: Client) -> None:
    rows = make_rows()
    take_turn(rows, 1)
    see_topology(rows, 1)
    few = count_queries(admin_client, change_url(rows.run))
    assert "Only the agents with most turns" not in page_of(admin_client, change_url(rows.run))

    agents = [Agent(slug=f"m-{n}", bot_name=f"M{n}") for n in range(AGENTS_SHOWN)]
    Agent.objects.bulk_create(agents)
    Turn.objects.bulk_create(
        Turn(
            simulation=rows.simulation,
            run=rows.run,
            number=number,
            agent=agent,
            agent_version=1,
            selected_at=NOON,
            waited_seconds=0,
            wait_bound_seconds=60,
            outcome="nothing",
        )
        for number, agent in enumerate(Agent.objects.filter(slug__startswith="m-"), start=2)
    )
    for version in range(2, 6):
        see_topology(rows, version)

    # Who is not shown may be the worst off: two more look for that.
    assert count_queries(admin_client, change_url(rows.run)) <= few + 2
    assert "Only the agents with most turns" in page_of(admin_client, change_url(rows.run))


def test_rehearsal_says_that_it_is_simulated_and_a_real_run_does_not(admin_client: Client) -> None:
    run = make_rows().run
    simulated = "simulated by the offline model"
    assert simulated in page_of(admin_client, change_url(run))
    assert "rehearsal (simulated)" in page_of(admin_client, list_url("run"))
    Run.objects.filter(pk=run.pk).update(configuration={"llm": "anthropic"})
    assert simulated not in page_of(admin_client, change_url(run))
    assert "rehearsal (simulated)" not in page_of(admin_client, list_url("run"))
