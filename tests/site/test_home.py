"""The first page: what goes on, what waits, what is next, and the way to a first rehearsal."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.utils import timezone

from cohorts.models import Agent
from engine.core.days import local_day
from engine.models import (
    Alert,
    DayCap,
    Purse,
    Run,
    Simulation,
    Ticket,
    TopologySnapshot,
    WorkerBeat,
)
from engine.store.purses import day_purse
from tests.doors import make_world
from tests.site.admin_world import NOON, count_queries, make_rows, page_of, person_with, talk
from tests.site.schedule_rows import make_schedule

if TYPE_CHECKING:
    from django.test import Client

pytestmark = pytest.mark.django_db

HOME = "/admin/"
TRY = "/admin/try/"


@pytest.fixture
def admin_user() -> User:
    """Stand in for pytest-django's, whose password takes a second to hash."""
    return User.objects.create(username="admin", is_staff=True, is_superuser=True)


def test_empty_site_says_what_to_do(admin_client: Client) -> None:
    page = page_of(admin_client, HOME)
    for part in (
        "Nothing runs.",
        "Try it: rehearsal with the demo roster",
        "Nothing: no proposal, no paused run",
        "No schedule is switched on.",
        "there is no limit for a day",
        "No worker is there",
    ):
        assert part in page


def test_page_says_what_goes_on_and_what_waits(admin_client: Client) -> None:
    rows = make_rows()
    talk(rows, 1)
    make_schedule(rows.simulation)
    for status, name in (("running", "a"), ("paused", "b"), ("queued", "c")):
        world = Simulation.objects.create(name=name)
        run = Run.objects.create(simulation=world, status=status, started_at=NOON)
        if status == "running":
            TopologySnapshot.objects.create(
                run=run, version=1, at=NOON, policy="isolated", verdict="refused"
            )
        if status == "queued":
            Ticket.objects.create(run=run, waits_for="It waits for room.")
    Alert.objects.create(
        key="x", kind="failed", simulation=rows.simulation, run=rows.run, at=timezone.now(),
        sentence="Run 1 failed.", next_step="See why.",
    )  # fmt: skip
    WorkerBeat.objects.create(worker="here runs", at=timezone.now())

    page = page_of(admin_client, HOME)

    for part in (
        "of a</a>: dead.",
        "the cohorts are ignored",
        "It waits for room.",
        "1 proposal waits for review.",
        "b: run ",
        "Run 1 failed.",
        "mornings",
        "Stopped, 1 Jan 2026, 12:01",
    ):
        assert part in page
    assert "No worker is there" not in page


def test_money_of_the_day_is_told_against_its_cap(admin_client: Client) -> None:
    DayCap.objects.create(pk=1, max_nano_usd=10**9, changed_by="ada")
    assert "of $1.0000" in page_of(admin_client, HOME)
    day = local_day(timezone.now(), "UTC")
    Purse.objects.create(pk=day_purse(day), spent_nano_usd=10**9)
    assert "The money of today is spent" in page_of(admin_client, HOME)


def test_try_loads_the_demo_and_asks_for_one_rehearsal(admin_client: Client) -> None:
    page = admin_client.post(TRY, follow=True).content.decode()
    run = Run.objects.get()
    assert (run.simulation.name, run.status, run.started_by) == ("demo", "queued", "admin")
    assert run.configuration["llm"] == "offline"
    assert f"Run {run.pk} is asked for." in page
    assert LogEntry.objects.filter(user__username="admin", object_id=str(run.pk)).exists()

    again = admin_client.post(TRY, follow=True).content.decode()
    assert f"Run {run.pk} of demo waits for a worker" in again
    assert Run.objects.count() == 1
    assert "Rehearse the demo once more" in again


def test_demo_that_cannot_be_loaded_says_why(admin_client: Client) -> None:
    Agent.objects.create(slug="mine", bot_name="FerryBot")
    page = admin_client.post(TRY, follow=True).content.decode()
    assert "The demo was not loaded:" in page
    assert not Simulation.objects.exists()


def test_try_is_for_who_may_and_by_post_alone(admin_client: Client, client: Client) -> None:
    assert admin_client.get(TRY).status_code == 405
    assert person_with(client, "view_run").post(TRY).status_code == 403


def test_pages_are_in_plain_groups_for_what_one_may_see(client: Client) -> None:
    page = page_of(person_with(client, "view_run", "view_cohort"), HOME)
    for part in ("Society", "Matrix of cohorts", "Runs"):
        assert part in page
    for part in ("Money a day", "Task queue", "People", "Who deals with whom", "Try it"):
        assert part not in page
    assert "Runs" in page_of(client, "/admin/engine/")
    assert "Running now" not in page_of(person_without(client), HOME)


def person_without(client: Client) -> Client:
    client.force_login(User.objects.create(username="nobody", is_staff=True))
    return client


def test_number_of_queries_does_not_grow(admin_client: Client) -> None:
    make_world()
    few = count_queries(admin_client, HOME)
    for n in range(30):
        world = Simulation.objects.create(name=f"w-{n}")
        Run.objects.create(simulation=world, finished_at=NOON, status="completed")
        Alert.objects.create(
            key=str(n), kind="late", simulation=world, at=timezone.now() - timedelta(hours=1),
            sentence="Late.", next_step="Look.",
        )  # fmt: skip
        Ticket.objects.create(run=Run.objects.create(simulation=world), waits_for="")
    assert few <= 20
    assert count_queries(admin_client, HOME) <= 30
