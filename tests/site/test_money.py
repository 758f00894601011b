"""Money as people meet it: prices, caps, refusals, and what pages and commands say of it."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.management.base import CommandError
from django.urls import reverse

from cohorts.models import Agent
from cohorts.operations import save_agent
from engine import build
from engine.core.config import RunConfig
from engine.core.usage import Usage
from engine.export.rows import Scope
from engine.export.writer import write_export
from engine.laws.checking import check_folder
from engine.loop import watch
from engine.models import DayCap, LlmCall, ModelPrice, Purse, Run, RunControl, Simulation
from engine.money import (
    NotRaised,
    day_cap,
    price_table,
    raise_caps,
    set_day_cap,
    shipped_prices,
)
from engine.money.table import SHIPPED
from engine.runs.refusals import RunRefused, check_priced
from engine.store.database.reading import agent_specs
from tests.doors import make_world, runsim
from tests.paid_llm import MODEL, PaidLlm
from tests.runtime.scripted_llm import by_phase, eager, silent
from tests.site.admin_world import change_url, make_rows, page_of, person_with, take_turn

if TYPE_CHECKING:
    from pathlib import Path

    from django.test import Client

    from engine.ports.clock import Clock

pytestmark = pytest.mark.django_db

CENT = 10**7
NOVEMBER = datetime(2026, 11, 30, tzinfo=UTC)


@pytest.fixture
def admin_user() -> User:
    """Stand in for pytest-django's, whose password takes a second to hash."""
    return User.objects.create(username="admin", is_staff=True, is_superuser=True)


