"""Schedules in real clusters: each time gets one run, which one of them drives."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest

from engine.models import Occasion, Run, RunSchedule
from engine.runs.schedules import save_schedule
from tests.clusters.cluster import PATIENCE_SECONDS, clusters, society
from tests.doors import wait_until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(300)]

N_SCHEDULES = 3


def test_due_times_get_one_run_each_in_two_clusters() -> None:
    now = datetime.now(tz=UTC)
    for number in range(N_SCHEDULES):
        schedule = RunSchedule(
            name=f"schedule {number}",
            simulation=society(f"world-{number}"),
            kind="every",
            every_minutes=60 * 24,
            time_zone="UTC",
            first_date=date(2026, 1, 1),
            missed="once",
            owner="ada",
            asked={"llm": "offline", "max_turns": 3},
        )
        save_schedule(schedule, who="ada", now=now - timedelta(days=1))
    with clusters(2, SIM_MAX_RUNS_PER_HOST="4"):
        wait_until(
            lambda: Run.objects.filter(status="completed").count() == N_SCHEDULES,
            seconds=2 * PATIENCE_SECONDS,
        )
    assert Run.objects.count() == N_SCHEDULES
    decided = Occasion.objects.values_list("schedule__name", "outcome", "run__end_reason")
    assert sorted(decided) == [(f"schedule {n}", "run", "turn_limit") for n in range(N_SCHEDULES)]
