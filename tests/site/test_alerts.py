"""Alerts: which events make one, what it says, and that each is told once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from django.contrib.auth.models import User
from django.db import connections

from engine.alerts import events, look, looking
from engine.alerts.usual import is_quick, is_slow, middle
from engine.models import (
    Alert,
    AlertMail,
    AlertReader,
    Occasion,
    Proposal,
    Run,
    RunLease,
    Ticket,
)
from engine.runs.firing import fire_due
from tests.doors import driver_elsewhere
from tests.site.admin_world import NOON, Rows, make_rows, talk
from tests.site.schedule_rows import NINE, make_schedule

if TYPE_CHECKING:
    from datetime import datetime

    from pytest_django import Settings

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]

LATER = NOON + timedelta(minutes=10)


@pytest.fixture
def rows() -> Rows:
    return make_rows()


def make_run(rows: Rows, status: str, **more: object) -> Run:
    """Make another run of the same kind as the one of `make_rows`."""
    values = {"started_at": NOON, "configuration": {"llm": "offline"}, **more}
    return Run.objects.create(simulation=rows.simulation, status=status, **values)


def told(now: datetime = LATER) -> list[tuple[str, str]]:
    return [(alert.kind, alert.sentence) for alert in look(now)]


def test_run_that_went_well_is_no_event(rows: Rows) -> None:
    assert told() == []


def test_run_that_failed_is_told_once(rows: Rows) -> None:
    run = make_run(rows, "failed", finished_at=NOON, detail="The key\n is\x1b[31m wrong.")

    first = look(LATER)

    assert [(alert.kind, alert.run_id, alert.sentence, alert.next_step) for alert in first] == [
        (
            "failed",
            run.pk,
            f"Run {run.pk} of main failed. The key is [31m wrong.",
            "Cure what the sentence says, then start a new run.",
        )
    ]
    assert look(LATER + timedelta(minutes=1)) == []
    assert Alert.objects.count() == 1


def test_run_whose_process_died_is_told(rows: Rows) -> None:
    run = make_run(rows, "interrupted", finished_at=NOON, detail="Its driver died.")

    assert told() == [("failed", f"Run {run.pk} of main was interrupted. Its driver died.")]


def test_old_news_is_not_told(rows: Rows) -> None:
    make_run(rows, "failed", finished_at=LATER - timedelta(days=1, seconds=1))

    assert told() == []


@pytest.mark.parametrize("reason", ["money_cap", "call_cap", "circuit_open"])
def test_each_pause_at_a_cap_is_told(rows: Rows, reason: str) -> None:
    run = make_run(rows, "paused", end_reason=reason)
    RunLease.objects.create(simulation=rows.simulation, run=run, token=3)
    (kind, sentence), *others = told()
    assert (kind, others, told()) == ("paused", [], [])
    assert sentence.startswith(f"Run {run.pk} of main ")

    RunLease.objects.filter(run=run).update(token=4)  # resumed, and at a cap again

    assert [kind for kind, _ in told()] == ["paused"]


def test_pause_that_somebody_asked_for_is_not_told(rows: Rows) -> None:
    run = make_run(rows, "paused", end_reason="pause_requested")
    RunLease.objects.create(simulation=rows.simulation, run=run, token=3)

    assert told() == []


def test_run_stands_still_when_its_driver_was_not_heard_of_for_two_leases(
    rows: Rows, settings: Settings
) -> None:
    run = make_run(rows, "running")
    with driver_elsewhere(run, seconds=30):
        beat_at = RunLease.objects.get(run=run).beat_at
        assert beat_at is not None
        long_after = beat_at + timedelta(seconds=61)
        assert told(long_after) == []  # its lease has not ended
        RunLease.objects.filter(run=run).update(expires=0.0)
        assert told(beat_at + timedelta(seconds=59)) == []

        ((kind, sentence),) = told(long_after)

    assert kind == "stalled"
    assert sentence.startswith(f"Run {run.pk} of main stands still. Its driver (elsewhere:7) was ")


def test_run_that_does_not_start_within_five_minutes_is_told(rows: Rows) -> None:
    run = make_run(rows, "queued", started_at=None)
    asked_at = run.created_at

    assert told(asked_at + timedelta(minutes=5)) == []
    Ticket.objects.create(run=run, waits_for="All 20 places are taken.")
    ((kind, sentence),) = told(asked_at + timedelta(minutes=5, seconds=1))
    assert kind == "late"
    assert sentence.endswith(" UTC. All 20 places are taken.")


def test_schedule_that_no_worker_has_looked_at_is_told() -> None:
    schedule = make_schedule()
    sentence = "The schedule mornings was to begin a run 01 December 08:00 UTC. "

    assert told(NINE + timedelta(minutes=5)) == []
    (alert,) = look(NINE + timedelta(minutes=6))
    assert alert.sentence == sentence + "No worker has looked at it since."
    assert alert.schedule == schedule

    fire_due(NINE + timedelta(minutes=7))  # a worker is back, and the time is missed

    assert Occasion.objects.get().outcome == "missed"
    assert told(NINE + timedelta(minutes=8)) == []


def test_time_of_a_schedule_at_which_no_run_could_begin_is_told_for_a_day() -> None:
    make_schedule(asked={"llm": "anthropic"})
    fire_due(NINE)
    sentence = (
        "The schedule mornings was to begin a run 01 December 08:00 UTC. "
        f"{Occasion.objects.get().reason}"
    )

    assert told(NINE + timedelta(hours=23)) == [("late", sentence)]
    assert told(NINE + timedelta(hours=23)) == []
    Alert.objects.all().delete()
    assert told(NINE + timedelta(days=1, minutes=1)) == []


def test_schedule_that_began_its_run_or_is_off_is_not_told() -> None:
    make_schedule()
    make_schedule(name="evenings", enabled=False)
    fire_due(NINE)

    assert Occasion.objects.get().outcome == "run"
    assert [alert for alert in look(NINE + timedelta(minutes=6)) if alert.schedule_id] == []


def usual(rows: Rows, *minutes: float) -> None:
    for length in minutes:
        make_run(rows, "completed", finished_at=NOON + timedelta(minutes=length))


def test_run_that_takes_over_twice_its_usual_time_is_told_while_it_goes_on(rows: Rows) -> None:
    usual(rows, 3, 4, 5)
    run = make_run(rows, "running")

    assert told(NOON + timedelta(minutes=8)) == []
    after = NOON + timedelta(minutes=8, seconds=30)
    assert told(after) == [("slow", f"Run {run.pk} of main took 8 min, usually 4 min.")]
    assert told(after) == []


def test_run_that_ended_far_too_fast_is_told(rows: Rows) -> None:
    usual(rows, 3, 4, 5)
    run = make_run(rows, "completed", finished_at=NOON + timedelta(seconds=23))

    assert told() == [("quick", f"Run {run.pk} of main ended after 23 s, usually 4 min.")]


def test_run_is_compared_with_those_of_its_kind(rows: Rows) -> None:
    usual(rows, 3, 4, 5)
    make_run(
        rows,
        "completed",
        finished_at=NOON + timedelta(seconds=23),
        configuration={"llm": "anthropic"},
    )

    assert told() == []


def test_lengths_worth_a_word() -> None:
    assert middle([10.0, 20.0]) == 0.0
    assert middle([10.0, 90.0, 20.0]) == 20.0
    assert [is_slow(*pair) for pair in ((301, 150), (300, 150), (299, 10), (900, 0))] == [
        True,
        False,
        False,
        False,
    ]
    assert [is_quick(*pair) for pair in ((5.9, 60), (6, 60), (1, 59), (0, 0))] == [
        True,
        False,
        False,
        False,
    ]


def test_proposals_that_wait_over_a_week_are_told_once_a_week(rows: Rows) -> None:
    _, second, third = (talk(rows, seq) for seq in (1, 4, 7))
    Proposal.objects.filter(pk=second.pk).update(proposed_at=NOON + timedelta(days=2))
    Proposal.objects.filter(pk=third.pk).update(state="accepted")
    after = NOON + timedelta(days=7)

    assert told(after) == []
    assert told(after + timedelta(seconds=1)) == [
        ("unreviewed", "1 proposal waits in main, the oldest since 01 January.")
    ]
    assert told(after + timedelta(days=3)) == []
    assert told(after + timedelta(days=7)) == [
        ("unreviewed", "2 proposals wait in main, the oldest since 01 January.")
    ]


def test_question_that_fails_leaves_the_others(
    rows: Rows, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(now: datetime) -> None:
        raise ValueError("a fault of ours")

    monkeypatch.setattr(looking, "FINDERS", (broken, *events.FINDERS))
    make_run(rows, "failed", finished_at=NOON)

    assert [kind for kind, _ in told()] == ["failed"]
    assert caplog.messages[0] == "Alerts could not be looked for: broken."


def test_text_of_others_becomes_one_bounded_line() -> None:
    assert events.one_line("a\r\nBcc: x\u2028\tb") == "a Bcc: x b"
    assert events.one_line("x" * 401) == "x" * 400 + " …"


def test_reader_is_mailed_what_was_ticked(rows: Rows, settings: Settings) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    people = [
        User.objects.create(username=name, email=email, is_active=is_active)
        for name, email, is_active in (
            ("ada", "ada@example.org", True),
            ("bob", "bob@example.org", True),
            ("eve", "", True),
            ("gone", "gone@example.org", False),
        )
    ]
    for person in people:
        kinds = ["late"] if person.username == "bob" else ["failed", "late"]
        AlertReader.objects.create(person=person, kinds=kinds)
    make_run(rows, "failed", finished_at=NOON)

    look(LATER)

    assert [mail.reader.person.username for mail in AlertMail.objects.all()] == ["ada"]


def test_nobody_is_mailed_without_a_server(rows: Rows, settings: Settings) -> None:
    settings.EMAIL_BACKEND = looking.NO_MAIL
    person = User.objects.create(username="ada", email="ada@example.org")
    AlertReader.objects.create(person=person, kinds=["failed"])
    make_run(rows, "failed", finished_at=NOON)

    assert len(look(LATER)) == 1
    assert AlertMail.objects.count() == 0


@pytest.mark.django_db(transaction=True)
def test_event_that_several_processes_find_at_once_is_told_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make_run(make_rows(), "failed", finished_at=NOON)
    all_found = threading.Barrier(3, timeout=30)
    tell = looking._tell

    def tell_together(event: events.Event, now: datetime) -> Alert | None:
        all_found.wait()
        return tell(event, now)

    def look_once() -> int:
        try:
            return len(look(LATER))
        finally:
            connections.close_all()

    monkeypatch.setattr(looking, "_tell", tell_together)
    with ThreadPoolExecutor(3) as threads:
        found = [thread.result() for thread in [threads.submit(look_once) for _ in range(3)]]

    assert sorted(found) == [0, 0, 1]
    assert Alert.objects.count() == 1
