"""Cohort changes while a run is live, by every way into the database.

Three agents (`CORE`) share a cohort with three others (`EAST`), and each three have one of their
own. A change takes the shared cohort away: what crosses is forbidden, what stays inside goes on.
The run is another process on the real clock. In the database's commit order nothing that crosses
may begin after the change: what a reader sees right after its commit is all there will be.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.utils import timezone

from cohorts.gate import read_version
from cohorts.models import Agent, Cohort, Membership, TopologyChange
from cohorts.operations import remove_members
from engine import build
from engine.laws.checking import check_folder
from engine.models import RunControl, Thread, TopologySnapshot, Turn
from engine.store.database import writing
from tests.doors import (
    ROOT,
    eager_run,
    environment,
    make_world,
    manage,
    runsim,
    told,
    wait_until,
)
from tests.runtime.scripted_llm import ScriptedLlm

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from pathlib import Path

    from engine.core.group import Group
    from engine.ports.clock import Clock

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(600)]

CORE = ("ash", "elm", "fir")
EAST = ("oak", "yew", "bay")
COHORTS = {"wide": (*CORE, *EAST), "core": CORE, "east": EAST, "nook": ()}
#: Threads are short, follow each other, and never make an agent wait for a person.
SETTINGS: dict[str, Any] = {
    "daily_posts": 1000,
    "unreviewed_proposals": 1000,
    "thread_messages": 4,
    "concurrent_turns": 4,
}
OBEYED_SECONDS = 1.0

#: Run by another process: takes `EAST` out of `wide`, in a transaction that stays open.
RAW = """
import sys, time
import django
django.setup()
from django.db import connection, transaction
with transaction.atomic():
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM cohorts_membership"
            " WHERE cohort_id = (SELECT id FROM cohorts_cohort WHERE name = 'wide')"
            " AND agent_id IN (SELECT id FROM cohorts_agent WHERE slug IN ('oak', 'yew', 'bay'))"
        )
    time.sleep(float(sys.argv[1]))
"""


def cut_by_admin() -> None:
    remove_members(Cohort.objects.get(name="wide"), _east(), who="Ada")


def cut_by_delete() -> None:
    Membership.objects.filter(cohort__name="wide", agent__slug__in=EAST).delete()


def cut_by_update() -> None:
    nook = Cohort.objects.get(name="nook")
    Membership.objects.filter(cohort__name="wide", agent__slug__in=EAST).update(cohort=nook)


def cut_by_raw_sql(*, held_seconds: float = 0.0) -> None:
    subprocess.run(
        [sys.executable, "-c", RAW, str(held_seconds)],
        env=environment(DJANGO_SETTINGS_MODULE="simsite.settings"),
        cwd=ROOT,
        check=True,
        timeout=60,
    )


def join_again() -> None:
    """Give the shared cohort back, in bulk."""
    Membership.objects.filter(cohort__name="nook").delete()
    wide = Cohort.objects.get(name="wide")
    Membership.objects.bulk_create(
        Membership(cohort=wide, agent=agent, added_by="Ada") for agent in _east()
    )


def _east() -> list[Agent]:
    return list(Agent.objects.filter(slug__in=EAST).order_by("pk"))


@dataclass(slots=True)
class Talks:
    """The two-party threads of now, by whether their pair crosses; `seen` are those before."""

    crossing: set[int] = field(default_factory=set)
    inside: set[int] = field(default_factory=set)

    @classmethod
    def now(cls) -> Talks:
        talks = cls()
        rows = Thread.objects.filter(partner__isnull=False)
        for key, opener, partner in rows.values_list("pk", "opener__slug", "partner__slug"):
            crosses = (opener in CORE) != (partner in CORE)
            (talks.crossing if crosses else talks.inside).add(key)
        return talks


def wait_for_more(before: Talks, *, crossing: int = 0, inside: int = 0) -> None:
    def there_are() -> bool:
        now = Talks.now()
        n_crossing = len(now.crossing - before.crossing)
        return n_crossing >= crossing and len(now.inside - before.inside) >= inside

    wait_until(there_are)


def obeyed_at(version: int) -> datetime | None:
    row = TopologySnapshot.objects.filter(version__gte=version).order_by("version").first()
    return None if row is None else row.at


def step(cut: Callable[[], None]) -> None:
    """See crossing threads open, cut them off, see none open any more, and give them back."""
    wait_for_more(Talks.now(), crossing=2)
    cut()
    changed_at, version, before = timezone.now(), read_version(), Talks.now()
    wait_until(lambda: obeyed_at(version) is not None)
    obeyed = obeyed_at(version)
    assert obeyed is not None
    assert (obeyed - changed_at).total_seconds() <= OBEYED_SECONDS
    wait_for_more(before, inside=3)
    # Grandfathered threads finish: none of those that crossed stays open.
    wait_until(lambda: not Thread.objects.filter(pk__in=before.crossing, closed_seq=None).exists())
    after = Talks.now()
    assert after.crossing == before.crossing
    assert after.inside > before.inside
    join_again()


def steps(*, long: bool, short: tuple[str, ...]) -> list[Callable[[], None]]:
    held = partial(cut_by_raw_sql, held_seconds=5.0 if long else 1.5)
    every: dict[str, Callable[[], None]] = {
        "admin": cut_by_admin,
        "delete": cut_by_delete,
        "update": cut_by_update,
        "raw": cut_by_raw_sql,
        "held": held,
    }
    return [cut for name, cut in every.items() if long or name in short]


@pytest.mark.parametrize(
    ("policy", "short"),
    [("open", ("admin", "update", "held")), ("isolated", ("delete", "raw", "held"))],
)
def test_change_of_cohorts_is_obeyed_by_a_live_run(
    policy: str, short: tuple[str, ...], is_soak: bool, tmp_path: Path
) -> None:
    make_world(agents=COHORTS["wide"], cohorts=COHORTS, policy=policy, **SETTINGS)
    with eager_run("--seed", "3", "--json") as process:
        for cut in steps(long=is_soak, short=short):
            step(cut)
        RunControl.objects.update(wish="stop")
        left = told(process)
    assert left.code == 0
    assert Thread.objects.filter(grandfathered_at__isnull=False).exists()
    assert TopologyChange.objects.filter(who="outside").exists()
    assert manage("exportrun", str(left.summary["run"]), "--to", str(tmp_path)).code == 0
    assert [str(violation) for violation in check_folder(tmp_path).violations] == []


@pytest.fixture
def eager_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let runs of this process be of agents that answer whatever they may."""

    def eager_llm(_seed: int, clock: Clock, *, latency_seconds: float) -> ScriptedLlm:
        return ScriptedLlm(clock=clock)

    monkeypatch.setattr(build, "OfflineLlm", eager_llm)


