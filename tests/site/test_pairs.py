"""Who deals with whom: each agent's pairs by the gate's own rules, and the picture of them."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest
from django.contrib.auth.models import User
from django.urls import reverse

from engine.admin.topology import pairs
from tests.doors import make_world
from tests.site.admin_world import count_queries, person_with

if TYPE_CHECKING:
    from django.test import Client

    from engine.models import Simulation

pytestmark = pytest.mark.django_db

PAIRS = "/admin/engine/simulation/pairs/"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def admin_user() -> User:
    """Stand in for pytest-django's, whose password takes a second to hash."""
    return User.objects.create(username="admin", is_staff=True, is_superuser=True)


@pytest.fixture
def world() -> Simulation:
    cohorts = {"north": ("ash", "elm"), "south": ("fir",)}
    return make_world(cohorts=cohorts, policy="isolated")


def picture(client: Client, simulation: Simulation) -> ET.Element:
    address = reverse("admin:engine_pairs_picture", args=[simulation.pk])
    answer = client.get(address)
    assert answer["Content-Type"] == "image/svg+xml"
    return ET.fromstring(answer.content)  # noqa: S314 - our own page


def names(svg: ET.Element) -> list[str]:
    return ["".join(text.itertext()) for text in svg.findall(f"{SVG}text")]


def test_pairs_of_an_agent_are_told_with_the_reason(
    admin_client: Client, world: Simulation
) -> None:
    page = admin_client.get(PAIRS, {"agent": "ash"}).content.decode()
    assert "They share the cohort north." in page
    assert page.count("They share no cohort, and the policy is isolated.") == 2
    assert "2 of them hear nobody: fir, oak" in page


def test_picture_has_each_agent_a_line_for_each_pair_and_marks_the_silent(
    admin_client: Client, world: Simulation
) -> None:
    svg = picture(admin_client, world)
    assert names(svg) == ["ash", "elm", "fir \u2013 silent", "oak \u2013 silent"]
    (lines, *_) = svg.findall(f"{SVG}g")
    assert len(lines) == 1
    assert len(svg.findall(f"{SVG}rect")) == 3  # the ground and the two silent ones


def test_picture_of_many_agents_is_of_cohorts(
    admin_client: Client, world: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pairs, "AGENTS_DRAWN", 3)
    svg = picture(admin_client, world)
    assert names(svg) == ["north (2)", "south (1) \u2013 silent"]


def test_name_that_is_long_is_cut(admin_client: Client) -> None:
    world = make_world("w", agents=("a" * 40,), policy="off")
    assert names(picture(admin_client, world)) == ["a" * 21 + "\u2026 \u2013 silent"]


def test_page_without_a_simulation_or_agent_says_so(admin_client: Client, client: Client) -> None:
    assert "There is no simulation yet" in admin_client.get(PAIRS).content.decode()
    make_world()
    assert "There is no agent nobody" in (
        admin_client.get(PAIRS, {"agent": "nobody"}).content.decode()
    )
    for wrong in ("x", "999", "-1"):
        assert admin_client.get(PAIRS, {"simulation": wrong}).status_code == 404


def test_refused_gate_is_told(admin_client: Client) -> None:
    make_world(policy="isolated")
    assert "The gate is treated as off" in admin_client.get(PAIRS).content.decode()


def test_page_needs_both_rights(client: Client, world: Simulation) -> None:
    assert person_with(client, "view_cohort").get(PAIRS).status_code == 403


def test_pairs_come_in_pages_and_queries_do_not_grow(
    admin_client: Client, world: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = count_queries(admin_client, f"{PAIRS}?agent=ash")
    monkeypatch.setattr(pairs, "IN_A_PAGE", 2)
    page = admin_client.get(PAIRS, {"agent": "ash", "p": "2"}).content.decode()
    assert "page 2 of 2" in page
    make_world("more", agents=[f"x{n}" for n in range(30)])
    assert count_queries(admin_client, f"{PAIRS}?agent=ash") <= few + 1 <= 14
