"""Connections to PostgreSQL that are cut at the worst moments, by a proxy that reads along."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest
from django.db import connection

from engine.models import RunLease
from tests.doors import database_url, faulty_run, wait_until
from tests.faults.proxy import CutPlan, proxied
from tests.faults.society import (
    is_stopped,
    n_groups,
    see_it_stopped,
    see_laws_kept,
    stopped,
    talkative_world,
    wait_for_messages,
)

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(600)]


def server() -> tuple[str, int]:
    stored = connection.settings_dict
    return stored["HOST"], int(stored["PORT"])


def through(port: int) -> str:
    """Return this test's database as it is called through a proxy."""
    return database_url().replace(f":{server()[1]}/", f":{port}/")


def n_open_transactions() -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND state LIKE 'idle in transaction%'"
        )
        found: int = cursor.fetchone()[0]
        return found


def test_session_that_the_server_ended_in_a_transaction_is_made_anew(tmp_path: Path) -> None:
    """A machine that slept for a moment too long wakes up, and nobody has taken over."""
    talkative_world()
    with faulty_run("stop-in-commit=9", "--seed", "3", "--json") as process:
        wait_until(lambda: is_stopped(process))
        wait_until(lambda: n_open_transactions() == 0)
        process.send_signal(signal.SIGCONT)
        wait_for_messages(6, process)
        left = stopped(process)
    see_it_stopped(left)
    see_laws_kept(tmp_path)


def test_cut_connections_lose_no_group_and_store_none_twice(tmp_path: Path, is_soak: bool) -> None:
    """Cut before a commit arrives, after it and before its answer, twice in a row, at the pulse."""
    n_rounds = 20 if is_soak else 2
    starts = range(4, 4 + 10 * n_rounds, 10)
    plan = CutPlan(
        after=frozenset(n for start in starts for n in (start, start + 1, start + 5)),
        before=frozenset(n for start in starts for n in (start + 3, start + 6)),
        look=3,
    )
    talkative_world()
    with (
        proxied(server(), plan) as port,
        faulty_run("none", "--seed", "3", "--json", DATABASE_URL=through(port)) as process,
    ):
        wait_until(
            lambda: len(plan.done) == 5 * n_rounds + 1 or process.poll() is not None,
            seconds=20 + 10 * n_rounds,
        )
        assert process.poll() is None
        wait_for_messages(10)
        left = stopped(process)
    see_it_stopped(left)
    assert (plan.done.count("after"), plan.done.count("before"), plan.done.count("look")) == (
        3 * n_rounds,
        2 * n_rounds,
        1,
    )
    # Each group asked for its commit once, and once more for each cut: none has two numbers.
    assert plan.n_commits == n_groups() + len(plan.done) - 1
    assert RunLease.objects.get().token == 1
    see_laws_kept(tmp_path)
