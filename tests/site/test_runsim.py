"""`runsim`: one run from the terminal to its end, its words, its exits, its summary."""

from __future__ import annotations

import getpass
import logging
import os
import re
from importlib import import_module

import pytest
from django.db.models import Max

from cohorts.models import TopologyChange
from engine.models import (
    Channel,
    ChannelMember,
    DayCap,
    Decision,
    LlmCall,
    Message,
    Run,
    RunControl,
    RunLease,
    Simulation,
    Thread,
    Turn,
)
from engine.simulations import house_rules_of, save_house_rules
from engine.store.database import read_lease
from tests.doors import Told, command, driver_elsewhere, make_agent, make_world, runsim

pytestmark = pytest.mark.django_db(transaction=True)

QUICK = ("--until-idle", "--seed", "1", "--clock", "virtual")
KEYS = [
    *("run", "simulation", "status", "end_reason", "turns", "messages", "rejected", "llm_calls"),
    *("input_tokens", "output_tokens", "cost_usd", "threads", "proposals", "gate_filtered"),
    *("longest_wait_seconds", "wait_bound_seconds", "slot_utilisation"),
]


def play(*words: str) -> Told:
    return runsim(*QUICK, "--json", *words)


def test_runsim_ends_idle_with_a_summary_that_equals_the_rows() -> None:
    make_world(cohorts={"north": ("ash", "elm"), "south": ("elm", "fir")}, policy="isolated")
    told = play()
    assert told.code == 0
    summary = told.summary
    run = Run.objects.get()
    assert sorted(summary) == sorted(KEYS)
    assert (summary["run"], summary["simulation"]) == (run.pk, "main")
    assert (summary["status"], summary["end_reason"]) == ("completed", "idle")
    assert (run.status, run.end_reason, run.summary) == ("completed", "idle", summary)
    assert summary["turns"] == Turn.objects.filter(run=run).count() > 10
    assert summary["messages"] == Message.objects.filter(run=run, is_bot=True).count() > 10
    assert sum(summary["llm_calls"].values()) == LlmCall.objects.filter(run=run).count()
    assert set(summary["llm_calls"]) <= {"remember", "scan", "prune", "reply", "post"}
    ends = Decision.objects.filter(run=run)
    for outcome in ("proposal", "no_proposal", "timeout", "lost"):
        assert summary["threads"][outcome] == ends.filter(outcome=outcome).count()
    assert summary["threads"]["open"] == Thread.objects.filter(closed_seq=None).count() == 0
    assert summary["proposals"] == ends.filter(outcome="proposal").count()
    assert summary["gate_filtered"] > 0
    assert summary["longest_wait_seconds"] <= summary["wait_bound_seconds"]
    assert not Turn.objects.exclude(outcome__in=["worked", "nothing", "skipped"]).exists()


def test_runsim_tells_its_end_in_words_without_json() -> None:
    make_world(agents=("ash", "elm"))
    told = runsim(*QUICK)
    run = Run.objects.get()
    assert told.out.startswith(f"Run {run.pk} of main is completed (idle).\n")
    assert "turns, " in told.out
    assert "2 agents, 3 slots, policy open (in_force), llm offline, seed 1; simulated" in told.err
    assert runsim(*QUICK, "--quiet").err == ""


def test_runsim_makes_an_unknown_simulation_of_all_active_agents() -> None:
    make_agent("ash")
    make_agent("elm")
    told = play("--simulation", "new-one", "--channels", "hall, yard,hall")
    assert told.code == 0
    simulation = Simulation.objects.get()
    assert simulation.name == "new-one"
    assert not simulation.roster_chosen
    assert list(simulation.channels.values_list("name", flat=True)) == ["hall", "yard"]
    assert told.summary["messages"] > 0


