"""Every page and every act of the admin: who gets it, and who is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group, User
from django.test import Client
from django.urls import URLPattern, URLResolver, reverse

from tests.site.every_page import one_of_each, url_of

if TYPE_CHECKING:
    from django.db.models import Model

    from tests.site.admin_world import Rows

pytestmark = pytest.mark.django_db

GROUPS = {"O": "Owner", "P": "Operator", "R": "Reviewer", "B": "Observer"}
ALL = "OPRB"
#: Who may look, add, change and delete, by the pages of a model.
MODELS = {
    "auth_user": ("O", "O", "O", "O"),
    "auth_group": ("O", "O", "O", "O"),
    "admin_logentry": ("OP", "", "", ""),
    "cohorts_agent": (ALL, "OP", "OP", "OP"),
    "cohorts_agentversion": (ALL, "", "", ""),
    "cohorts_cohort": (ALL, "OP", "OP", "OP"),
    "cohorts_topologychange": (ALL, "", "", ""),
    "engine_simulation": (ALL, "OP", "OP", ""),
    "engine_houserules": (ALL, "", "", ""),
    "engine_run": (ALL, "", "", ""),
    "engine_turn": (ALL, "", "", ""),
    "engine_llmcall": (ALL, "", "", ""),
    "engine_message": (ALL, "", "", ""),
    "engine_memory": (ALL, "", "OP", ""),
    "engine_proposal": (ALL, "", "", ""),
    "engine_runschedule": (ALL, "OP", "OP", "OP"),
    "engine_alert": (ALL, "", "", ""),
    "engine_alertreader": ("O", "O", "O", "O"),
    "engine_modelprice": (ALL, "O", "O", "O"),
    "engine_daycap": (ALL, "", "O", ""),
    "django_q_schedule": ("", "", "", ""),
    "django_q_success": ("", "", "", ""),
    "django_q_failure": ("", "", "", ""),
    "django_q_ormq": ("", "", "", ""),
}
#: Pages of our own: who may look, and who may post.
OWN = {
    "auth_user_password_change": ("O", "O"),
    "cohorts_agent_quiet": (ALL, ALL),  # it changes nothing
    "cohorts_agent_differences": (ALL, "OP"),
    "cohorts_agent_copy": ("OP", "OP"),
    "cohorts_agent_load": ("OP", "OP"),
    "cohorts_agent_export": ("OP", "OP"),
    "cohorts_cohort_members": (ALL, "OP"),
    "engine_run_ask": ("", "OP"),
    "engine_run_raise": ("", "OP"),
    "engine_proposal_review": ("", "OR"),
    "engine_runschedule_now": ("", "OP"),
    "engine_simulation_talk": (ALL, ALL),  # it only leads on
    "engine_channel_talk": (ALL, "OPR"),
    "engine_channel_members": (ALL, "OP"),
    "engine_thread": (ALL, "OPR"),
    "engine_search": (ALL, ALL),  # it changes nothing
    "engine_keep": (ALL, "OP"),
    "engine_roster": (ALL, "OP"),
    "engine_run_part": (ALL, ALL),  # it changes nothing
    "engine_run_chart": (ALL, ALL),
    "engine_run_compare": (ALL, ALL),
    "engine_run_export": (ALL, ALL),
    "engine_start": ("OP", "OP"),
    "engine_try": ("", "OP"),
    "engine_matrix": (ALL, "OP"),
    "engine_in_use": (ALL, ALL),  # it changes nothing
    "engine_topology_apply": ("", "OP"),
    "engine_pairs": (ALL, ALL),
    "engine_pairs_picture": (ALL, ALL),
}
#: Pages that everybody has who is signed in, or nobody needs rights for.
FREE = {
    *("index", "login", "logout", "password_change", "password_change_done"),
    *("autocomplete", "jsi18n", "view_on_site", "app_list"),
}
PARTS = ("changelist", "add", "history", "delete", "change")


@pytest.fixture
def world() -> tuple[Rows, dict[str, Model]]:
    return one_of_each()


def finish(answer: Any) -> None:
    """Close the file that an answer would send, and not the database's connection with it."""
    for close in answer._resource_closers:
        close()


def member_of(group: str) -> Client:
    user = User.objects.create(username=f"a-{group}", is_staff=True)
    user.groups.add(Group.objects.get(name=group))
    client = Client()
    client.force_login(user)
    return client


def names() -> set[str]:
    """Return the names of all pages of the admin."""
    patterns: list[URLPattern | URLResolver] = [*admin.site.get_urls()]
    found: set[str] = set()
    while patterns:
        pattern = patterns.pop()
        if isinstance(pattern, URLResolver):
            patterns += pattern.url_patterns
        elif pattern.name:
            found.add(pattern.name)
    return found


def test_every_page_is_in_the_table() -> None:
    of_models = {f"{model}_{part}" for model in MODELS for part in PARTS}
    assert names() == of_models | OWN.keys() | FREE


@pytest.mark.parametrize("letter", GROUPS)
def test_pages_of_models_are_for_those_who_may(
    world: tuple[Rows, dict[str, Model]], letter: str
) -> None:
    client = member_of(GROUPS[letter])
    wrong = []
    for model, (look, add, change, delete) in MODELS.items():
        may = {"changelist": look, "history": look, "change": look, "add": add, "delete": delete}
        for part, letters in may.items():
            row = world[1].get(model)
            if row is None and part not in {"changelist", "add"}:
                continue
            args = () if part in {"changelist", "add"} else (row.pk,)  # type: ignore[union-attr]
            status = client.get(reverse(f"admin:{model}_{part}", args=args)).status_code
            if (status == 200) is not (letter in letters) or status not in {200, 403}:
                wrong.append((model, part, status))
        if change and (row := world[1].get(model)) is not None:
            page = reverse(f"admin:{model}_change", args=(row.pk,))
            status = client.post(page, {"unreadable": 1}).status_code
            if (status == 403) is (letter in change):
                wrong.append((model, "POST change", status))
    assert wrong == []


@pytest.mark.parametrize("letter", GROUPS)
def test_own_pages_and_acts_are_for_those_who_may(
    world: tuple[Rows, dict[str, Model]], letter: str
) -> None:
    client = member_of(GROUPS[letter])
    wrong = []
    for name, (look, post) in OWN.items():
        page = url_of(name, *world)
        answer = client.get(page)
        finish(answer)
        status = answer.status_code
        if (status in {200, 302}) is not (letter in look):
            wrong.append((name, "GET", status))
        answer = client.post(page, {})
        finish(answer)
        status = answer.status_code
        if (status in {403, 405}) is (letter in post):
            wrong.append((name, "POST", status))
    assert wrong == []


def test_nobody_gets_a_page_without_signing_in(world: tuple[Rows, dict[str, Model]]) -> None:
    client = Client()
    pages = [reverse(f"admin:{model}_changelist") for model in MODELS]
    pages += [url_of(name, *world) for name in OWN]
    for page in pages:
        for answer in (client.get(page), client.post(page)):
            assert answer.status_code == 302
            assert "/admin/login/" in answer["Location"]
