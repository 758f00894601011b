"""The matrix of agents and cohorts: what was changed and nothing else, after a question."""

from __future__ import annotations

import re
from html import unescape
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth.models import User
from django.core import signing
from django.urls import reverse

from cohorts import operations
from cohorts.gate import read_version
from cohorts.models import Agent, Cohort, Membership, TopologyChange
from engine.admin.topology import matrix
from engine.admin.topology.asking import SALT
from engine.models import Run, Simulation, TopologySnapshot
from tests.doors import make_world
from tests.site.admin_world import NOON, count_queries, hidden_field, person_with, say_yes

if TYPE_CHECKING:
    from django.test import Client

pytestmark = pytest.mark.django_db

MATRIX = "/admin/engine/simulation/cohorts/"
APPLY = f"{MATRIX}apply/"


@pytest.fixture
def admin_user() -> User:
    """Stand in for pytest-django's, whose password takes a second to hash."""
    return User.objects.create(username="admin", is_staff=True, is_superuser=True)


@pytest.fixture
def world() -> Simulation:
    cohorts = {"north": ("ash", "elm"), "south": ("fir", "oak")}
    return make_world(cohorts=cohorts, policy="isolated")


def cell(cohort: str, slug: str) -> str:
    return f"{Cohort.objects.get(name=cohort).pk}-{Agent.objects.get(slug=slug).pk}"


def asked(client: Client, *toggled: str, page: str = MATRIX) -> Any:
    """Open the matrix, change cells and go on to the question."""
    shown = hidden_field(client.get(page).content.decode(), "shown")
    return client.post(page, {"shown": shown, "toggled": " ".join(toggled)}, follow=True)


def answered(client: Client, question: Any) -> str:
    """Tick everything and say yes; return the page that follows."""
    return say_yes(client, question.content.decode())


def members() -> set[tuple[str, str]]:
    return set(Membership.objects.values_list("cohort__name", "agent__slug"))


def test_matrix_shows_who_is_in_which_cohort(admin_client: Client, world: Simulation) -> None:
    page = admin_client.get(MATRIX).content.decode()
    assert page.count(" checked") == 4
    assert re.search(rf'value="{cell("north", "ash")}" aria-label="ash in north" checked', page)
    assert "No run is live" in page


def test_change_is_asked_about_and_then_made_with_its_audit(
    admin_client: Client, world: Simulation
) -> None:
    question = asked(admin_client, cell("south", "ash"))
    text = question.content.decode()
    assert "1 agent added to cohorts" in text
    assert "<li>ash and fir</li>" in text
    assert ("south", "ash") not in members()

    page = answered(admin_client, question)

    assert "Done: 1 membership added, 0 removed." in page
    assert ("south", "ash") in members()
    line = TopologyChange.objects.first()
    assert line is not None
    assert (line.who, line.action, line.cohort) == ("admin", "member_added", "south")


def test_silenced_agent_needs_a_tick_that_names_it(admin_client: Client, world: Simulation) -> None:
    question = asked(admin_client, cell("north", "elm"))
    assert "ash, elm will hear nobody" in question.content.decode()
    form = {"asked": hidden_field(question.content.decode(), "asked")}
    again = admin_client.post(APPLY, form, follow=True)
    assert "Nothing is made yet: tick below" in again.content.decode()
    assert ("north", "elm") in members()
    assert "0 memberships added, 1 removed" in answered(admin_client, question)
    assert ("north", "elm") not in members()


def test_tick_of_another_question_does_not_count(admin_client: Client, world: Simulation) -> None:
    other = asked(admin_client, cell("south", "oak"))
    tick = unescape(re.findall(r'name="yes" value="([^"]*)"', other.content.decode())[0])
    question = asked(admin_client, cell("north", "elm"))
    form = {"asked": hidden_field(question.content.decode(), "asked"), "yes": [tick]}
    assert "Nothing is made yet" in admin_client.post(APPLY, form).content.decode()
    assert len(members()) == 4


