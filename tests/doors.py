"""Real doors for tests of whole runs: small worlds of rows, commands here and in processes.

make_world("main", cohorts={"north": ("ash", "elm")})
told = runsim("--simulation", "main", "--until-idle", "--json")
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from django.core.management import load_command_class
from django.core.management.base import OutputWrapper
from django.db import connection

from cohorts.models import Agent, Cohort
from cohorts.operations import add_members, create_cohort, save_agent
from engine.models import Channel, Run, Simulation
from engine.store.database import read_lease, take_lease, take_liveness

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

ROOT = Path(__file__).parents[1]
MANAGE = (sys.executable, str(ROOT / "manage.py"))
#: Somebody else's process may hold both cores for a while.
PATIENCE_SECONDS = 40.0
#: For what spends all of a cap: only a process that hangs takes so long.
LONG_PATIENCE_SECONDS = 400.0

TRADES = {
    "ash": "charcoal kilns, wood vinegar and slow drying of timber",
    "elm": "barrel staves, cooper's tools and slow drying of timber",
    "fir": "resin tapping, wood vinegar and pitch for barrels",
    "oak": "acorn flour, charcoal kilns and tannin for leather",
    "yew": "longbows, leather straps and seasoned staves",
    "bay": "spice drying racks, leather pouches and kiln heat",
}


def make_world(
    name: str = "main",
    *,
    agents: Sequence[str] = ("ash", "elm", "fir", "oak"),
    cohorts: Mapping[str, Sequence[str]] | None = None,
    policy: str = "open",
    **settings: float,
) -> Simulation:
    """Make agents by slug (those that are there are kept), cohorts and a simulation of all."""
    for slug in agents:
        make_agent(slug)
    for cohort, members in (cohorts or {}).items():
        add_members(
            create_cohort(cohort, who="Ada"), Agent.objects.filter(slug__in=members), who="Ada"
        )
    simulation = Simulation.objects.create(name=name, policy=policy, settings=settings)
    Channel.objects.create(simulation=simulation, name="general")
    return simulation


def make_agent(slug: str) -> Agent:
    """Make an agent, with the trade that its name has in `TRADES`."""
    known = Agent.objects.filter(slug=slug).first()
    if known is not None:
        return known
    trade = TRADES.get(slug, f"things of kind {slug}")
    agent = Agent(
        slug=slug,
        bot_name=slug.title(),
        represents=f"House {slug.title()}",
        public_profile=f"House {slug.title()} offers {trade}. It looks for partners in {trade}.",
    )
    save_agent(agent, who="Ada")
    return agent


def cohort(name: str) -> Cohort:
    return Cohort.objects.get(name=name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a command left: exit code, stdout, stderr."""

    code: int
    out: str
    err: str

    @property
    def summary(self) -> dict[str, Any]:
        """The object on the last line of stdout."""
        found: dict[str, Any] = json.loads(self.out.splitlines()[-1])
        return found


@contextmanager
def driver_elsewhere(run: Run, *, seconds: float = 60.0) -> Iterator[int]:
    """Let a live driver on another host have the run; its token."""
    known = read_lease(run.simulation_id).token
    liveness = take_liveness(run.simulation_id, known + 1)
    assert liveness is not None
    try:
        token = take_lease(
            run.simulation_id, run.pk, known_token=known, owner="elsewhere:7", seconds=seconds
        )
        assert token is not None
        yield token
    finally:
        liveness.release()


def runsim(*words: str) -> Told:
    return command("runsim", *words)


def command(name: str, *words: str) -> Told:
    """Run a command of ours in this process, as the command line does."""
    out, err = io.StringIO(), io.StringIO()
    code = 0
    with redirect_stderr(err):
        try:
            there = load_command_class("engine", name)
            there.stdout, there.stderr = OutputWrapper(out), OutputWrapper(err)
            there.run_from_argv(["manage.py", name, "--skip-checks", *words])
        except SystemExit as exit_:
            code = int(exit_.code or 0)
    return Told(code=code, out=out.getvalue(), err=err.getvalue())


def environment(**more: str) -> dict[str, str]:
    """Return an environment in which another process finds this test's database."""
    return os.environ | {"DATABASE_URL": database_url()} | more


def database_url() -> str:
    stored = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite:///{stored['NAME']}"
    user, password = quote(stored["USER"]), quote(stored["PASSWORD"])
    where = f"{stored['HOST']}:{stored['PORT']}"
    return f"postgres://{user}{':' if password else ''}{password}@{where}/{stored['NAME']}"


def manage(*words: str, **more: str) -> Told:
    """Run a command of `manage.py` in a process of its own."""
    done = subprocess.run(
        [*MANAGE, *words],
        env=environment(**more),
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    return Told(code=done.returncode, out=done.stdout, err=done.stderr)


@contextmanager
def managing(*words: str, **more: str) -> Iterator[subprocess.Popen[str]]:
    """Start a command of `manage.py`; what is left of it at the end is killed."""
    with own_process(*MANAGE, *words, **more) as process:
        yield process


@contextmanager
def eager_run(*words: str) -> Iterator[subprocess.Popen[str]]:
    """Start `runsim` with a model that never tires of talking."""
    with own_process(sys.executable, "-m", "tests.eager_run", *words) as process:
        yield process


@contextmanager
def faulty_run(fault: str, *words: str, **more: str) -> Iterator[subprocess.Popen[str]]:
    """Start `runsim` with the same model and a fault: a name of `tests.faults.faulty_run`."""
    with own_process(
        sys.executable, "-m", "tests.faults.faulty_run", fault, *words, **more
    ) as process:
        yield process


@contextmanager
def signalled_run(*words: str) -> Iterator[subprocess.Popen[str]]:
    """Start `runsim` that gets a signal at a moment: the first two words."""
    with own_process(sys.executable, "-m", "tests.signalled_run", *words) as process:
        yield process


@contextmanager
def noted_run(file: str, *words: str, **more: str) -> Iterator[subprocess.Popen[str]]:
    """Start `runsim` whose model writes a byte to a file as each call arrives."""
    with own_process(sys.executable, "-m", "tests.noted_run", file, *words, **more) as process:
        yield process


@contextmanager
def own_process(*command: str, **more: str) -> Iterator[subprocess.Popen[str]]:
    """Start a command that finds this test's database; what is left of it at the end is killed."""
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment(**more),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def told(process: subprocess.Popen[str], *, seconds: float = PATIENCE_SECONDS) -> Told:
    """Wait for the end of a process."""
    out, err = process.communicate(timeout=seconds)
    return Told(code=process.returncode, out=out, err=err)


def wait_until(condition: Callable[[], bool], *, seconds: float = PATIENCE_SECONDS) -> None:
    """Look again and again at what another process brings about."""
    give_up_at = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < give_up_at, "it did not come true"
        time.sleep(0.02)