def test_runsim_is_called_main_and_meets_in_general_when_nothing_is_said() -> None:
    told = play()
    assert (told.code, told.summary["end_reason"]) == (0, "nobody_left")
    assert Channel.objects.get().name == "general"
    assert Simulation.objects.get().name == "main"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--simulation", "No Way"], '"No Way" cannot name a simulation'),
        (["--channels", "hall,# yard"], '"# yard" cannot name a channel'),
        (["--max-turns", "0"], "--max-turns is 0: give a number from 1"),
        (["--max-calls", "-1"], "--max-calls is -1"),
        (["--max-minutes", "nan"], "--max-minutes is nan"),
        (["--max-minutes", "inf"], "--max-minutes is inf"),
        (["--max-usd", "free"], '--max-usd is "free": give an amount above 0'),
        (["--max-usd", "0"], '--max-usd is "0"'),
        (["--max-usd", "1e30"], '--max-usd is "1e30"'),
        (["--latency", "-1"], "--latency is -1.0: give a number from 0"),
        (["--seed", "99999999999999999999"], "--seed is 99999999999999999999"),
        (["--concurrent-turns", "0"], "concurrent_turns is 0: give a number from 1 to 500"),
        (["--turn-delay", "nan"], "turn_delay_seconds is nan"),
        (["--resume"], 'There is no simulation "main"'),
        (["--resume", "--seed", "0"], "leave out --seed"),
        (["--resume", "--until-idle"], "leave out --until-idle"),
        (["--resume", "--fresh"], "not allowed with argument"),
        (["--llm", "oracle"], "there is no oracle, but offline, anthropic, and replay:RUN"),
        (["--max-turns", "many"], "invalid int value: 'many'"),
    ],
)
def test_runsim_refuses_a_wrong_word_and_writes_nothing(words: list[str], sentence: str) -> None:
    told = runsim(*words)
    assert told.code == 2
    assert sentence in told.err
    assert "Traceback" not in told.err
    assert not Simulation.objects.exists()
    assert not Run.objects.exists()


def test_runsim_refuses_to_start_when_a_trigger_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make_world(agents=("ash", "elm"))
    assert play().code == 0
    monkeypatch.setattr("engine.runs.start.missing_triggers", lambda: ["cohorts_membership_insert"])
    told = play()
    assert told.code == 2
    assert "The database lacks cohorts_membership_insert" in told.err
    assert "run `manage.py migrate`" in told.err
    assert Run.objects.count() == 1


def test_limits_end_a_run_completed() -> None:
    make_world()
    turns = play("--max-turns", "3")
    assert (turns.code, turns.summary["status"]) == (0, "completed")
    assert (turns.summary["end_reason"], turns.summary["turns"]) == ("turn_limit", 3)
    minutes = play("--max-minutes", "0.05", "--latency", "1", "--turn-delay", "1")
    assert (minutes.code, minutes.summary["status"]) == (0, "completed")
    assert minutes.summary["end_reason"] == "time_limit"


def test_spent_cap_pauses_and_a_raised_one_goes_on_to_the_end() -> None:
    make_world()
    paused = play("--max-calls", "5")
    run = Run.objects.get()
    assert paused.code == 4
    assert (paused.summary["status"], paused.summary["end_reason"]) == ("paused", "call_cap")
    assert run.finished_at is None
    assert read_lease(run.simulation_id).is_expired
    assert LlmCall.objects.count() == 5

    again = runsim("--resume", "--json", "--max-calls", "9")
    assert (again.code, again.summary["end_reason"]) == (4, "call_cap")
    assert again.summary["run"] == run.pk
    assert sum(again.summary["llm_calls"].values()) == LlmCall.objects.count() == 9

    done = runsim("--resume", "--json", "--max-calls", "100000")
    assert (done.code, done.summary["end_reason"]) == (0, "idle")
    ended = Run.objects.get()
    assert (ended.pk, ended.status) == (run.pk, "completed")
    assert ended.finished_at is not None
    assert ended.configuration["max_calls"] == 100000
    assert ended.summary == done.summary
    assert done.summary["turns"] == Turn.objects.filter(run=run).count()
    assert sum(done.summary["llm_calls"].values()) == LlmCall.objects.count() > 9


