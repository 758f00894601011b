"""Schedules: saved, followed, missed, overlapping, broken, switched off, deleted."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.conf import settings

from engine.core.settings import RefusedSetting
from engine.models import Occasion, Purse, Run, RunControl, RunSchedule, Simulation
from engine.runs import RunRefused, controls, firing, fresh_world, schedules
from engine.runs.firing import fire_due
from engine.runs.schedules import delete_schedule, save_schedule, told_times
from tests.site.schedule_rows import EVENING, NINE, make_schedule, schedule_row

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.django_db

SECOND, MINUTE, DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(days=1)
CENT = 10**7


@pytest.fixture
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the site have a key for its service; nothing is asked of it."""
    monkeypatch.setattr(settings, "SIM_ANTHROPIC_API_KEY", "a-key")


def decided(at: datetime = NINE) -> list[tuple[str, str]]:
    """Follow what is due, and return outcome and reason of each decision."""
    return [(occasion.outcome, occasion.reason) for occasion in fire_due(at)]


def end_runs(status: str = "completed") -> None:
    Run.objects.update(status=status)


# --- when ------------------------------------------------------------------------------------------


def test_schedule_fires_at_its_time_and_not_before() -> None:
    schedule = make_schedule()
    assert schedule.next_at == NINE
    assert decided(NINE - SECOND) == []
    (occasion,) = fire_due(NINE)
    run = Run.objects.get()
    assert (occasion.run, occasion.intended_at, occasion.missed_since) == (run, NINE, None)
    assert (run.status, run.started_by) == ("queued", "schedule mornings of ada")
    assert run.configuration["until_idle"] is True
    assert decided(NINE + MINUTE) == []
    schedule.refresh_from_db()
    assert schedule.next_at == NINE + DAY


def test_each_time_gets_a_run_of_its_own() -> None:
    make_schedule(kind="every", every_minutes=60, times="")
    for hour in range(3):
        assert decided(NINE + hour * timedelta(hours=1)) == [("run", "")]
        end_runs()
    assert Run.objects.count() == 3
    assert str(Occasion.objects.latest("intended_at")) == "mornings at 2026-12-01 10:00 UTC"


def test_run_is_asked_for_with_what_the_schedule_says() -> None:
    simulation = Simulation.objects.create(name="main", settings={"daily_posts": 9})
    asked = {"concurrent_turns": 7, "policy": "isolated", "max_turns": 50, "seed": 4}
    make_schedule(simulation, asked=asked, max_nano_usd=CENT)
    fire_due(NINE)
    told_of = Run.objects.get().configuration
    names = ("daily_posts", "concurrent_turns", "policy", "max_turns", "seed", "max_nano_usd")
    assert [told_of[name] for name in names] == [9, 7, "isolated", 50, 4, CENT]


def test_what_is_over_is_never_due_again() -> None:
    schedule = make_schedule(last_date=date(2026, 12, 1))
    assert decided(NINE) == [("run", "")]
    schedule.refresh_from_db()
    assert schedule.next_at is None
    assert told_times(schedule, after=NINE) == []


# --- missed ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("missed", "wait", "outcome"),
    [
        ("skip", 5 * MINUTE, "run"),
        ("skip", 5 * MINUTE + SECOND, "missed"),
        ("once", 5 * MINUTE + SECOND, "run"),
        ("once", 23 * 60 * MINUTE, "run"),
    ],
)
def test_late_time_is_missed_or_made_up_for(missed: str, wait: timedelta, outcome: str) -> None:
    make_schedule(missed=missed)
    (occasion,) = fire_due(NINE + wait)
    assert (occasion.outcome, occasion.intended_at) == (outcome, NINE)
    assert Run.objects.count() == (outcome == "run")


def test_of_many_missed_times_one_is_made_up_for() -> None:
    make_schedule(missed="once")
    (occasion,) = fire_due(NINE + 9 * DAY + 60 * MINUTE)
    assert (occasion.intended_at, occasion.missed_since) == (NINE + 9 * DAY, NINE)
    assert Run.objects.count() == 1
    assert decided(NINE + 9 * DAY + 61 * MINUTE) == []


