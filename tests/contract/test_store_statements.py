"""The statements that the database store writes out: what they replace, and by what they find."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING

import pytest
from django.db import connection

from engine.core.effects import TurnOutcome
from engine.core.records import AgentState
from engine.models import LlmCall, Turn
from engine.store.database import texts
from tests.contract.groups import at, call, group, post, turn
from tests.contract.site import commit, run

if TYPE_CHECKING:
    from tests.contract.site import DjangoSite

pytestmark = pytest.mark.django_db(transaction=True)


def test_row_that_stands_already_is_replaced_whole(django_site: DjangoSite) -> None:
    store = django_site.open_store()
    begun = replace(turn(1), outcome=TurnOutcome.RUNNING, finished_at=None, rejected=())
    early = AgentState(last_selected=1, cursor=1, bank=(1,), next_post_at=at(60))
    late = AgentState(
        last_selected=1, ended_at=at(2), cursor=3, posts_on=date(2026, 3, 2), posts_made=2
    )
    commit(store, group(1, turns=[begun], states=[(1, early)], calls=[call(1, 1)]))
    assert [(row.outcome, row.finished_at) for row in Turn.objects.all()] == [("running", None)]
    ended = replace(turn(1), n_llm_calls=1, detail="deadline")
    settled = replace(call(1, 1), output_tokens=7, error="cancelled")
    commit(store, group(2, turns=[ended], states=[(1, late)], calls=[settled]))
    assert run(store.load()).states == ((1, late),)
    (row,) = Turn.objects.all()
    assert (row.outcome, row.finished_at, row.detail) == ("worked", at(1.5), "deadline")
    assert (row.llm_calls, row.rejected) == (1, {"repeats": 2})
    assert [(one.output_tokens, one.error) for one in LlmCall.objects.all()] == [(7, "cancelled")]


def test_rows_of_other_keys_stay_as_they_are(django_site: DjangoSite) -> None:
    store = django_site.open_store()
    commit(store, group(1, turns=[turn(1), turn(2)], states=[(1, AgentState(cursor=1))]))
    ended = replace(turn(2), detail="deadline")
    commit(store, group(2, turns=[ended], states=[(2, AgentState(cursor=2))]))
    assert [row.detail for row in Turn.objects.order_by("number")] == ["", "deadline"]
    assert run(store.load()).states == ((1, AgentState(cursor=1)), (2, AgentState(cursor=2)))


def test_latest_texts_are_found_by_their_index_however_small_the_table_was(
    django_site: DjangoSite,
) -> None:
    """PostgreSQL keeps a plan, so one that reads all messages would slow down with each of them."""
    commit(django_site.open_store(), group(1, messages=[post(seq) for seq in range(1, 301)]))
    explain = "EXPLAIN" if connection.vendor == "postgresql" else "EXPLAIN QUERY PLAN"
    query = texts.LATEST[connection.vendor].format(places="(1), (2)", number=20)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
        cursor.execute(f"{explain} {query}", [1] * query.count("%s"))
        plan = "\n".join(str(row) for row in cursor.fetchall())
    assert "message_of_author" in plan
    assert "Seq Scan on engine_message" not in plan
    assert "SCAN m" not in plan
    # A condition with a subquery may be asked for every message, by the plan of a small table.
    assert connection.vendor == "sqlite" or "SubPlan" not in plan
