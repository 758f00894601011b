"""Measures how long the gate takes to load 10,000 agents with 50,000 memberships.

Run `python -m benchmarks.gate_reload`; it makes a SQLite database of its own in a temporary
folder. The target is under one second.
"""

from __future__ import annotations

import os
import random
import tempfile
import time
from pathlib import Path

N_AGENTS, N_COHORTS, COHORTS_EACH = 10_000, 1_000, 5


def main() -> None:
    """Fill a fresh database, then print the seconds of five reloads and of a comparison."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["DATABASE_URL"] = f"sqlite:///{Path(folder) / 'bench.sqlite3'}"
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "simsite.settings")
        import django

        django.setup()
        _measure()


def _measure() -> None:
    from django.core.management import call_command

    from cohorts.gate import load_topology
    from cohorts.models import Membership
    from cohorts.rules import Policy, mates_changed

    call_command("migrate", verbosity=0)
    _fill()
    loads = []
    for _ in range(5):
        start = time.perf_counter()
        old = load_topology(policy=Policy.OPEN)
        loads.append(time.perf_counter() - start)
    print("reload:", ", ".join(f"{seconds:.3f} s" for seconds in loads))
    Membership.objects.filter(agent__slug="agent-7").delete()
    new = load_topology(policy=Policy.OPEN)
    start = time.perf_counter()
    n_changed = len(mates_changed(old, new))
    print(f"comparison: {time.perf_counter() - start:.3f} s, {n_changed} agents differ")


def _fill() -> None:
    from cohorts.models import Agent, Cohort, Membership

    chance = random.Random(1)
    agents = Agent.objects.bulk_create(
        (Agent(slug=f"agent-{i}", bot_name=f"Agent{i}") for i in range(N_AGENTS)), batch_size=1000
    )
    cohorts = Cohort.objects.bulk_create(
        Cohort(name=f"cohort-{i}", created_by="benchmark") for i in range(N_COHORTS)
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
    main()
