"""Money under real contention: two processes, two simulations, one day's cap, and `kill -9`."""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING, Any

import pytest
from django.db.models import Sum
from django.utils import timezone

from engine.core.days import local_day
from engine.core.money import DayMoney
from engine.management.commands.runsim import PAUSED
from engine.models import LlmCall, Purse, Run, RunLease, Turn
from engine.money import day_cap, set_day_cap
from engine.store.database import day_money
from tests.doors import (
    LONG_PATIENCE_SECONDS,
    make_world,
    own_process,
    runsim,
    told,
    wait_until,
)
from tests.paid_llm import billed

if TYPE_CHECKING:
    import subprocess
    from contextlib import AbstractContextManager
    from pathlib import Path

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(900)]

CENT = 10**7
AGENTS = [f"a{number}" for number in range(10)]
SETTINGS: dict[str, Any] = {"daily_posts": 1000, "unreviewed_proposals": 1000, "thread_messages": 4}


def paid_run(
    bill: Path, seconds: float, *words: str
) -> AbstractContextManager[subprocess.Popen[str]]:
    """Start `runsim` with a model that costs money; one in three takes three times as long, and
    each hears soon what the other has given back."""
    command = ("-m", "tests.paid_run", str(bill), str(seconds), *words, "--quiet")
    return own_process(sys.executable, *command, SIM_PULSE_SECONDS="0.05")


def today() -> DayMoney:
    return day_money(local_day(timezone.now(), "UTC"))


def test_two_processes_never_overshoot_the_money_of_a_day(tmp_path: Path) -> None:
    """Five slots each; somebody's promise holds both up until both are there."""
    for name in ("east", "west"):
        make_world(name, agents=AGENTS, concurrent_turns=5, **SETTINGS)
    set_day_cap(12 * CENT, who="Ada")
    name = f"day {today().day.isoformat()}"
    promised = Purse.objects.create(name=name, reserved_nano_usd=12 * CENT)
    bills = {name: tmp_path / name for name in ("east", "west")}
    with (
        paid_run(bills["east"], 0.05, "--simulation", "east") as east,
        paid_run(bills["west"], 0.05, "--simulation", "west") as west,
    ):
        wait_until(lambda: RunLease.objects.filter(commit_no__gt=0).count() == 2)
        Purse.objects.filter(name=promised.name).update(reserved_nano_usd=0)
        ends = [told(process) for process in (east, west)]
    assert [end.code for end in ends] == [PAUSED, PAUSED], ends
    spent = {name: billed(bill) for name, bill in bills.items()}
    assert 6 * CENT < sum(spent.values()) <= 12 * CENT
    day = today()
    assert (day.spent, day.reserved) == (sum(spent.values()), 0)
    for run in Run.objects.select_related("simulation"):
        assert run.end_reason == "money_cap"
        assert "resume it after midnight (UTC), or raise" in run.detail
        purses = Purse.objects.filter(name=f"run {run.pk}")
        assert sum(one.spent_nano_usd for one in purses) == spent[run.simulation.name]


def test_killed_run_is_settled_at_its_estimate_and_no_cap_is_overshot(
    tmp_path: Path, *, is_soak: bool
) -> None:
    make_world("main", agents=AGENTS, concurrent_turns=5, **SETTINGS)
    set_day_cap(24 * CENT, who="Ada")
    bill = tmp_path / "killed"
    with paid_run(bill, 0.4) as process:
        wait_until(lambda: n_asked(bill) >= 6)
        process.send_signal(signal.SIGKILL)
        process.wait()
    dead = Run.objects.get()
    n_reserved = LlmCall.objects.filter(state=LlmCall.State.RESERVED).count()
    assert n_reserved > 0
    assert LlmCall.objects.count() >= n_asked(bill)  # nothing left that was not stored before
    assert runsim("--max-turns", "1", "--quiet").code == 0
    dead.refresh_from_db()
    assert dead.status == Run.Status.INTERRUPTED
    calls = LlmCall.objects.filter(run=dead)
    assert not calls.filter(state=LlmCall.State.RESERVED).exists()
    assert calls.filter(error="died in flight").count() == n_reserved
    assert not Turn.objects.filter(run=dead, outcome="running").exists()
    spent = calls.aggregate(n=Sum("cost_nano_usd"))["n"]
    assert billed(bill) <= spent <= 24 * CENT
    assert today() == DayMoney(day=today().day, spent=spent, reserved=0, cap=day_cap())
    if is_soak:
        _spend_the_rest(bill, tmp_path / "later")


def _spend_the_rest(bill: Path, later_bill: Path) -> None:
    """The next run has what the dead one may have spent less, under the cap of the same day."""
    with paid_run(later_bill, 0.02) as process:
        end = told(process, seconds=LONG_PATIENCE_SECONDS)
    assert end.code == PAUSED, end
    assert billed(later_bill) > 0
    assert billed(bill) + billed(later_bill) <= today().spent <= 24 * CENT
    assert today().reserved == 0


def n_asked(bill: Path) -> int:
    return bill.read_text().count("asked") if bill.exists() else 0
