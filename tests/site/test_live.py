"""The page of a run that is not over: what its driver shows, in a few queries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth.models import User
from django.urls import reverse

from engine.models import Alert, Run, RunControl, RunLease, TopologySnapshot
from tests.site.admin_world import (
    HOSTILE,
    NOON,
    Rows,
    count_queries,
    make_rows,
    page_of,
    person_with,
    say,
    talk,
)

if TYPE_CHECKING:
    from django.test import Client

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin_user() -> User:
    """Stand in for pytest-django's, whose password takes a second to hash."""
    return User.objects.create(username="admin", is_staff=True, is_superuser=True)


def go_live(rows: Rows, status: str = "running", **picture: Any) -> Rows:
    """Let the run go on, with what its driver shows."""
    configuration = {"llm": "anthropic", "concurrent_turns": 3, "max_turns": 10}
    configuration |= {"max_nano_usd": 10**9, "max_calls": 100}
    Run.objects.update(status=status, end_reason="", finished_at=None, configuration=configuration)
    RunControl.objects.create(run=rows.run)
    RunLease.objects.create(
        simulation=rows.simulation, run=rows.run, token=1, owner="here:1", counters=picture
    )
    rows.run.refresh_from_db()
    return rows


def picture(**other: Any) -> dict[str, Any]:
    slot = {"agent": "ada-lab", "turn": 7, "since": NOON.isoformat(), "phase": "reply", "thread": 1}
    return {
        "at": NOON.replace(second=25).isoformat(),
        "turns": 9,
        "messages": 4,
        "calls": 12,
        "calls_in_flight": 2,
        "spent_nano_usd": 850_000_000,
        "open_threads": 1,
        "ended_threads": {"proposal": 2},
        "kept_back": 5,
        "failures_in_row": 0,
        "ready": 3,
        "slots": [slot, slot | {"agent": "bob-lab", "turn": 8, "phase": "", "thread": None}],
        **other,
    }


def part(rows: Rows, name: str = "now") -> str:
    return reverse("admin:engine_run_part", args=[rows.run.pk, name])


def run_url(rows: Rows) -> str:
    return reverse("admin:engine_run_change", args=[rows.run.pk])


def test_page_shows_what_the_driver_shows(admin_client: Client) -> None:
    rows = make_rows()
    talk(rows, 1)
    go_live(rows, **picture())
    page = page_of(admin_client, run_url(rows))
    for shown in (
        "<dt>Turns taken</dt><dd>9</dd>",
        "<dt>Spent</dt><dd>$0.8500</dd>",
        "<dt>Proposals</dt><dd>2</dd>",
        "Money: $0.8500 of $1.0000",
        "Turns: 9 of 10",
        "<strong>ada-lab</strong> writes in a thread",
        ">thread 1</a>), turn 7, for 25 s",
        "<strong>bob-lab</strong> begins its turn, turn 8",
        "2 of 3 slots are busy.",
        "hello summary 1",
        "Raise the cap",
        "Its driver died",
    ):
        assert shown in page
    assert page.count("Warning:") == 3  # it is dead, and two limits are near
    assert page_of(admin_client, part(rows)).count("Warning:") == 3


def test_run_that_was_not_driven_yet_says_so(admin_client: Client) -> None:
    rows = make_rows()
    Run.objects.update(status="queued", started_at=None, finished_at=None)
    page = page_of(admin_client, run_url(rows))
    for shown in ("It waits for a worker.", "No turn is in flight", "Nothing was said yet."):
        assert shown in page


def test_paused_run_shows_what_it_had_when_it_paused(admin_client: Client) -> None:
    rows = go_live(make_rows(), "paused", slot_utilisation=1.0)
    Run.objects.update(
        end_reason="money_cap",
        summary={
            "turns": 8,
            "messages": 3,
            "cost_usd": 0.9,
            "llm_calls": {"reply": 4},
            "threads": {"open": 2},
        },
    )
    page = page_of(admin_client, run_url(rows))
    assert "<dt>Turns taken</dt><dd>8</dd>" in page
    assert "Money: $0.9000 of $1.0000" in page
    assert "It paused at a cap" in page


def test_warnings_are_told(admin_client: Client) -> None:
    rows = go_live(make_rows(), **picture(failures_in_row=2, spent_nano_usd=0, turns=1))
    TopologySnapshot.objects.create(
        run=rows.run, version=1, at=NOON, policy="isolated", verdict="refused"
    )
    Alert.objects.create(
        key="x", kind="slow", simulation=rows.simulation, run=rows.run, at=NOON,
        sentence="It takes long.", next_step="Look.",
    )  # fmt: skip
    page = page_of(admin_client, part(rows))
    for shown in ("failed 2 times in a row", "The cohorts are ignored", "It takes long."):
        assert shown in page
    RunLease.objects.update(counters=picture(failures_in_row=1))
    assert "failed once" in page_of(admin_client, part(rows))


def test_part_of_a_run_that_is_over_leads_to_its_report(admin_client: Client) -> None:
    rows = make_rows()
    assert "data-reload" in page_of(admin_client, part(rows))
    assert "data-reload" not in page_of(admin_client, part(go_live(rows)))


def test_observer_sees_no_buttons(client: Client) -> None:
    rows = go_live(make_rows(), **picture())
    page = page_of(person_with(client, "view_run"), run_url(rows))
    assert "Last asked" not in page
    assert "<button" not in page.partition("sim-page")[2]
    assert "<button" not in page_of(client, part(rows, "acts"))


def test_hostile_text_stays_text(admin_client: Client) -> None:
    rows = make_rows()
    say(rows, 1, HOSTILE)
    slot = {
        "agent": HOSTILE,
        "turn": 1,
        "since": NOON.isoformat(),
        "phase": HOSTILE,
        "thread": None,
    }
    go_live(rows, **picture(slots=[slot]))
    for page in (page_of(admin_client, run_url(rows)), page_of(admin_client, part(rows))):
        assert "<script>alert" not in page
        assert "&lt;script&gt;alert" in page


@pytest.mark.parametrize("wrong", ["999999/now/", "1/other/", "9" * 30 + "/now/"])
def test_unknown_part_is_not_found(admin_client: Client, wrong: str) -> None:
    make_rows()
    assert admin_client.get(f"/admin/engine/run/{wrong}").status_code in {302, 404}


def test_number_of_queries_does_not_grow(admin_client: Client) -> None:
    rows = make_rows()
    go_live(rows, **picture())
    few = count_queries(admin_client, part(rows))
    for seq in range(1, 40, 3):
        talk(rows, seq)
    assert count_queries(admin_client, part(rows)) <= few + 1 <= 16