@pytest.fixture
def _paid(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a model that costs money into the place of the offline one."""
    prices = price_table()

    def paid_llm(_seed: int, clock: Clock, *, latency_seconds: float) -> PaidLlm:
        script = by_phase(silent, post=eager)
        return PaidLlm(clock=clock, prices=prices, script=script, seconds=lambda _: 0.0)

    monkeypatch.setattr(build, "OfflineLlm", paid_llm)
    # Who was refused money would otherwise rest for seconds.
    monkeypatch.setattr(watch, "EMPTY_REST_SECONDS", (0.05, 0.1, 0.2))


# --- prices ----------------------------------------------------------------------------------------


def test_every_shipped_price_names_its_page_and_when_it_was_seen() -> None:
    with SHIPPED.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    for row in rows:
        assert date.fromisoformat(row["seen"]) >= date.fromisoformat(row["since"])
        assert row["source"].startswith("https://") == bool(row["input"])
    assert {row["model"] for row in rows if not row["input"]} == {
        "claude-mythos-5-2",
        "claude-mythos-preview",
    }
    assert len(shipped_prices()) == len(rows) - 2


def test_shipped_prices_tell_what_a_call_costs() -> None:
    usage = Usage(input_tokens=1_000, output_tokens=1_000, cache_read_tokens=10_000)
    table = price_table()
    assert table.cost("claude-sonnet-4-5", usage, NOVEMBER) == 21 * CENT // 10
    assert table.cost("claude-haiku-5-5", usage, NOVEMBER) == 700_000
    assert table.cost("claude-mythos-5-2", usage, NOVEMBER) is None


def test_entered_price_goes_before_the_shipped_one_and_prices_the_unpriced() -> None:
    for model in ("claude-sonnet-4-5", "claude-mythos-5-2"):
        ModelPrice.objects.create(
            model=model,
            since=date(2026, 11, 9),
            input=Decimal("0.001"),
            output=Decimal(2),
            cache_write=Decimal(3),
            cache_read=Decimal(4),
            source="a contract",
        )
    usage = Usage(input_tokens=1_000_000)
    table = price_table()
    assert table.cost("claude-sonnet-4-5", usage, NOVEMBER) == 1_000_000
    assert table.cost("claude-mythos-5-2", usage, NOVEMBER) == 1_000_000
    assert table.cost("claude-sonnet-4-5", usage, datetime(2026, 11, 8, tzinfo=UTC)) == 300 * CENT


def test_price_is_entered_in_the_admin(admin_client: Client) -> None:
    price: dict[str, object] = dict.fromkeys(
        ("input", "output", "cache_write", "cache_read"), "1.25"
    )
    price |= {"model": "m", "since": "2026-11-01", "prompt_above": "0", "source": "a page"}
    page = page_of(admin_client, reverse("admin:engine_modelprice_add"), price)
    assert "was added successfully" in page
    row = ModelPrice.objects.get()
    assert (row.entered_by, row.input, str(row)) == ("admin", Decimal("1.25"), "m from 2026-11-01")


# --- a run without prices ---------------------------------------------------------------------------


@pytest.mark.parametrize("of", ["run", "day"])
@pytest.mark.parametrize("whose", ["run", "agent"])
def test_unpriced_model_is_refused_under_a_money_cap(of: str, whose: str) -> None:
    simulation = make_world(agents=("ash",))
    own = "claude-next" if whose == "agent" else ""
    Agent.objects.update(large_model=own)
    config = RunConfig(
        llm="anthropic", small_model=MODEL, large_model=MODEL if own else "claude-next"
    )
    check_priced(simulation, config)
    if of == "day":
        set_day_cap(CENT, who="Ada")
    with pytest.raises(RunRefused, match="claude-next has no price, so no money cap could hold"):
        check_priced(simulation, replace(config, max_nano_usd=CENT if of == "run" else None))


def test_priced_model_is_let_go_under_a_money_cap() -> None:
    simulation = make_world(agents=("ash",))
    Agent.objects.update(large_model="claude-next", status="retired")
    set_day_cap(CENT, who="Ada")
    config = RunConfig(llm="anthropic", small_model=MODEL, large_model=MODEL)
    check_priced(simulation, replace(config, max_nano_usd=CENT))


def test_free_run_needs_no_prices() -> None:
    check_priced(make_world(agents=("ash",)), RunConfig(max_nano_usd=CENT))


# --- caps that people raise --------------------------------------------------------------------------


def run_of(status: str = "paused", **configuration: object) -> Run:
    run = make_rows().run
    Run.objects.filter(pk=run.pk).update(status=status, configuration=configuration)
    RunControl.objects.get_or_create(run=run)
    run.refresh_from_db()
    return run


def test_raised_caps_are_kept_with_the_run() -> None:
    run = run_of(max_nano_usd=CENT, max_calls=5)
    raise_caps(run, max_nano_usd=2 * CENT, max_calls=6, who="Ada")
    control = RunControl.objects.get(run=run)
    assert (control.max_nano_usd, control.max_calls, control.asked_by) == (2 * CENT, 6, "Ada")
    with pytest.raises(NotRaised, match=r"Its cap of money is \$0\.0200: give more than that\."):
        raise_caps(run, max_nano_usd=2 * CENT, who="Ada")


@pytest.mark.parametrize(
    ("status", "configuration", "asked", "sentence"),
    [
        ("stopped", {"max_calls": 5}, {"max_calls": 9}, "only a run that goes on can spend more"),
        ("running", {"max_calls": 5}, {"max_calls": 4}, "Its cap of calls is 5: give more"),
        ("running", {}, {"max_nano_usd": 4}, "has no cap of money: there is nothing to raise"),
        ("running", {"max_calls": 5}, {}, "Give a new cap of money or of calls"),
    ],
)
def test_cap_that_cannot_be_raised_is_refused(
    status: str, configuration: dict[str, object], asked: dict[str, int], sentence: str
) -> None:
    with pytest.raises(NotRaised, match=sentence):
        raise_caps(run_of(status, **configuration), **asked, who="Ada")


def test_cap_is_raised_on_the_page_of_a_run(admin_client: Client) -> None:
    run = run_of(max_nano_usd=CENT)
    assert "Raise the cap" in page_of(admin_client, change_url(run))
    url = reverse("admin:engine_run_raise", args=[run.pk])
    page = page_of(admin_client, url, {"max_usd": "2.50"})
    assert "The cap is raised: resume it, and it goes on." in page
    assert RunControl.objects.get(run=run).max_nano_usd == 250 * CENT
    assert "Its cap of money is $2.5000: give more" in page_of(admin_client, url, {"max_usd": "1"})
    assert "Give an amount of money above 0" in page_of(admin_client, url, {"max_usd": "x"})
    assert admin_client.get(url).status_code == 405


def test_caps_are_raised_by_those_alone_who_may(client: Client) -> None:
    run = run_of(max_nano_usd=CENT)
    person_with(client, "view_run")
    assert "Raise the cap" not in page_of(client, change_url(run))
    url = reverse("admin:engine_run_raise", args=[run.pk])
    assert client.post(url, {"max_usd": "2"}).status_code == 403


def test_cap_is_raised_from_the_terminal() -> None:
    run = run_of(max_nano_usd=CENT)
    out = io.StringIO()
    call_command("simctl", "raise", str(run.pk), "--max-usd", "2.5", stdout=out)
    assert out.getvalue() == (
        f"The cap of run {run.pk} is raised: go on with `simctl resume {run.pk}` or "
        "`runsim --resume`.\n"
    )
    assert RunControl.objects.get(run=run).max_nano_usd == 250 * CENT
    for words in (("999", "--max-usd", "3"), (str(run.pk), "--max-usd", "x"), (str(run.pk),)):
        with pytest.raises(CommandError) as refused:
            call_command("simctl", "raise", *words)
        assert refused.value.returncode == 2


def test_money_of_a_day_is_shown_and_set_from_the_terminal() -> None:
    out = io.StringIO()
    call_command("simctl", "day", "--max-usd", "5", stdout=out)
    assert out.getvalue().endswith(
        "(UTC): $0.0000 spent, $0.0000 promised to calls on their way; at most $5.0000 a day.\n"
    )
    assert (day_cap(), str(DayCap.objects.get())) == (500 * CENT, "$5.00 a day")
    call_command("simctl", "day", "--max-usd", "none", stdout=out)
    assert out.getvalue().endswith("no limit a day.\n")
    assert (day_cap(), str(DayCap.objects.get())) == (None, "no limit")


def test_money_of_a_day_is_set_in_the_admin(admin_client: Client) -> None:
    page = page_of(admin_client, reverse("admin:engine_daycap_add"), {"max_usd": "5"})
    assert "was added successfully" in page
    assert (day_cap(), DayCap.objects.get().changed_by) == (500 * CENT, "admin")
    change = reverse("admin:engine_daycap_change", args=[1])
    assert 'value="5' in page_of(admin_client, change)
    page_of(admin_client, change, {"max_usd": ""})
    assert day_cap() is None
    assert admin_client.get(reverse("admin:engine_daycap_add")).status_code == 403


# --- what pages and commands say ----------------------------------------------------------------------


def test_page_of_a_run_shows_its_costs_by_purpose_model_and_agent(admin_client: Client) -> None:
    rows = make_rows()
    take_turn(rows, 1)
    assert "<h2>Costs</h2>" not in page_of(admin_client, change_url(rows.run))
    told: tuple[dict[str, object], ...] = (
        {"model": MODEL, "cost_nano_usd": 3 * CENT},
        {"model": "claude-next", "cost_nano_usd": None},
        {"state": "reserved", "cost_nano_usd": None, "model": "", "phase": "post"},
    )
    for number, fields in enumerate(told, start=2):
        take_turn(rows, number)
        LlmCall.objects.filter(turn=number).update(
            reserved_on=date(2026, 1, 1), reserved_nano_usd=5 * CENT, **fields
        )
    page = page_of(admin_client, change_url(rows.run))
    for part in (
        "<dt>Spent</dt><dd>$0.0315</dd>",
        "<dt>Unpriced</dt><dd>1 calls, whose cost nobody knows</dd>",
        "<dt>Promised to calls on their way</dt><dd>$0.0500</dd>",
        "<dt>Cap of this run</dt><dd>$2.5000</dd>",
        "<dt>Money of a day</dt><dd>no limit</dd>",
        "<td>$0.0300</td>",
        "<td>$0.0315, 1 unpriced</td>",
        "A run that meets the money of a day pauses.",
        "<dt>Cost</dt><dd>$0.0315, and 1 unpriced calls</dd>",
    ):
        assert part in page
    calls = page_of(admin_client, reverse("admin:engine_llmcall_changelist"))
    for part in ("unpriced", "at most $0.0500, on its way", "$0.0300"):
        assert part in calls


def test_own_cap_of_an_agent_is_a_limit_of_its_version() -> None:
    make_world(agents=("ash",))
    agent = Agent.objects.get()
    agent.max_usd = Decimal("0.5")
    save_agent(agent, who="Ada")
    assert agent.versions.first().max_usd == Decimal("0.5")  # type: ignore[union-attr]
    (spec,) = agent_specs(Simulation.objects.get().pk)
    assert spec.max_nano_usd == 50 * CENT


@pytest.mark.django_db(transaction=True)
def test_dead_run_is_settled_at_its_estimate_when_the_next_one_begins() -> None:
    make_world()
    assert runsim("--max-turns", "5", "--seed", "1", "--quiet").code == 0
    dead = Run.objects.get()
    Run.objects.update(status="running", end_reason="", finished_at=None, summary=None)
    day = date(2026, 1, 1)
    last = LlmCall.objects.order_by("pk").last()
    assert last is not None
    LlmCall.objects.filter(pk=last.pk).update(
        state="reserved", reserved_on=day, reserved_nano_usd=CENT, cost_nano_usd=None
    )
    for name in (f"run {dead.pk}", f"run {dead.pk} agent {last.agent_id}", "day 2026-01-01"):
        Purse.objects.create(name=name, reserved_nano_usd=CENT)
    assert runsim("--max-turns", "1", "--quiet").code == 0
    last.refresh_from_db()
    assert (last.state, last.cost_nano_usd, last.error) == ("settled", CENT, "died in flight")
    assert set(Purse.objects.values_list("spent_nano_usd", "reserved_nano_usd")) == {(CENT, 0)}


def spent_in_all() -> int:
    return sum(call.cost_nano_usd or 0 for call in LlmCall.objects.all())


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("_paid")
def test_runsim_pauses_at_its_cap_says_what_it_spent_and_goes_on_when_raised(
    tmp_path: Path,
) -> None:
    make_world()
    told = runsim("--until-idle", "--max-usd", "0.03", "--quiet")
    assert told.code == 4
    run = Run.objects.get()
    spent = spent_in_all()
    assert 0 < spent <= 3 * CENT
    assert "is paused (money_cap). It has spent $0.0" in told.out
    assert f"\nSpent: ${spent / 10**9:,.4f}.\n" in told.out
    call_command("simctl", "raise", str(run.pk), "--max-usd", "5", stdout=io.StringIO())
    told = runsim("--resume", "--quiet")
    assert told.code == 0, told
    calls = LlmCall.objects.all()
    assert spent_in_all() > spent
    assert not calls.filter(state=LlmCall.State.RESERVED).exists()
    write_export(Scope(simulation=run.simulation), tmp_path / "export")
    assert check_folder(tmp_path / "export").violations == ()