def test_resumed_run_keeps_a_cap_that_a_person_raised_and_its_limit_of_turns() -> None:
    make_world()
    assert play("--max-calls", "2", "--max-turns", "12").code == 4
    RunControl.objects.update(max_calls=1000)
    done = runsim("--resume", "--json")
    assert (done.code, done.summary["end_reason"]) == (0, "turn_limit")
    assert done.summary["turns"] == 12


def test_paused_run_is_live_for_everybody_else() -> None:
    make_world()
    assert play("--max-calls", "2").code == 4
    run = Run.objects.get()
    told = play()
    assert told.code == 3
    assert f"Run {run.pk} of main is paused (call_cap)" in told.err
    assert "runsim --resume" in told.err
    fresh = play("--fresh")
    assert (fresh.code, Simulation.objects.count()) == (3, 1)


def test_second_runsim_names_the_live_run_its_host_and_state() -> None:
    simulation = make_world()
    assert play("--max-calls", "2").code == 4
    run = Run.objects.get()
    Run.objects.update(status="stopping")
    with driver_elsewhere(run):
        told = play()
        assert told.code == 3
        assert re.search(
            rf"Run {run.pk} of main is stopping on elsewhere:7"
            r" \(its lease ends in [56]\d s unless it renews it\): stop it first\.$",
            told.err.strip(),
        )
        assert runsim("--resume").code == 3
    assert Run.objects.filter(simulation=simulation).count() == 1


def test_resume_needs_a_paused_run() -> None:
    make_world(agents=("ash", "elm"))
    assert play().code == 0
    told = runsim("--resume")
    assert (told.code, told.out) == (2, "")
    assert "No run of main is paused: start one without --resume." in told.err
    run = Run.objects.get()
    Run.objects.update(status="running", finished_at=None, end_reason="")
    told = runsim("--resume")
    assert told.code == 2
    assert f"Run {run.pk} of main died: start one without --resume." in told.err


def test_calls_name_the_house_rules_that_the_run_began_with() -> None:
    simulation = make_world()
    save_house_rules(simulation, "Be kind.", who="Ada")
    save_house_rules(simulation, "Be quick.", who="Ada")

    assert play().code == 0

    run = Run.objects.get()
    assert run.configuration["house_rules"] == "Be quick."
    assert set(run.llm_calls.values_list("house_rules_version", flat=True)) == {2}


def test_fresh_begins_an_empty_world_and_keeps_the_old_ones() -> None:
    old = make_world(policy="isolated", cohorts={"north": ("ash", "elm")}, daily_posts=2)
    save_house_rules(old, "Be quick.", who="Ada")
    save_house_rules(old, "Be kind.", who="Ada")
    old.roster_chosen = True
    old.save()
    for slug in ("ash", "elm"):
        old.roster_entries.create(agent=make_agent(slug))
    room = Channel.objects.create(simulation=old, name="den", visibility="private")
    ChannelMember.objects.create(channel=room, agent=make_agent("ash"))
    assert play().code == 0
    kept = Message.objects.filter(simulation=old).count()

    told = play("--fresh", "--channels", "yard")
    assert (told.code, told.summary["simulation"]) == (0, "main")
    fresh = Simulation.objects.get(name="main")
    assert fresh.pk != old.pk
    assert (fresh.policy, fresh.settings) == ("isolated", {"daily_posts": 2})
    rules = house_rules_of(fresh)
    assert (rules.number, rules.text, fresh.roster_chosen) == (1, "Be kind.", True)
    assert list(fresh.roster.order_by("slug").values_list("slug", flat=True)) == ["ash", "elm"]
    rooms = fresh.channels.order_by("name").values_list("name", "visibility")
    assert list(rooms) == [("den", "private"), ("general", "public"), ("yard", "public")]
    member = ChannelMember.objects.get(channel__simulation=fresh)
    assert member.agent.slug == "ash"
    newest = TopologyChange.objects.order_by("-id")[0]
    assert (newest.action, newest.agent) == ("channel_member_added", "ash")
    assert newest.who != "outside"

    old.refresh_from_db()
    assert old.name == "main-1"
    assert old.channels.count() == 2
    assert Message.objects.filter(simulation=old).count() == kept > 0
    assert play("--fresh").code == 0
    names = Simulation.objects.order_by("name").values_list("name", flat=True)
    assert list(names) == ["main", "main-1", "main-2"]