def test_freed_agent_needs_a_tick_too(admin_client: Client, world: Simulation) -> None:
    Simulation.objects.update(policy="open")
    question = asked(admin_client, cell("north", "elm"))
    assert "elm will deal with everybody" in question.content.decode()
    answered(admin_client, question)
    assert ("north", "elm") not in members()


def test_two_people_at_once_undo_nothing_of_each_other(
    admin_client: Client, world: Simulation
) -> None:
    shown = hidden_field(admin_client.get(MATRIX).content.decode(), "shown")
    operations.add_members(
        Cohort.objects.get(name="north"), Agent.objects.filter(slug="oak"), who="Bea"
    )
    form = {"shown": shown, "toggled": cell("south", "ash")}
    question = admin_client.post(MATRIX, form)
    assert "somebody else changed 1 of the cells" in question.content.decode()
    answered(admin_client, question)
    assert {("north", "oak"), ("south", "ash")} <= members()


def test_change_that_somebody_made_meanwhile_is_left(
    admin_client: Client, world: Simulation
) -> None:
    shown = hidden_field(admin_client.get(MATRIX).content.decode(), "shown")
    operations.add_members(
        Cohort.objects.get(name="north"), Agent.objects.filter(slug="oak"), who="Bea"
    )
    form = {"shown": shown, "toggled": cell("north", "oak")}
    page = admin_client.post(MATRIX, form, follow=True).content.decode()
    assert "it is so already" in page


def test_question_that_the_topology_outran_is_asked_again(
    admin_client: Client, world: Simulation
) -> None:
    question = asked(admin_client, cell("south", "ash"))
    operations.remove_members(
        Cohort.objects.get(name="south"), Agent.objects.filter(slug="fir"), who="Bea"
    )
    page = answered(admin_client, question)
    assert "Somebody changed who deals with whom meanwhile" in page
    assert ("south", "ash") not in members()
    again = asked(admin_client, cell("south", "ash"))
    answered(admin_client, again)
    assert ("south", "ash") in members()


def test_ticks_alone_are_enough_without_script(admin_client: Client, world: Simulation) -> None:
    shown = hidden_field(admin_client.get(MATRIX).content.decode(), "shown")
    kept = [cell("north", "ash"), cell("north", "elm"), cell("south", "fir"), cell("south", "oak")]
    form = {"shown": shown, "toggled": "ticks", "on": [*kept, cell("north", "oak")]}
    answered(admin_client, admin_client.post(MATRIX, form))
    assert ("north", "oak") in members()
    assert len(members()) == 5


def test_large_page_is_not_taken_for_unticked_without_script(
    admin_client: Client, world: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matrix, "CELLS_WITHOUT_SCRIPT", 7)
    page = admin_client.get(MATRIX)
    assert 'name="on"' not in page.content.decode()
    form = {"shown": hidden_field(page.content.decode(), "shown"), "toggled": "ticks"}
    told = admin_client.post(MATRIX, form, follow=True).content.decode()
    assert "need the page&#x27;s script" in told
    assert len(members()) == 4


@pytest.mark.parametrize("toggled", ["x", "1-", "-", "999999-999999", "1-2-3", "٣-٤"])
def test_what_is_no_cell_changes_nothing(
    admin_client: Client, world: Simulation, toggled: str
) -> None:
    assert "it is so already" in asked(admin_client, toggled).content.decode()
    assert len(members()) == 4


@pytest.mark.parametrize("form", [{}, {"shown": "broken"}])
def test_page_that_was_cut_off_changes_nothing(
    admin_client: Client, world: Simulation, form: dict[str, str]
) -> None:
    page = admin_client.post(MATRIX, form, follow=True).content.decode()
    assert "cut off. Nothing is changed" in page
    assert "too old or was cut off" in admin_client.post(APPLY, form, follow=True).content.decode()


