"""`explaingate`: the decision, its rule and the shared cohorts, without a run."""

from __future__ import annotations

import json

import pytest
from django.core.management import CommandError, call_command

from cohorts.models import Agent, Cohort, Membership
from engine.models import RosterEntry, Simulation

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def world() -> None:
    """Alder and birch in the cohort `field`, cedar in `garden`, elm in none."""
    agents = {
        slug: Agent.objects.create(slug=slug, bot_name=slug)
        for slug in ("alder", "birch", "cedar", "elm")
    }
    for name, members in {"field": ("alder", "birch"), "garden": ("cedar",)}.items():
        cohort = Cohort.objects.create(name=name, created_by="tester")
        for slug in members:
            Membership.objects.create(cohort=cohort, agent=agents[slug], added_by="tester")


def explain(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    call_command("explaingate", *arguments)
    return capsys.readouterr().out


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[bool, int | str]:
    found = json.loads(explain(capsys, *arguments, "--json"))
    return found["permitted"], found["rule"]


def test_shared_cohort_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert json.loads(explain(capsys, "alder", "birch", "--json")) == {
        "actor": "alder",
        "author": "birch",
        "permitted": True,
        "rule": 6,
        "reason": "They share the cohort field.",
        "shared_cohorts": ["field"],
        "policy": "open",
    }
    assert explain(capsys, "alder", "birch") == (
        "alder may act on birch (rule 6). They share the cohort field.\n"
        "Shared cohorts: field. Policy: open.\n"
    )


def test_agents_apart_are_refused_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert explain(capsys, "alder", "cedar") == (
        "alder may not act on cedar (rule 7). They share no cohort, and the policy is open.\n"
        "Shared cohorts: none. Policy: open.\n"
    )


def test_policy_of_the_command_line_decides(capsys: pytest.CaptureFixture[str]) -> None:
    assert answer(capsys, "alder", "elm") == (True, 6)
    assert answer(capsys, "alder", "elm", "--policy", "isolated") == (False, 7)
    assert answer(capsys, "alder", "cedar", "--policy", "off") == (True, 1)


def test_policy_and_roster_of_the_simulation_decide(capsys: pytest.CaptureFixture[str]) -> None:
    simulation = Simulation.objects.create(name="labs", policy="isolated")
    assert answer(capsys, "alder", "elm", "--simulation", "labs") == (False, 7)
    assert answer(capsys, "alder", "elm", "--simulation", "labs", "--policy", "open")[0]
    simulation.roster_chosen = True
    simulation.save()
    RosterEntry.objects.create(simulation=simulation, agent=Agent.objects.get(slug="elm"))
    assert answer(capsys, "alder", "elm", "--simulation", "labs") == (True, "preflight")
    assert "(preflight)" in explain(capsys, "alder", "elm", "--simulation", "labs")


def test_isolation_without_an_active_member_is_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Agent.objects.exclude(slug="elm").update(status="paused")
    assert answer(capsys, "alder", "elm", "--policy", "isolated") == (True, "preflight")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nobody", "alder"), 'There is no agent "nobody": give the id'),
        (("alder", "nobody"), 'There is no agent "nobody": give the id'),
        (("alder", "birch", "--simulation", "none-such"), 'There is no simulation "none-such"'),
    ],
)
def test_unknown_name_is_wrong_use(arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(CommandError, match=message) as refused:
        call_command("explaingate", *arguments)
    assert refused.value.returncode == 2
