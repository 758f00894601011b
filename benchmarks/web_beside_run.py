"""How long people wait for a saved form while a run writes as fast as it can.

Somebody saves an agent's form every 50 ms: alone, which is the baseline, and beside a run of another
process whose model answers at once. SQLite's writers wait for each other; a driver leaves the file
to others for a moment after one of them has written.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from benchmarks.parts.database import fresh_database
from benchmarks.parts.measuring import Table, duration, percentile, run, times

if TYPE_CHECKING:
    from django.test import Client

EVERY_SECONDS = 0.05
#: Saves that come first and do not count.
N_FIRST = 10
N_AGENTS, N_COHORTS = 30, 5
SETTINGS = {
    "daily_posts": 1000,
    "unreviewed_proposals": 1000,
    "thread_messages": 6,
    "concurrent_turns": 10,
}


def tables(*, small: bool) -> Iterator[Table]:
    n_saves = 4 if small else 200
    with fresh_database() as name:
        client = _society()
        alone = _saves(client, n_saves)
        with _run() as turns_per_second:
            beside = _saves(client, n_saves)
            speed = turns_per_second()
    ratio = percentile(beside, 0.99) / percentile(alone, 0.99)
    yield Table(
        title=f"A form saved, {n_saves} times every 50 ms, {name}",
        columns=("", "median", "p99", "longest", "ratio of p99"),
        rows=[
            ("alone", *_waits(alone), times(1.0)),
            (f"beside a run of {speed:.0f} turns/s", *_waits(beside), times(ratio)),
        ],
    )


def _waits(seconds: list[float]) -> tuple[str, str, str]:
    return (
        duration(percentile(seconds, 0.5)),
        duration(percentile(seconds, 0.99)),
        duration(max(seconds)),
    )


def _society() -> Client:
    """Fill the database; return a browser that is logged in."""
    from django.contrib.auth.models import User
    from django.test import Client

    from cohorts.models import Agent
    from cohorts.operations import add_members, create_cohort, save_agents
    from engine.models import Channel, Simulation

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


def _saves(client: Client, n_saves: int) -> list[float]:
    """Save an agent's form again and again; return the seconds of each, the first few left out."""
    from django.urls import reverse

    from cohorts.models import Agent
    from engine.admin.agent.forms import AgentForm

    seconds = []
    for number in range(n_saves + N_FIRST):
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
    return seconds[N_FIRST:]


@contextmanager
def _run() -> Iterator[Callable[[], float]]:
    """Let a run of another process write meanwhile; give what tells its turns per second."""
    from engine.models import Message, Turn
    from tests.doors import faulty_run

    with faulty_run("answers=0", "--quiet") as process:
        while not Message.objects.exists():
            assert process.poll() is None
            time.sleep(0.05)
        start, n_before = time.perf_counter(), Turn.objects.count()
        yield lambda: (Turn.objects.count() - n_before) / (time.perf_counter() - start)


if __name__ == "__main__":
    run(tables, __doc__)