def test_time_that_comes_after_missed_ones_is_followed() -> None:
    make_schedule(missed="skip")
    (occasion,) = fire_due(NINE + 9 * DAY)
    assert (occasion.outcome, occasion.missed_since) == ("run", NINE)


# --- overlap ---------------------------------------------------------------------------------------


def live_run(status: str = "running") -> Run:
    """Return a run of the simulation that a person began."""
    run = Run.objects.create(simulation=Simulation.objects.get(), status=status)
    RunControl.objects.create(run=run)
    return run


@pytest.mark.parametrize("status", ["queued", "running", "paused", "stopping"])
def test_time_is_skipped_beside_a_run_that_goes_on(status: str) -> None:
    make_schedule(overlap="skip")
    old = live_run(status)
    assert decided() == [("skipped", f"Run {old.pk} of main is {status}.")]
    end_runs()
    assert decided(NINE + DAY) == [("run", "")]


def test_run_waits_for_the_old_one_and_no_more_than_one_waits() -> None:
    make_schedule(overlap="queue")
    old = live_run()
    assert decided() == [("run", "")]
    waiting = Run.objects.get(status="queued")
    assert decided(NINE + DAY) == [("skipped", f"Run {waiting.pk} of this schedule waits already.")]
    assert RunControl.objects.get(run=old).wish == "run"


def test_old_run_of_the_schedule_is_stopped_for_the_new_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[Run, str]] = []
    monkeypatch.setattr(firing, "stop", lambda run, *, who: asked.append((run, who)))
    make_schedule(overlap="stop")
    assert decided() == [("run", "")]
    old = Run.objects.get()
    Run.objects.update(status="running")
    assert decided(NINE + DAY) == [("run", "")]
    assert asked == [(old, "schedule mornings of ada")]
    assert Run.objects.filter(status="queued").count() == 1


def test_run_of_a_person_is_waited_for_and_never_stopped() -> None:
    make_schedule(overlap="stop")
    old = live_run()
    assert decided() == [("run", "")]
    assert RunControl.objects.get(run=old).wish == "run"
    assert Run.objects.get(pk=old.pk).status == "running"


def test_schedules_of_other_simulations_are_not_in_the_way() -> None:
    make_schedule()
    make_schedule(Simulation.objects.create(name="other"), name="others")
    assert decided() == [("run", ""), ("run", "")]


# --- what is wrong with one is not the others' ------------------------------------------------------


def _bad_times(schedule: RunSchedule) -> None:
    RunSchedule.objects.filter(pk=schedule.pk).update(times="soon")


def _bad_zone(schedule: RunSchedule) -> None:
    RunSchedule.objects.filter(pk=schedule.pk).update(time_zone="Mars/Olympus")


def _bad_settings(schedule: RunSchedule) -> None:
    RunSchedule.objects.filter(pk=schedule.pk).update(asked={"concurrent_turns": 0})


def _bad_shape(schedule: RunSchedule) -> None:
    RunSchedule.objects.filter(pk=schedule.pk).update(asked=["llm"])


def _no_simulation(schedule: RunSchedule) -> None:
    assert schedule.simulation is not None
    schedule.simulation.delete()


@pytest.mark.parametrize(
    ("spoil", "problem"),
    [
        (_bad_times, "“soon” is no time of the day: write it like 9:00 or 17:30."),
        (_bad_zone, "There is no time zone “Mars/Olympus”: write it like Europe/Berlin."),
        (_bad_settings, "concurrent_turns is 0: give a number from 1 to 500."),
        (_bad_shape, "It could not be followed, and is tried again: "),
        (_no_simulation, "Its simulation is gone: choose another one."),
    ],
)
def test_broken_schedule_says_so_and_stops_no_other(
    spoil: Callable[[RunSchedule], None], problem: str
) -> None:
    broken = make_schedule(Simulation.objects.create(name="gone"), name="a broken one")
    make_schedule()
    spoil(broken)
    found = [(one.schedule.name, one.outcome) for one in fire_due(NINE)]
    assert ("mornings", "run") in found
    assert Run.objects.count() == 1
    broken.refresh_from_db()
    assert broken.problem.startswith(problem)
    main = Simulation.objects.get(name="main")
    save_schedule(schedule_row(main, pk=broken.pk, name="mended"), who="ada", now=NINE)
    assert RunSchedule.objects.get(name="mended").problem == ""


