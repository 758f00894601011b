"""How long the gate takes to load 10,000 agents with 50,000 memberships.

The baseline is reading the bare rows of both tables through the driver. A reload runs off the event
loop; a change of cohorts must be obeyed within a second, of which the pulse may take half.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from benchmarks.parts.database import fresh_database
from benchmarks.parts.measuring import Table, compare, duration, run, times

N_AGENTS, N_AGENTS_SMALL = 10_000, 200
COHORTS_EACH = 5
AGENTS_A_COHORT = 10


def tables(*, small: bool) -> Iterator[Table]:
    n_agents = N_AGENTS_SMALL if small else N_AGENTS
    with fresh_database() as database:
        _fill(n_agents)
        yield _table(n_agents, database, n_rounds=1 if small else 7)


def _table(n_agents: int, database: str, *, n_rounds: int) -> Table:
    from cohorts.gate import load_topology
    from cohorts.rules import Policy

    found = compare(
        {
            "the bare rows": _read_bare_rows,
            "the gate": lambda: load_topology(policy=Policy.OPEN),
        },
        n_rounds=n_rounds,
    )
    return Table(
        title=f"The gate reloaded, {n_agents:,} agents, {n_agents * COHORTS_EACH:,} memberships",
        columns=(f"read from {database}", "time", "ratio"),
        rows=[(name, duration(one.seconds), times(one.ratio)) for name, one in found.items()],
    )


def _read_bare_rows() -> None:
    from django.db import connection

    from cohorts.models import Agent, Membership

    with connection.cursor() as cursor:
        for model, columns in ((Membership, "cohort_id, agent_id"), (Agent, "id, slug, status")):
            cursor.execute(f"SELECT {columns} FROM {model._meta.db_table}")  # noqa: S608
            cursor.fetchall()


def _fill(n_agents: int) -> None:
    from cohorts.models import Agent, Cohort, Membership

    chance = random.Random(1)
    agents = Agent.objects.bulk_create(
        (Agent(slug=f"agent-{i}", bot_name=f"Agent{i}") for i in range(n_agents)), batch_size=1000
    )
    cohorts = Cohort.objects.bulk_create(
        Cohort(name=f"cohort-{i}", created_by="benchmark")
        for i in range(n_agents // AGENTS_A_COHORT)
    )
    Membership.objects.bulk_create(
        (
            Membership(cohort=cohort, agent=agent, added_by="benchmark")
            for agent in agents
            for cohort in chance.sample(cohorts, COHORTS_EACH)
        ),
        batch_size=1000,
    )


if __name__ == "__main__":
    run(tables, __doc__)
