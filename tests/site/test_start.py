"""Starting a run from its page: defaults that work, reasons why not, the price before a yes."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape
from typing import TYPE_CHECKING

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.urls import reverse
from django.utils import timezone

from cohorts.models import Agent
from engine.admin.start import page as start_page
from engine.core.days import local_day
from engine.models import DayCap, ModelPrice, Purse, Run, Simulation, Turn, WorkerBeat
from engine.store.purses import day_purse
from tests.doors import make_agent, make_world
from tests.site.admin_world import NOON, count_queries, page_of

if TYPE_CHECKING:
    from django.test import Client
    from pytest_django import Settings

pytestmark = pytest.mark.django_db

REHEARSAL = {"kind": "rehearsal", "until_idle": "on", "max_minutes": "60"}
REAL = {"kind": "real", "until_idle": "on", "max_usd": "2.00", "max_turns": "20"}


@pytest.fixture
def admin_user() -> User:
    """Stand in for pytest-django's, whose password takes a second to hash."""
    return User.objects.create(username="admin", is_staff=True, is_superuser=True)


@pytest.fixture
def with_key(settings: Settings) -> None:
    settings.SIM_ANTHROPIC_API_KEY = "sk-test"


def url_of(simulation: Simulation) -> str:
    return reverse("admin:engine_start", args=[simulation.pk])


def accepted(page: str) -> str:
    found = re.search(r'name="accepted" value="([^"]*)"', page)
    assert found is not None
    return unescape(found[1])


def test_rehearsal_starts_at_once_with_the_defaults(admin_client: Client) -> None:
    world = make_world()
    WorkerBeat.objects.create(worker="here runs", at=timezone.now())
    page = page_of(admin_client, url_of(world))
    assert "4 agents, 3 slots, turns of about 0.1 s (rehearsed): everybody once per 0.2 s." in page
    assert "No worker is there" not in page

    page = admin_client.post(url_of(world), REHEARSAL, follow=True).content.decode()

    run = Run.objects.get()
    assert f"Run {run.pk} is asked for" in page
    asked = run.configuration
    assert (asked["llm"], asked["until_idle"], asked["max_minutes"]) == ("offline", True, 60)
    assert asked["max_nano_usd"] is None
    assert (run.status, run.started_by) == ("queued", "admin")
    assert LogEntry.objects.filter(object_id=str(run.pk), change_message="Started.").exists()


def test_second_click_starts_no_second_run(admin_client: Client) -> None:
    world = make_world()
    admin_client.post(url_of(world), REHEARSAL)
    page = admin_client.post(url_of(world), REHEARSAL, follow=True).content.decode()
    assert "waits for a worker: stop it first" in page
    assert Run.objects.count() == 1


def test_pace_is_that_of_the_last_run(admin_client: Client) -> None:
    world = make_world()
    run = Run.objects.create(
        simulation=world, status="completed", started_at=NOON, configuration={"llm": "offline"}
    )
    for number, agent in enumerate(Agent.objects.all(), 1):
        Turn.objects.create(
            simulation=world, run=run, number=number, agent=agent, agent_version=1,
            selected_at=NOON, finished_at=NOON + timedelta(seconds=20),
            waited_seconds=0, wait_bound_seconds=60, outcome="worked",
        )  # fmt: skip
    page = page_of(admin_client, url_of(world))
    assert f"turns of about 20 s (as in run {run.pk}): everybody once per 40 s." in page


@pytest.mark.parametrize(
    ("cause", "sentence"),
    [
        ("no agent", "There is no agent yet"),
        ("paused", "No agent takes part"),
        ("no channel", "It has no public channel"),
        ("live", "is running: stop it first"),
    ],
)
def test_run_that_cannot_work_is_refused_with_the_reason(
    admin_client: Client, cause: str, sentence: str
) -> None:
    world = make_world(agents=() if cause == "no agent" else ("ash", "elm"))
    if cause == "paused":
        Agent.objects.update(status="paused")
    if cause == "no channel":
        world.channels.all().delete()
    if cause == "live":
        Run.objects.create(simulation=world, status="running")
    n_runs = Run.objects.count()
    assert sentence in page_of(admin_client, url_of(world))
    assert sentence in admin_client.post(url_of(world), REHEARSAL).content.decode()
    assert Run.objects.count() == n_runs


def test_what_to_know_is_said_before(admin_client: Client) -> None:
    world = make_world(policy="isolated", agents=("ash", "elm"))
    page = page_of(admin_client, url_of(world))
    assert "The cohorts would be ignored" in page
    assert "No worker is there" in page
    Simulation.objects.update(policy="open")
    Agent.objects.filter(slug="elm").update(status="paused")
    assert "Only one agent takes part" in page_of(admin_client, url_of(world))


def test_agents_that_hear_nobody_are_named(admin_client: Client) -> None:
    world = make_world(cohorts={"north": ("ash", "elm")}, policy="isolated")
    assert "These hear nobody, whatever is said: fir, oak." in page_of(admin_client, url_of(world))


