"""A society of any size with any history, written by a few statements; both databases alike.

    with own_database() as where:            # SQLite in a temporary folder, or DATABASE_URL
        society = make_society(n_agents=1_000, cohort_size=20, n_messages=100_000)
        run_talks(society, n_turns=5_000, n_slots=10)

Its agents are in pairs that talk: every turn owes one answer, makes one call and stores one
message. The history is what such talks leave: threads of twelve messages, each with its
conclusion, turns, calls and memories.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import django

if TYPE_CHECKING:
    from engine.models import Simulation

#: Messages of a closed thread of the history.
THREAD = 12
WORDS = "kiln timber stave resin leather spice drying rack barrel pitch flour bow".split()
LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)


@contextmanager
def own_database() -> Iterator[str]:
    """Set Django up on the database of DATABASE_URL, or on a fresh SQLite file; yield its kind."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        os.environ.setdefault("DATABASE_URL", f"sqlite:///{Path(folder) / 'bench.sqlite3'}")
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "simsite.settings")
        django.setup()
        from django.core.management import call_command
        from django.db import connection

        call_command("migrate", verbosity=0)
        yield connection.vendor
        connection.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Society:
    """What `make_society` has written."""

    simulation: Simulation
    n_agents: int
    n_messages: int


def make_society(*, n_agents: int, cohort_size: int | None, n_messages: int = 0) -> Society:
    """Write agents, cohorts of so many (None: one of all), a history, and an open talk per pair."""
    from django.db import transaction

    with transaction.atomic():
        simulation = _places(n_agents, cohort_size)
        if n_messages:
            _history(simulation, n_agents, n_messages)
        _open_talks(simulation, n_agents, n_messages)
    _settle()
    return Society(simulation=simulation, n_agents=n_agents, n_messages=n_messages)