def test_fresh_makes_an_unknown_simulation_only_once() -> None:
    make_agent("ash")
    assert play("--fresh").code == 0
    assert Simulation.objects.get().name == "main"


def test_fresh_name_is_cut_to_fit() -> None:
    name = "n" * 48
    Simulation.objects.create(name=name)
    assert play("--fresh", "--simulation", name).code == 0
    assert Simulation.objects.order_by("id")[0].name == "n" * 46 + "-1"


def test_virtual_clock_starts_where_the_last_run_ended() -> None:
    make_world(agents=("ash", "elm"))
    slow = ("--latency", "5", "--turn-delay", "60")
    assert play(*slow).code == 0
    first = Run.objects.get()
    last_stamp = Message.objects.aggregate(at=Max("committed_at"))["at"]
    assert first.finished_at is not None
    make_agent("fir")
    assert play(*slow).code == 0
    second = Run.objects.exclude(pk=first.pk).get()
    assert second.started_at is not None
    assert second.started_at >= last_stamp > first.started_at
    selected = Turn.objects.filter(run=second).order_by("number").first()
    assert selected is not None
    assert selected.selected_at >= second.started_at


def test_dead_run_is_marked_interrupted_and_a_new_one_goes_on() -> None:
    make_world()
    assert play("--max-turns", "5").code == 0
    dead = Run.objects.get()
    Run.objects.update(status="running", end_reason="", finished_at=None, summary=None)
    Turn.objects.filter(number=5).update(outcome="running", finished_at=None)
    token = RunLease.objects.get().token

    told = play()
    assert told.code == 0
    dead.refresh_from_db()
    assert (dead.status, dead.end_reason) == ("interrupted", "interrupted")
    assert dead.detail == "Its driver died."
    assert dead.summary is not None
    assert dead.summary["status"] == "interrupted"
    assert Turn.objects.get(number=5).outcome == "interrupted"
    # One step fenced the dead driver, the other is the new run's own.
    assert RunLease.objects.get().token == token + 2
    assert told.summary["run"] > dead.pk
    first = Turn.objects.filter(run=told.summary["run"]).order_by("number")[0]
    assert first.number == 6


def test_permanent_failure_ends_the_run_failed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    make_world()

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("no world")

    monkeypatch.setattr(import_module("engine.runs.drive"), "Engine", broken)
    with caplog.at_level(logging.CRITICAL):
        told = play()
    assert (told.code, told.summary["status"]) == (1, "failed")
    run = Run.objects.get()
    assert (run.end_reason, run.detail) == ("failed", "RuntimeError: no world")
    assert run.finished_at is not None
    assert "RuntimeError: no world" in told.err
    assert read_lease(run.simulation_id).is_expired


def test_person_without_a_name_is_told_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    def nameless() -> str:
        raise KeyError("getpwuid(): uid not found: 4711")

    monkeypatch.setattr(getpass, "getuser", nameless)
    monkeypatch.setattr(os, "getuid", lambda: 4711)
    assert play("--max-turns", "1").code == 0
    assert Run.objects.get().started_by == "user 4711"
    assert command("simctl", "day", "--max-usd", "5").code == 0
    assert DayCap.objects.get().changed_by == "user 4711"


def test_stored_policy_and_settings_hold_unless_the_run_says_otherwise() -> None:
    make_world(
        cohorts={"north": ("ash", "elm"), "south": ("fir", "oak")},
        policy="isolated",
        concurrent_turns=2,
    )
    assert play("--max-turns", "1").code == 0
    assert play("--max-turns", "1", "--policy", "off", "--concurrent-turns", "1").code == 0
    second, first = Run.objects.all()
    assert (first.configuration["policy"], first.configuration["concurrent_turns"]) == (
        "isolated",
        2,
    )
    assert (second.configuration["policy"], second.configuration["concurrent_turns"]) == ("off", 1)
    assert second.seed == 1