def test_filters_and_pages(admin_client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    make_world(cohorts={"north": ("ash", "elm"), "south": ("ash",)})
    page = admin_client.get(MATRIX, {"agents": "as", "cohorts": "nor"}).content.decode()
    assert page.count('type="checkbox"') == 1
    for only, slugs in (("none", ("fir", "oak")), ("several", ("ash",))):
        page = admin_client.get(MATRIX, {"only": only}).content.decode()
        assert sorted(set(re.findall(r'aria-label="(\w+) in', page))) == list(slugs)
    monkeypatch.setattr(matrix, "AGENTS_IN_A_PAGE", 3)
    monkeypatch.setattr(matrix, "COHORTS_IN_A_PAGE", 1)
    page = admin_client.get(MATRIX, {"p": "2", "c": "9"}).content.decode()
    assert page.count('type="checkbox"') == 1
    assert 'href="?c=9&amp;p=1"' in page
    assert 'href="?p=2&amp;c=1"' in page
    assert admin_client.get(MATRIX, {"p": "-1", "c": "x"}).status_code == 200


def test_empty_matrix_says_what_to_do(admin_client: Client) -> None:
    assert "There is no cohort yet" in admin_client.get(MATRIX).content.decode()
    operations.create_cohort("north", who="Ada")
    assert "There is no agent yet" in admin_client.get(MATRIX).content.decode()
    page = admin_client.get(MATRIX, {"agents": "x"}).content.decode()
    assert "No agent is like that" in page
    assert "No cohort has that" in admin_client.get(MATRIX, {"cohorts": "x"}).content.decode()


def test_page_says_since_when_the_engine_uses_the_cohorts(
    admin_client: Client, world: Simulation
) -> None:
    run = Run.objects.create(simulation=world, status="running", started_at=NOON)
    use = reverse("admin:engine_in_use")
    assert "has not taken the last change over yet" in admin_client.get(use).content.decode()
    TopologySnapshot.objects.create(run=run, version=10_000, at=NOON, policy="isolated")
    page = admin_client.get(use).content.decode()
    assert "The engine uses the cohorts as they are since 12:00:00" in page
    assert "since 12:00:00" in admin_client.get(MATRIX).content.decode()


def test_other_kinds_of_change_need_their_own_right(client: Client, world: Simulation) -> None:
    ash = Agent.objects.get(slug="ash")
    question = asked(person_with(client, "change_cohort", "view_cohort"), cell("south", "ash"))
    assert question.status_code == 200
    for edit in (
        {"statuses": [(ash.pk, "paused")]},
        {"policies": [(world.pk, "off")]},
        {"join": [(world.pk, ash.pk)]},
    ):
        kept = {"edit": edit, "version": read_version(), "back": MATRIX}
        form = {"asked": signing.dumps(kept, salt=SALT)}
        assert client.post(APPLY, form).status_code == 403


def test_status_policy_and_roster_are_made_too(admin_client: Client, world: Simulation) -> None:
    ash, oak = (Agent.objects.get(slug=slug).pk for slug in ("ash", "oak"))
    Simulation.objects.update(roster_chosen=True)
    world.roster.set(Agent.objects.exclude(slug="oak"))
    edit = {
        "statuses": [(ash, "paused")],
        "policies": [(world.pk, "off")],
        "join": [(world.pk, oak)],
        "leave": [(world.pk, Agent.objects.get(slug="fir").pk)],
    }
    kept = {"edit": edit, "version": read_version(), "back": MATRIX}
    form = {"asked": signing.dumps(kept, salt=SALT)}
    page = admin_client.post(APPLY, form, follow=True).content.decode()
    assert "1 agent paused, policy of main is off, roster of main: 1 added, 1 removed." in page
    assert sorted(world.roster.values_list("slug", flat=True)) == ["ash", "elm", "oak"]


def test_apply_is_asked_by_post_alone(admin_client: Client) -> None:
    assert admin_client.get(APPLY).status_code == 405


def test_number_of_queries_does_not_grow(admin_client: Client) -> None:
    make_world(cohorts={"north": ("ash", "elm")})
    few = count_queries(admin_client, MATRIX)
    make_world(
        "other", agents=[f"x{n}" for n in range(30)], cohorts={f"c-{n}": () for n in range(9)}
    )
    assert count_queries(admin_client, MATRIX) == few <= 12