def _places(n_agents: int, cohort_size: int | None) -> Simulation:
    from cohorts.models import Agent, AgentVersion, Cohort, Membership
    from engine.models import Channel, Simulation, Subscription

    agents = Agent.objects.bulk_create(
        (
            Agent(
                pk=number,
                slug=f"agent-{number}",
                bot_name=f"Agent{number}",
                public_profile=f"House {number} offers {_text(number)}.",
                daily_posts=0,
            )
            for number in range(1, n_agents + 1)
        ),
        batch_size=1000,
    )
    AgentVersion.objects.bulk_create(
        (
            AgentVersion(agent=agent, number=1, bot_name=agent.bot_name, saved_by="benchmark")
            for agent in agents
        ),
        batch_size=1000,
    )
    size = cohort_size or n_agents
    n_cohorts = -(-n_agents // size)
    Cohort.objects.bulk_create(
        Cohort(pk=number, name=f"cohort-{number}", created_by="benchmark")
        for number in range(1, n_cohorts + 1)
    )
    Membership.objects.bulk_create(
        (
            Membership(cohort_id=1 + place // size, agent=agent, added_by="benchmark")
            for place, agent in enumerate(agents)
        ),
        batch_size=1000,
    )
    simulation = Simulation.objects.create(name="bench")
    channel = Channel.objects.create(pk=1, simulation=simulation, name="general")
    Subscription.objects.bulk_create(
        (Subscription(channel=channel, agent=agent) for agent in agents), batch_size=1000
    )
    return simulation


def _text(number: int) -> str:
    """Return some twenty words that no other number has in this order."""
    picked = [WORDS[(number // len(WORDS) ** power) % len(WORDS)] for power in range(6)]
    return f"number {number}: " + " ".join(picked * 3)


# --- what was said before ----------------------------------------------------------------------------


def _history(simulation: Simulation, n_agents: int, n_messages: int) -> None:
    """Write closed threads between partners, one after the other, as an earlier run left them."""
    from engine.models import Run

    run = Run.objects.create(simulation=simulation, status="completed", end_reason="idle")
    n_threads = n_messages // THREAD
    numbers = f"WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {n_threads * THREAD - 1})"
    threads = f"WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {n_threads - 1})"
    n_pairs = n_agents // 2
    opener = f"(2 + 2 * (i % {n_pairs}))"
    author = f"(1 + 2 * ((i / {THREAD}) % {n_pairs}) + (i % {THREAD}) % 2)"
    root = f"(1 + {THREAD} * (i / {THREAD}))"
    place = f"(i % {THREAD})"
    common = {"simulation_id": simulation.pk}
    _fill("Message", numbers, common | {
        "id": "i + 1", "seq": "i + 1", "channel_id": 1,
        "root_id": f"CASE WHEN {place} = 0 THEN NULL ELSE {root} END",
        "ordinal": f"{place} + 1",
        "answers_ordinal": f"CASE WHEN {place} = 0 THEN NULL ELSE {place} END",
        "author_id": author, "person": "''", "is_bot": "true",
        "text": "'It was said in thread ' || i || ' that timber, staves and resin dry slowly in the kiln, and that a partner for the autumn is wanted.'",
        "visibility": "'public'", "addressed_id": "NULL", "written_at": LONG_AGO,
        "committed_at": LONG_AGO, "run_id": run.pk, "turn": "i + 1",
        "mirror_state": "'none'", "mirror_id": "''",
    })
    cycle = {
        "root_seq": f"1 + {THREAD} * i", "cycle": 1, "opener_id": opener,
        "partner_id": f"({opener} - 1)", "opened_seq": f"2 + {THREAD} * i", "opened_at": LONG_AGO,
        "topology_version": 1, "grandfathered_at": "NULL", "shared_cohorts": "'[]'",
    }
    closed = f"{THREAD} + {THREAD} * i"
    _fill("Thread", threads, common | cycle | {
        "root_id": f"1 + {THREAD} * i", "channel_id": 1, "low": f"({opener} - 1)", "high": opener,
        "opener_viewed": THREAD - 1, "opener_called": 0, "opener_misses": 0,
        "partner_viewed": THREAD - 2, "partner_called": 0, "partner_misses": 0,
        "state": "'closed'", "outcome": "'timeout'", "n_agent_messages": THREAD,
        "last_agent_id": opener, "last_agent_ordinal": THREAD, "asked": 0,
        "summary_by_id": "NULL", "summary_seq": "NULL", "owed_since": LONG_AGO,
        "closed_seq": closed, "closed_at": LONG_AGO, "guidance": "''",
    })
    _fill("Decision", threads, common | cycle | {
        "thread_id": f"1 + {THREAD} * i", "run_id": run.pk, "outcome": "'timeout'",
        "seq": closed, "at": LONG_AGO,
    })
    _fill("Memory", threads, common | {
        "agent_id": opener, "channel_id": "NULL", "version": f"1 + i / {n_pairs}",
        "text": "'We have talked about drying timber and found no agreement yet.'",
        "upto_seq": closed, "person": "''", "written_at": LONG_AGO,
    })
    _fill("Memory", threads, common | {
        "agent_id": f"({opener} - 1)", "channel_id": "NULL", "version": f"1 + i / {n_pairs}",
        "text": "'We have talked about drying timber and found no agreement yet.'",
        "upto_seq": closed, "person": "''", "written_at": LONG_AGO,
    })
    _fill("Turn", numbers, common | {
        "run_id": run.pk, "number": "i + 1", "agent_id": author, "agent_version": 1,
        "selected_at": LONG_AGO, "waited_seconds": "0.5", "finished_at": LONG_AGO,
        "outcome": "'worked'", "llm_calls": 1, "committed": 1, "gate_filtered": 0,
        "rejected": "'{}'", "detail": "''",
    })
    _fill("LlmCall", numbers, {
        "run_id": run.pk, "turn": "i + 1", "number": 1, "agent_id": author, "agent_version": 1,
        "phase": "'reply'", "thread": root, "model": "'benchmark'", "prompt_version": "'1'",
        "attempt": 1, "started_at": LONG_AGO, "latency_seconds": "0.5", "input_tokens": 900,
        "output_tokens": 90, "cache_read_tokens": 0, "cache_write_tokens": 0,
        "reserved_nano_usd": 0, "cost_nano_usd": 0, "finish_reason": "'end_turn'", "error": "''",
    })


def _fill(model: str, numbers: str, columns: dict[str, Any]) -> None:
    """Insert one row per number; a column is SQL over `i`, or a value."""
    from django.apps import apps
    from django.db import connection

    table = apps.get_model("engine", model)._meta.db_table
    values = [value if isinstance(value, str) else "%s" for value in columns.values()]
    parameters = [
        connection.ops.adapt_datetimefield_value(value) if isinstance(value, datetime) else value
        for value in columns.values()
        if not isinstance(value, str)
    ]
    names, chosen = ", ".join(columns), ", ".join(values)
    # SQLite wants the numbers in front of the SELECT, PostgreSQL takes them there too.
    query = f"INSERT INTO {table} ({names}) {numbers} SELECT {chosen} FROM n"
    with connection.cursor() as cursor:
        cursor.execute(query, parameters)


# --- the talks that the benchmark goes on with -----------------------------------------------------------


def _open_talks(simulation: Simulation, n_agents: int, n_messages: int) -> None:
    """Let the second of each pair answer a root of the first, which owes now."""
    from engine.models import AgentState, Message, Run, RunLease, Thread

    run = Run.objects.create(simulation=simulation, status="completed", end_reason="idle")
    base = n_messages // THREAD * THREAD
    n_pairs = n_agents // 2
    now = datetime.now(UTC) - timedelta(hours=1)
    common = {
        "simulation": simulation, "channel_id": 1, "is_bot": True, "visibility": "public",
        "written_at": now, "committed_at": now, "run": run, "turn": 0,
    }
    roots = [
        Message(pk=base + 1 + pair, seq=base + 1 + pair, ordinal=1, author_id=1 + 2 * pair,
                text=_text(base + pair), **common)
        for pair in range(n_pairs)
    ]
    answers = [
        Message(pk=base + 1 + n_pairs + pair, seq=base + 1 + n_pairs + pair, ordinal=2,
                root_id=base + 1 + pair, answers_ordinal=1, author_id=2 + 2 * pair,
                text=_text(base + n_pairs + pair), **common)
        for pair in range(n_pairs)
    ]
    threads = [
        Thread(root_id=base + 1 + pair, root_seq=base + 1 + pair, simulation=simulation,
               channel_id=1, opener_id=2 + 2 * pair, partner_id=1 + 2 * pair, opener_viewed=1,
               partner_viewed=1, low=1 + 2 * pair, high=2 + 2 * pair, n_agent_messages=2,
               last_agent_id=2 + 2 * pair, last_agent_ordinal=2,
               opened_seq=base + 1 + n_pairs + pair, opened_at=now, owed_since=now,
               topology_version=1)
        for pair in range(n_pairs)
    ]
    Message.objects.bulk_create(roots, batch_size=500)
    Message.objects.bulk_create(answers, batch_size=500)
    Thread.objects.bulk_create(threads, batch_size=500)
    AgentState.objects.bulk_create(
        (
            AgentState(simulation=simulation, agent_id=number, cursor=base + 2 * n_pairs)
            for number in range(1, n_agents + 1)
        ),
        batch_size=500,
    )
    RunLease.objects.create(simulation=simulation, wrote_at=now)


def _settle() -> None:
    """Let the database know what it holds, and continue the numbers that were given by hand."""
    from django.core.management.color import no_style
    from django.apps import apps
    from django.db import connection

    with connection.cursor() as cursor:
        for statement in connection.ops.sequence_reset_sql(no_style(), list(apps.get_models())):
            cursor.execute(statement)
        cursor.execute("ANALYZE")
