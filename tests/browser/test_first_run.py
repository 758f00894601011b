"""From an empty site to a finished rehearsal, and a live run watched from two windows."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from engine.models import Run
from tests.clusters.cluster import clusters
from tests.doors import make_world

if TYPE_CHECKING:
    from tests.browser.conftest import Visit

#: A worker that starts, and a run, on a machine that has other work too.
PATIENCE = 40_000


def test_three_clicks_lead_to_a_finished_rehearsal(visit: Visit) -> None:
    with clusters(1):
        page = visit.person("Operator").page()
        page.get_by_role("button", name="Try it: rehearsal with the demo roster").click()
        expect(page.get_by_text("is asked for. A worker takes it")).to_be_visible()
        expect(page.get_by_text("Completed", exact=False).first).to_be_visible(timeout=PATIENCE)
    assert Run.objects.get().end_reason == "idle"


def test_stop_in_one_window_is_seen_in_the_other_and_no_form_is_reset(visit: Visit) -> None:
    world = make_world(turn_delay_seconds=0.2)
    with clusters(1):
        person = visit.person("Operator")
        first = person.page(f"/admin/engine/simulation/{world.pk}/start/")
        first.get_by_label("End when nothing is left to do").uncheck()
        first.get_by_role("button", name="Start").click()
        expect(first.get_by_role("heading", name="Now: running")).to_be_visible(timeout=PATIENCE)
        second = visit.person("Operator").page(first.url)
        expect(second.get_by_role("heading", name="Now: running")).to_be_visible(timeout=PATIENCE)
        second.get_by_role("button", name="Stop").click()
        over = re.compile("Stopped|This run is over", re.IGNORECASE)
        expect(first.get_by_text(over).first).to_be_visible(timeout=PATIENCE)
    assert Run.objects.get().status == "stopped"


def test_page_goes_on_when_the_server_is_away_for_a_while(visit: Visit) -> None:
    world = make_world()
    run = Run.objects.create(simulation=world, status="queued")
    person = visit.person("Operator")
    page = person.page(f"/admin/engine/run/{run.pk}/change/")
    visit.expected += ["Failed to load resource", "ERR_FAILED"]
    person.context.route("**/now/", lambda route: route.abort())
    expect(page.get_by_text("No answer since").first).to_be_visible()
    person.context.unroute("**/now/")
    Run.objects.update(status="stopped")
    expect(page.get_by_text("No answer since").first).to_be_hidden()


def test_double_click_starts_one_run(visit: Visit) -> None:
    world = make_world()
    page = visit.person("Operator").page(f"/admin/engine/simulation/{world.pk}/start/")
    page.get_by_role("button", name="Start").dblclick()
    expect(page.get_by_role("heading", name="Now: queued")).to_be_visible()
    assert Run.objects.count() == 1


@pytest.mark.parametrize("group", ["Observer", "Reviewer"])
def test_who_may_not_start_finds_no_way_to(visit: Visit, group: str) -> None:
    world = make_world()
    page = visit.person(group).page()
    expect(page.get_by_role("button", name="Try it")).to_have_count(0)
    visit.expected += ["status of 403"]
    answer = page.goto(f"/admin/engine/simulation/{world.pk}/start/")
    assert answer is not None
    assert answer.status == 403