def starts_what_crosses(group: Group) -> bool:
    core = set(Agent.objects.filter(slug__in=CORE).values_list("pk", flat=True))
    sides = [
        (thread.opener.agent in core, thread.partner.agent in core)
        for thread in group.threads
        if thread.partner is not None
    ]
    return group.topology_version is not None and any(one != other for one, other in sides)


def test_change_between_check_and_commit_refuses_what_it_forbids(
    monkeypatch: pytest.MonkeyPatch, eager_model: None
) -> None:
    make_world(agents=COHORTS["wide"], cohorts=COHORTS, policy="isolated", **SETTINGS)
    cut_at: list[int] = []
    # As late as another writer can come: inside the transaction, or where one writer at a time
    # is the rule, right before it.
    barrier = "_check_topology" if connection.vendor == "postgresql" else "write"
    original = getattr(writing.Writer, barrier)

    def wait_for_the_change(writer: writing.Writer, group: Group) -> None:
        if not cut_at and starts_what_crosses(group):
            cut_at.append(group.number)
            in_another_session(cut_by_delete)
        original(writer, group)

    monkeypatch.setattr(writing.Writer, barrier, wait_for_the_change)
    words = ("--clock", "virtual", "--seed", "1", "--max-turns", "40", "--concurrent-turns", "1")
    left = runsim(*words, "--json")
    assert left.code == 0
    assert cut_at
    talks = Talks.now()
    assert talks.crossing == set()
    assert talks.inside
    refused = Turn.objects.filter(rejected__has_key="not_permitted").get()
    assert refused.llm_calls > 0
    assert left.summary["rejected"]["not_permitted"] == 1


def test_without_a_change_what_crosses_is_opened(eager_model: None) -> None:
    make_world(agents=COHORTS["wide"], cohorts=COHORTS, policy="isolated", **SETTINGS)
    assert runsim("--clock", "virtual", "--seed", "1", "--max-turns", "40").code == 0
    assert Talks.now().crossing


def in_another_session(change: Callable[[], None]) -> None:
    """Make a change with a connection of its own, and wait until it is committed."""

    def make() -> None:
        try:
            change()
        finally:
            connection.close()

    thread = threading.Thread(target=make)
    thread.start()
    thread.join()
