"""What pages cost with a long history: queries and time of each, against a society that just began.

Ten thousand agents in five hundred cohorts, a thousand runs, a million messages and turns. Each page
is asked for three times by a test client in one process, and the quickest counts; the time is that of
the server, with all queries and the template.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.parts.database import fresh_database
from benchmarks.parts.measuring import Table, duration, run, times
from benchmarks.parts.society import make_society

if TYPE_CHECKING:
    from django.test import Client

    from engine.models import Simulation

ROOT = Path(__file__).parents[1]
#: Makes this module one of its own processes.
FILL = "--fill"
ROUNDS = 3
#: What belongs to a run, and is dealt out to all of them in turn.
DEALT = ("Turn", "Message", "LlmCall", "Decision")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a page took: its queries, and seconds."""

    n_queries: int
    seconds: float


def tables(*, small: bool) -> Iterator[Table]:
    n_agents, n_messages, n_runs = (24, 240, 3) if small else (10_000, 1_000_000, 1_000)
    _, few = _measured(24, 24, 1)
    name, many = _measured(n_agents, n_messages, n_runs)
    most = max(many.values(), key=lambda cost: cost.seconds)
    yield Table(
        title=f"Pages with {n_agents:,} agents, {n_runs:,} runs, {n_messages:,} messages, {name}",
        columns=("page", "queries", "without", "with", "ratio"),
        rows=[
            *(_row(page, few[page], cost) for page, cost in many.items() if page in few),
            (
                "the most",
                f"{max(cost.n_queries for cost in many.values())}",
                "",
                duration(most.seconds),
                "",
            ),
        ],
    )


def _row(page: str, few: Cost, many: Cost) -> tuple[str, ...]:
    ratio = times(many.seconds / few.seconds)
    return page, f"{many.n_queries}", duration(few.seconds), duration(many.seconds), ratio


def _measured(n_agents: int, n_messages: int, n_runs: int) -> tuple[str, dict[str, Cost]]:
    """Measure in a process of its own: Django is set up once in each."""
    words = [f"{number}" for number in (n_agents, n_messages, n_runs)]
    command = [sys.executable, "-m", "benchmarks.pages", FILL, *words]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    name, costs = json.loads(done.stdout)
    return name, {page: Cost(**cost) for page, cost in costs.items()}


def _fill(n_agents: int, n_messages: int, n_runs: int) -> tuple[str, dict[str, Any]]:
    with fresh_database() as name:
        simulation = make_society(n_agents=n_agents, cohort_size=20, n_messages=n_messages)
        _deal_out(simulation, n_runs)
        client = _owner()
        pages = list(_pages(simulation))
        return name, {page: asdict(_cost(client, address)) for page, address in pages}


def _deal_out(simulation: Simulation, n_runs: int) -> None:
    """Make more runs, and give each its part of what was done."""
    from django.apps import apps
    from django.db import connection
    from django.utils import timezone

    from engine.export.summary import summarise
    from engine.models import Run

    now = timezone.now()
    Run.objects.update(started_at=now, finished_at=now, configuration={"llm": "offline"})
    first = Run.objects.get()
    Run.objects.bulk_create(
        Run(
            simulation=simulation, status="completed", end_reason="idle", started_at=now,
            finished_at=now, configuration={"llm": "offline"},
        )
        for _ in range(n_runs - 1)
    )  # fmt: skip
    keys = list(Run.objects.order_by("pk").values_list("pk", flat=True))
    with connection.cursor() as cursor:
        for model in DEALT:
            table = apps.get_model("engine", model)._meta.db_table
            cursor.execute(f"UPDATE {table} SET run_id = {keys[0]} + id % {len(keys)}")  # noqa: S608
        cursor.execute("ANALYZE")
    summary = summarise(first.pk)
    Run.objects.update(summary=summary)


def _owner() -> Client:
    from django.conf import settings
    from django.contrib.auth.models import User
    from django.test import Client

    settings.ALLOWED_HOSTS = ["testserver"]
    settings.SECURE_SSL_REDIRECT = False
    client = Client()
    client.force_login(User.objects.create(username="owner", is_staff=True, is_superuser=True))
    return client


def _pages(simulation: Simulation) -> Iterator[tuple[str, str]]:
    """Yield the pages by name: every list, and those of our own."""
    from django.apps import apps
    from django.contrib import admin
    from django.urls import reverse

    from cohorts.models import Agent
    from engine.models import Run

    agent, last = Agent.objects.order_by("pk")[0].pk, Run.objects.order_by("-pk")[0].pk
    yield "home", reverse("admin:index")
    for model in filter(admin.site.is_registered, apps.get_models()):
        meta = model._meta
        name = f"admin:{meta.app_label}_{meta.model_name}_changelist"
        yield f"list of {meta.verbose_name_plural}", reverse(name)
    own: dict[str, tuple[Any, ...]] = {
        "matrix": (),
        "start": (simulation.pk,),
        "search": (simulation.pk,),
        "keep": (),
        "roster": (simulation.pk,),
        "simulation_change": (simulation.pk,),
        "simulation_talk": (simulation.pk,),
        "run_change": (last,),
        "run_compare": (),
    }
    for page, args in own.items():
        yield page.replace("_", " "), reverse(f"admin:engine_{page}", args=args)
    yield "pairs", f"{reverse('admin:engine_pairs')}?agent=agent-1"
    yield "search for a word", f"{reverse('admin:engine_search', args=[simulation.pk])}?q=resin"
    for page in ("change", "differences"):
        yield f"agent {page}", reverse(f"admin:cohorts_agent_{page}", args=[agent])


def _cost(client: Client, address: str) -> Cost:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    seconds = []
    with CaptureQueriesContext(connection) as queries:
        answer = client.get(address, follow=True)
        assert answer.status_code == 200, (address, answer.status_code)
    n_queries = len(queries)  # the next answer clears them
    for _ in range(ROUNDS):
        began = time.perf_counter()
        client.get(address, follow=True)
        seconds.append(time.perf_counter() - began)
    return Cost(n_queries=n_queries, seconds=min(seconds))


if __name__ == "__main__":
    if FILL in sys.argv:
        json.dump(_fill(*map(int, sys.argv[2:])), sys.stdout)
    else:
        run(tables, __doc__)