def test_real_run_shows_its_price_and_starts_after_a_yes_to_it(
    admin_client: Client, with_key: None
) -> None:
    world = make_world(agents=("ash", "elm"))
    price = admin_client.post(url_of(world), REAL).content.decode()
    assert "What it will cost" in price
    assert "Likely $" in price
    assert "It pauses when it has spent $2.0000" in price
    assert not Run.objects.exists()

    other = REAL | {"max_usd": "200.00", "accepted": accepted(price)}
    assert (
        "It pauses when it has spent $200.0000"
        in admin_client.post(url_of(world), other).content.decode()
    )
    assert not Run.objects.exists()

    admin_client.post(url_of(world), REAL | {"accepted": accepted(price)})
    asked = Run.objects.get().configuration
    assert (asked["llm"], asked["max_nano_usd"], asked["max_turns"]) == ("anthropic", 2 * 10**9, 20)


def test_run_without_a_limit_says_so(admin_client: Client, with_key: None) -> None:
    world = make_world(agents=("ash", "elm"))
    page = admin_client.post(url_of(world), {"kind": "real", "max_turns": "3"}).content.decode()
    assert "You have set no limit of money." in page


def test_try_takes_three_agents_into_a_world_of_their_own(
    admin_client: Client, with_key: None
) -> None:
    world = make_world(
        cohorts={"north": ("elm", "fir", "oak"), "south": ("ash",)}, policy="isolated"
    )
    form = {"kind": "trial", "max_usd": "1"}
    price = admin_client.post(url_of(world), form).content.decode()
    assert "Three agents try it: elm, fir, oak." in price

    admin_client.post(url_of(world), form | {"accepted": accepted(price)})

    run = Run.objects.get()
    trial = run.simulation
    assert (trial.name, trial.policy, trial.roster_chosen) == ("try-main", "isolated", True)
    assert sorted(trial.roster.values_list("slug", flat=True)) == ["elm", "fir", "oak"]
    assert [channel.name for channel in trial.channels.all()] == ["general"]
    asked = run.configuration
    assert (asked["max_turns"], asked["max_nano_usd"]) == (5, 10**9)
    assert asked["small_model"] == asked["large_model"] != ""
    Run.objects.update(status="completed")
    Agent.objects.filter(slug="elm").update(status="paused")
    admin_client.post(url_of(world), form | {"accepted": accepted(price)})
    assert Simulation.objects.count() == 2
    assert trial.roster.count() == 3


def test_key_and_money_are_asked_for_before(
    admin_client: Client, with_key: None, settings: Settings
) -> None:
    world = make_world(agents=("ash", "elm"))
    DayCap.objects.create(pk=1, max_nano_usd=10**9, changed_by="ada")
    Purse.objects.create(pk=day_purse(local_day(timezone.now(), "UTC")), spent_nano_usd=10**9)
    assert "The money of today is spent" in admin_client.post(url_of(world), REAL).content.decode()
    settings.SIM_ANTHROPIC_API_KEY = ""
    page = admin_client.post(url_of(world), REAL).content.decode()
    assert "SIM_ANTHROPIC_API_KEY is not set" in page


def test_model_without_a_price_needs_a_run_without_a_cap(
    admin_client: Client, with_key: None, settings: Settings
) -> None:
    settings.SIM_ANTHROPIC_SMALL_MODEL = "nobody-knows"
    world = make_world(agents=("ash", "elm"))
    assert "no money cap could hold" in admin_client.post(url_of(world), REAL).content.decode()
    page = admin_client.post(url_of(world), {"kind": "real", "max_turns": "3"}).content.decode()
    assert "a model has no price" in page
    assert not ModelPrice.objects.exists()


def test_forecast_of_many_agents_is_left_to_the_command(
    admin_client: Client, with_key: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(start_page, "FORECAST_AGENTS", 1)
    world = make_world(agents=("ash", "elm"))
    assert "takes too long for a page" in admin_client.post(url_of(world), REAL).content.decode()
    Simulation.objects.update(roster_chosen=True)
    world.roster.set(Agent.objects.all())
    assert "takes too long for a page" in admin_client.post(url_of(world), REAL).content.decode()


@pytest.mark.parametrize(
    "wrong", [{"kind": "x"}, {"max_minutes": "-1"}, {"max_usd": "abc"}, {"max_turns": "9" * 30}]
)
def test_what_cannot_be_read_is_said_at_its_field(
    admin_client: Client, wrong: dict[str, str]
) -> None:
    world = make_world()
    page = admin_client.post(url_of(world), REHEARSAL | wrong).content.decode()
    assert "errorlist" in page
    assert not Run.objects.exists()


def test_number_of_queries_does_not_grow(admin_client: Client) -> None:
    world = make_world()
    few = count_queries(admin_client, url_of(world))
    for n in range(30):
        make_agent(f"x{n}")
    assert count_queries(admin_client, url_of(world)) <= few <= 30
