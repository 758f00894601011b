"""`/metrics`: who may read it, what it says, and that it never counts over history."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from engine.metrics import Family, read, render
from engine.models import Alert, DayCap, LlmCall, Proposal, Purse, Run, RunLease
from engine.store.purses import day_purse, run_purse
from engine.workers import beat
from tests.site.admin_world import NOON, Rows, make_rows, take_turn, talk

if TYPE_CHECKING:
    from django.test import Client
    from pytest_django import Settings

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]

LATER = NOON + timedelta(minutes=5)


def live_rows() -> Rows:
    """Return a world whose run is live, with two turns and a call that failed."""
    rows = make_rows()
    Run.objects.filter(pk=rows.run.pk).update(status="running", finished_at=None)
    RunLease.objects.create(simulation=rows.simulation, run=rows.run, token=1, beat_at=NOON)
    take_turn(rows, 1)
    take_turn(rows, 2)
    LlmCall.objects.filter(turn=2).update(error="busy", input_tokens=30, cache_read_tokens=7)
    return rows


def lines() -> list[str]:
    return render(read(LATER)).splitlines()


def test_page_is_text_that_a_collector_reads() -> None:
    family = Family(name="sim_x", says="What x is.")
    family.add(2, of='a"b\\c\nd', other=3)
    family.add(0.5)

    assert render([family]) == (
        "# HELP sim_x What x is.\n"
        "# TYPE sim_x gauge\n"
        'sim_x{of="a\\"b\\\\c\\nd",other="3"} 2\n'
        "sim_x 0.5\n"
    )


def test_metrics_of_a_live_run() -> None:
    rows = live_rows()
    run = f'run="{rows.run.pk}",simulation="main"'
    Run.objects.create(simulation=rows.simulation, status="queued")
    Run.objects.update(created_at=NOON)
    Purse.objects.create(name=run_purse(rows.run.pk), run=rows.run, spent_nano_usd=1_500_000_000)
    Purse.objects.create(name=day_purse(NOON.date()), reserved_nano_usd=250_000_000)
    DayCap.objects.create(pk=1, max_nano_usd=10_000_000_000)
    talk(rows, 1)
    Proposal.objects.update(proposed_at=NOON)
    Alert.objects.create(key="k", kind="late", simulation=rows.simulation, at=NOON)
    beat("host-a runs", NOON + timedelta(minutes=4))

    assert {
        'sim_runs{status="running"} 1',
        'sim_runs{status="queued"} 1',
        'sim_runs{status="failed"} 0',
        "sim_queue_longest_wait_seconds 300.0",
        f"sim_lease_age_seconds{{{run}}} 300.0",
        'sim_worker_silent_seconds{worker="host-a runs"} 60.0',
        'sim_turns_total{simulation="main"} 2',
        'sim_turn_longest_wait_seconds{simulation="main"} 2.0',
        'sim_recent_llm_calls{model="offline",outcome="answered"} 1',
        'sim_recent_llm_calls{model="offline",outcome="failed"} 1',
        'sim_recent_tokens{model="offline",kind="input"} 30',
        'sim_recent_tokens{model="offline",kind="cache_read"} 7',
        'sim_recent_cost_usd{model="offline"} 0.003',
        'sim_day_usd{state="spent"} 0.0',
        'sim_day_usd{state="reserved"} 0.25',
        'sim_day_usd{state="cap"} 10.0',
        f'sim_run_usd{{state="spent",{run}}} 1.5',
        "sim_proposals_waiting 1",
        "sim_proposals_longest_wait_seconds 300.0",
        'sim_alerts{kind="late"} 1',
        "sim_alert_mails_waiting 0",
    } <= set(lines())


def test_metrics_of_nothing_name_every_metric() -> None:
    told = lines()

    assert 'sim_runs{status="running"} 0' in told
    assert "# TYPE sim_turns_total counter" in told
    assert not [line for line in told if line.startswith("sim_recent")]


def test_calls_before_the_last_ten_minutes_are_not_counted() -> None:
    live_rows()
    LlmCall.objects.filter(turn=1).update(started_at=LATER - timedelta(minutes=10))

    assert 'sim_recent_llm_calls{model="offline",outcome="answered"} 0' in lines()


def test_metrics_read_no_history() -> None:
    live_rows()
    with CaptureQueriesContext(connection) as asked:
        read(LATER)
    plans = [plan_of(query["sql"]) for query in asked.captured_queries]

    assert len(plans) == 13
    assert [plan for plan in plans if reads_all(plan)] == []
    assert reads_all(plan_of("SELECT COUNT(*) FROM engine_turn WHERE outcome = 'worked'"))


def plan_of(sql: str) -> str:
    """Return how the database would answer if its tables were large: a small one it just reads."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET LOCAL enable_seqscan = off")
            cursor.execute(f"EXPLAIN {sql}")
        else:
            cursor.execute(f"EXPLAIN QUERY PLAN {sql}")
        return "\n".join(str(row[-1]) for row in cursor.fetchall())


def reads_all(plan: str) -> bool:
    """Tell whether a plan reads all of a table that grows with every turn.

    Of proposals there is an index of those that wait alone.
    """
    read_whole = re.findall(r"(?:Seq Scan on|SCAN) engine_(turn|llmcall|message|proposal)\b", plan)
    return bool(read_whole) and "proposal_waiting" not in plan


def test_token_opens_the_metrics(client: Client, settings: Settings) -> None:
    settings.SIM_METRICS_TOKEN = "a-long-token"

    right = client.get("/metrics", headers={"authorization": "Bearer a-long-token"})
    wrong = client.get("/metrics", headers={"authorization": "Bearer a-long-tokem"})

    assert right.status_code == 200
    assert right["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert right.content.startswith(b"# HELP sim_runs ")
    assert (wrong.status_code, wrong["WWW-Authenticate"]) == (401, "Bearer")
    assert b"sim_runs" not in wrong.content


@pytest.mark.parametrize("header", ["", "Bearer ", "Bearer x"])
def test_without_a_token_in_the_settings_none_opens_them(
    client: Client, settings: Settings, header: str
) -> None:
    settings.SIM_METRICS_TOKEN = ""

    assert client.get("/metrics", headers={"authorization": header}).status_code == 401


def test_person_who_may_view_runs_reads_the_metrics(client: Client) -> None:
    person = User.objects.create(username="ada", is_staff=True)
    client.force_login(person)
    assert client.get("/metrics").status_code == 401

    person.user_permissions.add(Permission.objects.get(codename="view_run"))

    assert client.get("/metrics").status_code == 200
    assert client.post("/metrics").status_code == 405