def test_fault_of_ours_is_written_down_once_and_tried_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    schedule = make_schedule()
    with monkeypatch.context() as patch:
        patch.setattr(firing, "request", lambda *_, **__: 1 // 0)
        assert decided() == decided(NINE + SECOND) == []
    schedule.refresh_from_db()
    assert schedule.problem.endswith("tried again: integer division or modulo by zero")
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert not Occasion.objects.exists()
    assert decided(NINE + 2 * SECOND) == [("run", "")]
    schedule.refresh_from_db()
    assert schedule.problem == ""


@pytest.mark.usefixtures("_key")
def test_refused_run_is_told_and_the_next_time_is_tried() -> None:
    schedule = make_schedule(asked={"llm": "anthropic"}, max_nano_usd=CENT)
    RunSchedule.objects.update(asked={"llm": "anthropic", "large_model": "claude-next"})
    ((outcome, reason),) = decided()
    assert outcome == "refused"
    assert reason.startswith("claude-next has no price")
    schedule.refresh_from_db()
    assert (schedule.problem, schedule.next_at) == (reason, NINE + DAY)


# --- money -----------------------------------------------------------------------------------------


def test_time_is_skipped_when_the_money_of_the_month_is_spent() -> None:
    schedule = make_schedule(month_nano_usd=2 * CENT, kind="every", every_minutes=60)
    Purse.objects.create(
        name=f"schedule {schedule.pk} month 2026-12", spent_nano_usd=CENT, reserved_nano_usd=CENT
    )
    assert decided() == [
        (
            "skipped",
            "Its runs have spent or promised $0.0200 of the $0.0200 that they may in 2026-12.",
        )
    ]
    RunSchedule.objects.update(month_nano_usd=3 * CENT)
    assert decided(NINE + 60 * MINUTE) == [("run", "")]


@pytest.mark.usefixtures("_key")
def test_model_without_a_price_is_refused_under_a_cap_of_the_month() -> None:
    asked = {"llm": "anthropic", "large_model": "claude-next"}
    make_schedule(asked=asked, month_nano_usd=CENT)
    ((outcome, reason),) = decided()
    assert (outcome, reason.split(",")[0]) == ("refused", "claude-next has no price")
    RunSchedule.objects.update(month_nano_usd=None)
    assert decided(NINE + DAY) == [("run", "")]


# --- changed by people -----------------------------------------------------------------------------


def test_change_of_the_time_makes_earlier_times_the_past() -> None:
    schedule = make_schedule()
    schedule.times = "8:00"
    save_schedule(schedule, who="bob", now=NINE)
    assert decided(NINE) == []
    assert (schedule.next_at, schedule.changed_by) == (NINE + DAY - 60 * MINUTE, "bob")


def test_change_of_anything_else_loses_no_time() -> None:
    schedule = make_schedule()
    schedule.max_nano_usd = CENT
    save_schedule(schedule, who="bob", now=NINE + SECOND)
    assert decided(NINE + SECOND) == [("run", "")]


def test_schedule_that_is_switched_off_takes_back_what_waits() -> None:
    schedule = make_schedule()
    fire_due(NINE)
    schedule.enabled = False
    save_schedule(schedule, who="bob", now=NINE)
    run = Run.objects.get()
    assert (run.status, run.detail) == ("stopped", "Its schedule was switched off.")
    assert run.summary is not None
    assert decided(NINE + DAY) == []
    schedule.enabled = True
    save_schedule(schedule, who="bob", now=NINE + DAY)
    assert decided(NINE + DAY) == []
    assert decided(NINE + 2 * DAY) == [("run", "")]


def test_run_that_begins_while_its_schedule_is_switched_off_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    schedule = make_schedule()
    fire_due(NINE)
    stop = controls.stop

    def too_late(run: Run, *, who: str) -> str:
        Run.objects.update(status="running")
        return stop(run, who=who)

    monkeypatch.setattr(schedules, "stop", too_late)
    schedule.enabled = False
    save_schedule(schedule, who="bob", now=NINE)
    assert (Run.objects.get().status, Run.objects.get().detail) == ("running", "")


def test_run_that_has_begun_goes_on_when_its_schedule_is_switched_off() -> None:
    schedule = make_schedule()
    fire_due(NINE)
    Run.objects.update(status="running")
    schedule.enabled = False
    save_schedule(schedule, who="bob", now=NINE)
    assert Run.objects.get().status == "running"


def test_deleted_schedule_leaves_no_orphan() -> None:
    schedule = make_schedule()
    Purse.objects.create(name=f"schedule {schedule.pk} month 2026-12")
    fire_due(NINE)
    delete_schedule(schedule, who="bob")
    run = Run.objects.get()
    assert (run.status, run.detail) == ("stopped", "Its schedule was deleted.")
    assert not Occasion.objects.exists()
    assert not Purse.objects.exists()
    assert decided(NINE + DAY) == []


def test_schedule_with_a_live_run_is_not_deleted() -> None:
    schedule = make_schedule()
    fire_due(NINE)
    Run.objects.update(status="paused")
    with pytest.raises(RunRefused, match=r"Run \d+ of mornings is paused: stop it, or wait"):
        delete_schedule(schedule, who="bob")
    assert (RunSchedule.objects.count(), Occasion.objects.count()) == (1, 1)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"times": ""}, "Give at least one time of the day"),
        ({"time_zone": "nowhere"}, "There is no time zone “nowhere”"),
        ({"last_date": date(2026, 11, 29)}, "The last date is before the first"),
        (
            {"last_date": date(2026, 11, 30)},
            "It would never be due again: look at its days and dates, or",
        ),
        ({"kind": "cron", "cron": "0 9 30 2 *"}, "It would never be due"),
        ({"asked": {"fresh": True}}, "A run cannot be asked for fresh."),
        ({"asked": {"policy": "shut"}}, "policy is 'shut': it must be open or isolated or off."),
        ({"asked": {"daily_posts": -1}}, "daily_posts is -1: give a number from 0 to 1000."),
        ({"asked": {"max_turns": 0}}, "max_turns is 0: give a number from 1 to"),
        ({"asked": {"max_minutes": True}}, "max_minutes is True: give a number"),
        ({"asked": {"until_idle": 1}}, "until_idle is 1: it is true or false."),
        ({"asked": {"llm": "anthropic", "small_model": "a b"}}, "small_model is 'a b': it must"),
        ({"asked": {"small_model": "claude"}}, "The offline LLM is no model of a choice: leave"),
    ],
)
def test_schedule_that_cannot_be_followed_is_refused(given: dict[str, Any], sentence: str) -> None:
    Simulation.objects.create(name="main")
    with pytest.raises(RefusedSetting, match=sentence):
        make_schedule(**given)
    assert not RunSchedule.objects.exists()


def test_schedule_without_a_simulation_is_refused() -> None:
    with pytest.raises(RefusedSetting, match="Its simulation is gone"):
        save_schedule(schedule_row(None), who="ada", now=EVENING)


def test_schedule_goes_with_the_name_of_its_simulation_when_that_begins_afresh() -> None:
    schedule = make_schedule()
    fresh = fresh_world(Simulation.objects.get(), who="ada")
    schedule.refresh_from_db()
    assert (schedule.simulation, fresh.name) == (fresh, "main")
