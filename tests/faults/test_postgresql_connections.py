"""Connections to PostgreSQL that are cut at the worst moments, by a proxy that reads along."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.db import connection

from engine.models import RunLease
from tests.doors import database_url, faulty_run, wait_until
from tests.faults.proxy import CutPlan, proxied
from tests.faults.society import (
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
        wait_until(lambda: len(plan.done) == 5 * n_rounds + 1 or process.poll() is not None)
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
