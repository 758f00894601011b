"""Measures how long people wait for a saved form while a run writes as fast as it can.

Run `python -m benchmarks.web_beside_run`; it makes a SQLite database of its own in a temporary
folder. `python -m tests.postgres -- python -m benchmarks.web_beside_run` does the same in a
database of its own on that server. The target is 250 ms for 99 of 100 saves beside a run.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from statistics import quantiles
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from django.test import Client

ROOT = Path(__file__).parents[1]
N_SAVES, EVERY_SECONDS = 200, 0.05
N_AGENTS, N_COHORTS = 30, 5
NAME = "bench_web_beside_run"
RUN = (sys.executable, "-m", "tests.faults.faulty_run", "answers=0", "--quiet")
SETTINGS = {
    "daily_posts": 1000,
    "unreviewed_proposals": 1000,
    "thread_messages": 6,
    "concurrent_turns": 10,
}


def main() -> None:
    """Print the milliseconds of saves alone, and beside a run."""
    with tempfile.TemporaryDirectory() as folder, _database(Path(folder)) as url:
        os.environ["DATABASE_URL"] = url
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "simsite.settings")
        import django

        django.setup()
        client = _society()
        alone = _saves(client)
        with _run() as turns_per_second:
            beside = _saves(client)
            rate = turns_per_second()
        _print("alone", alone)
        _print(f"beside a run of {rate:.0f} turns/s", beside)
        print(f"ratio of the 99 %: {_p99(beside) / _p99(alone):.1f}")


@contextmanager
def _database(folder: Path) -> Iterator[str]:
    """Give the URL of an empty database, on the server that DATABASE_URL names or in a file."""
    server, _, _ = os.environ.get("DATABASE_URL", "").rpartition("/")
    if not server.startswith("postgres"):
        yield f"sqlite:///{folder / 'bench.sqlite3'}"
        return
    import psycopg

    with psycopg.connect(f"{server}/postgres", autocommit=True) as session:
        session.execute(f"CREATE DATABASE {NAME}")
        try:
            yield f"{server}/{NAME}"
        finally:
            session.execute(f"DROP DATABASE {NAME} WITH (FORCE)")


def _society() -> Client:
    """Fill the database; return a browser that is logged in."""
    from django.contrib.auth.models import User
    from django.core.management import call_command
    from django.test import Client

    from cohorts.models import Agent
    from cohorts.operations import add_members, create_cohort, save_agents
    from engine.models import Channel, Simulation

    call_command("migrate", verbosity=0)
    names = [f"agent-{number}" for number in range(N_AGENTS)]
    agents = [
        Agent(slug=name, bot_name=name.title().replace("-", ""), represents=name) for name in names
    ]
    save_agents(agents, who="bench")
    for number in range(N_COHORTS):
        members = Agent.objects.filter(slug__in=names[number::N_COHORTS])
        add_members(create_cohort(f"cohort-{number}", who="bench"), members, who="bench")
    simulation = Simulation.objects.create(name="main", policy="isolated", settings=SETTINGS)
    Channel.objects.create(simulation=simulation, name="general")
    client = Client(SERVER_NAME="127.0.0.1", raise_request_exception=True)
    client.force_login(User.objects.create_superuser("bench"))
    return client


def _saves(client: Client) -> list[float]:
    """Save an agent's form again and again; return the seconds of each, the first few left out."""
    from django.urls import reverse

    from cohorts.forms import AgentForm
    from cohorts.models import Agent

    seconds = []
    for number in range(N_SAVES + 10):
        agent = Agent.objects.get(slug=f"agent-{number % N_AGENTS}")
        form = AgentForm(instance=agent)
        values = {name: "" if value is None else value for name, value in form.initial.items()}
        values |= {"public_profile": f"It was saved for the {number}th time at {time.time()}."}
        values |= {"versions-TOTAL_FORMS": 0, "versions-INITIAL_FORMS": 0}
        start = time.perf_counter()
        answer = client.post(reverse("admin:cohorts_agent_change", args=[agent.pk]), values)
        seconds.append(time.perf_counter() - start)
        assert answer.status_code == 302, answer.content.decode()
        time.sleep(max(EVERY_SECONDS - seconds[-1], 0))
    return seconds[10:]


@contextmanager
def _run() -> Iterator[Callable[[], float]]:
    """Let a run of another process write meanwhile; give what tells its turns per second."""
    from engine.models import Message, Turn

    with subprocess.Popen(RUN, cwd=ROOT, env=os.environ) as process:
        try:
            while not Message.objects.exists():
                assert process.poll() is None
                time.sleep(0.05)
            start, n_before = time.perf_counter(), Turn.objects.count()
            yield lambda: (Turn.objects.count() - n_before) / (time.perf_counter() - start)
        finally:
            process.terminate()


def _p99(seconds: list[float]) -> float:
    return quantiles(seconds, n=100)[98]


def _print(what: str, seconds: list[float]) -> None:
    median = quantiles(seconds, n=2)[0]
    print(
        f"{what}: half of the saves within {median * 1000:.0f} ms,"
        f" 99 % within {_p99(seconds) * 1000:.0f} ms, the longest {max(seconds) * 1000:.0f} ms"
    )


if __name__ == "__main__":
    main()
