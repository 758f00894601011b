"""People who save forms beside a run: each save is kept and heard of, and the run goes on.

How long they wait is measured by `benchmarks.web_beside_run`.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from django.urls import reverse

from cohorts.models import Agent, AgentVersion
from engine.admin.agent.forms import AgentForm
from engine.models import Inbox, Turn
from tests.doors import faulty_run, wait_until
from tests.faults.society import (
    CORE,
    EAST,
    see_it_stopped,
    see_laws_kept,
    stopped,
    talkative_world,
    wait_for_messages,
)

if TYPE_CHECKING:
    from pathlib import Path

    from django.test import Client

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(600)]

EVERY_SECONDS = 0.05


def save(client: Client, slug: str, profile: str) -> None:
    """Save an agent's form, as a browser sends it."""
    agent = Agent.objects.get(slug=slug)
    shown = AgentForm(instance=agent).initial
    values = {name: "" if value is None else value for name, value in shown.items()}
    values |= {"public_profile": profile, "versions-TOTAL_FORMS": 0, "versions-INITIAL_FORMS": 0}
    answer = client.post(reverse("admin:cohorts_agent_change", args=[agent.pk]), values)
    assert answer.status_code == 302, answer.content.decode()


def test_forms_saved_every_50_ms_are_all_kept_and_heard_of_by_the_run(
    admin_client: Client, tmp_path: Path, is_soak: bool
) -> None:
    slugs = (*CORE, *EAST)
    n_saves = 40 if is_soak else 10
    talkative_world()
    with faulty_run("none", "--seed", "3", "--json") as process:
        wait_for_messages(4)
        for number in range(n_saves * len(slugs)):
            save(admin_client, slugs[number % len(slugs)], f"A profile of number {number}.")
            time.sleep(EVERY_SECONDS)  # people pause: without it nobody else would get the file
        wait_until(lambda: not Inbox.objects.exists())
        newest = Turn.objects.order_by("number").values_list("number", flat=True).last() or 0
        wait_for_messages(6)
        wait_until(
            lambda: Turn.objects.filter(number__gt=newest, agent_version=n_saves + 1).exists()
        )
        left = stopped(process)
    see_it_stopped(left)
    assert AgentVersion.objects.count() == (n_saves + 1) * len(slugs)
    see_laws_kept(tmp_path)
