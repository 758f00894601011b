"""The page of a schedule: written in plain words, tried before it is saved, and looked at after."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any

import pytest
import time_machine
from django.contrib.auth.models import User
from django.urls import reverse

from engine.models import Occasion, Run, RunSchedule, Simulation
from engine.runs.firing import fire_due
from tests.site.admin_world import count_queries, list_url, page_of, person_with
from tests.site.schedule_rows import EVENING, NINE, make_schedule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.test import Client

pytestmark = pytest.mark.django_db

ADD = "admin:engine_runschedule_add"
CENT = 10**7


@pytest.fixture(autouse=True)
def _evening() -> Iterator[None]:
    """Let it be the evening before the first of December."""
    with time_machine.travel(EVENING, tick=False):
        yield


@pytest.fixture
def admin_user() -> User:
    """Stand in for pytest-django's, whose password takes a second to hash."""
    return User.objects.create(username="ada", is_staff=True, is_superuser=True)


def filled(**given: Any) -> dict[str, Any]:
    """Return what the form sends for a schedule of every day at nine in Berlin."""
    simulation, _ = Simulation.objects.get_or_create(name="main")
    return {
        "name": "mornings",
        "simulation": str(simulation.pk),
        "enabled": "on",
        "owner": "ada",
        "kind": "daily",
        "every_unit": "1",
        "times": "9:00",
        "time_zone": "Europe/Berlin",
        "first_date": "2026-11-30",
        "missed": "skip",
        "overlap": "skip",
        "until_idle": "on",
        **given,
    }


def change_of(schedule: RunSchedule) -> str:
    return reverse("admin:engine_runschedule_change", args=[schedule.pk])


def test_schedule_is_written_by_somebody_who_does_not_program(admin_client: Client) -> None:
    page = page_of(admin_client, reverse(ADD))
    assert 'value="ada"' in page
    assert '<option value="UTC" selected>' in page
    given = filled(
        kind="weekly",
        weekdays=["0", "4"],
        times="9:00, 17:30",
        llm="anthropic",
        large_model="claude-sonnet-5-5",
        max_minutes="30",
        max_usd="2.50",
        month_usd="40",
        daily_posts="5",
        last_date="2027-03-31",
    )
    page = page_of(admin_client, reverse(ADD), given)
    assert "was added successfully" in page
    assert (
        "Mornings: Every Monday and Friday at 09:00 and 17:30 (Europe/Berlin), from 30 Nov" in page
    )
    schedule = RunSchedule.objects.get()
    assert schedule.asked == {
        "llm": "anthropic",
        "large_model": "claude-sonnet-5-5",
        "max_minutes": 30.0,
        "until_idle": True,
        "daily_posts": 5,
    }
    assert (schedule.weekdays, schedule.max_nano_usd, schedule.month_nano_usd) == (
        "04",
        250 * CENT,
        4000 * CENT,
    )
    assert (schedule.owner, schedule.changed_by, schedule.last_date) == (
        "ada",
        "ada",
        date(2027, 3, 31),
    )


def test_next_five_times_are_shown_before_anything_is_saved(admin_client: Client) -> None:
    given = filled(times="2:30", first_date="2027-03-27", _preview="1")
    page = page_of(admin_client, reverse(ADD), given)
    assert "nothing is saved yet" in page
    assert "Every day at 02:30 (Europe/Berlin), from 27 March 2027." in page
    assert page.count("<li>Saturday, 27 March 2027, 02:30 (UTC+01:00)</li>") == 1
    assert "03:00 (UTC+02:00): 02:30 does not exist then, the clock jumps over it" in page
    assert page.count("March 2027, 02:30 (UTC+0") == 4
    assert 'value="2:30"' in page
    assert not RunSchedule.objects.exists()


def test_preview_of_a_change_leaves_what_is_stored(admin_client: Client) -> None:
    schedule = make_schedule()
    page = page_of(admin_client, change_of(schedule), filled(times="10:00", _preview="1"))
    assert "Tuesday, 1 December 2026, 10:00 (UTC+01:00)" in page
    assert RunSchedule.objects.get().times == "9:00"
    page = page_of(admin_client, change_of(schedule), filled(times="10:00"))
    assert "was changed successfully" in page
    assert RunSchedule.objects.get().times == "10:00"


def test_preview_of_what_cannot_be_says_why(admin_client: Client) -> None:
    page = page_of(admin_client, reverse(ADD), filled(times="soon", _preview="1"))
    assert "“soon” is no time of the day" in page
    assert "<h2>This is how it would be" not in page


@pytest.mark.parametrize(
    ("given", "field", "sentence"),
    [
        ({"times": ""}, "times", "Give at least one time of the day"),
        ({"kind": "every"}, "every_number", "Say how many minutes or hours lie between"),
        ({"kind": "weekly"}, "weekdays", "Choose at least one day of the week."),
        ({"kind": "monthly"}, "month_day", "Choose a day of the month"),
        ({"kind": "cron", "cron": "x"}, "cron", "The cron text has 1 fields"),
        ({"owner": "nobody"}, "owner", "There is no person “nobody”: write a user name."),
        ({"last_date": "2026-11-30"}, "__all__", "It would never be due again"),
        ({"small_model": "claude"}, "__all__", "The offline LLM is no model of a choice"),
        ({"kind": "yearly"}, "kind", "Select a valid choice"),
        ({"simulation": ""}, "simulation", "This field is required."),
    ],
)
def test_what_is_wrong_is_said_where_it_is(
    admin_client: Client, given: dict[str, Any], field: str, sentence: str
) -> None:
    response = admin_client.post(reverse(ADD), filled(**given))
    errors = response.context["adminform"].form.errors
    assert list(errors) == [field]
    assert errors[field][0].startswith(sentence)
    assert not RunSchedule.objects.exists()


def test_stored_schedule_is_shown_as_it_was_written(admin_client: Client) -> None:
    schedule = make_schedule(
        kind="every",
        every_minutes=120,
        month_day=31,
        weekdays="06",
        asked={"llm": "offline", "max_turns": 9, "seed": 4},
        max_nano_usd=250 * CENT,
    )
    response = admin_client.get(change_of(schedule))
    form = response.context["adminform"].form
    shown = {name: form[name].value() for name in form.fields}
    expected = {"every_number": 2, "every_unit": "60", "weekdays": ["0", "6"], "month_day": 31}
    expected |= {"llm": "offline", "max_turns": 9, "until_idle": False, "times": "9:00"}
    assert {name: shown[name] for name in expected} == expected
    given = filled(kind="every", every_number="90", every_unit="1", name="mornings")
    page_of(admin_client, change_of(schedule), given)
    schedule.refresh_from_db()
    assert (schedule.every_minutes, schedule.max_nano_usd) == (90, None)
    assert schedule.asked == {"until_idle": True, "seed": 4}


def test_page_tells_what_came_of_its_last_times(admin_client: Client) -> None:
    schedule = make_schedule(overlap="skip")
    fire_due(NINE)
    run = Run.objects.get()
    fire_due(NINE.replace(day=4))
    page = page_of(admin_client, change_of(schedule))
    assert f'<a href="/admin/engine/run/{run.pk}/change/">run {run.pk}</a>, queued' in page
    assert "skipped; earlier ones went by unseen since 2 Dec 2026, 09:00" in page
    assert f"Run {run.pk} of main is queued." in page
    page = page_of(admin_client, list_url("runschedule"))
    assert "skipped" in page


def test_broken_schedule_says_so_on_its_page_and_in_the_list(admin_client: Client) -> None:
    schedule = make_schedule()
    RunSchedule.objects.update(times="<b>soon", asked=["x"], weekdays="x")
    fire_due(NINE)
    sentence = "“&lt;b&gt;soon” is no time of the day: write it like 9:00 or 17:30."
    page = page_of(admin_client, change_of(schedule))
    assert f"<strong>It cannot be followed:</strong> {sentence}" in page
    page = page_of(admin_client, list_url("runschedule"))
    assert f"problem</span> {sentence}" in page


def test_list_says_when_each_is_due_in_few_queries(admin_client: Client) -> None:
    make_schedule()
    page = page_of(admin_client, list_url("runschedule"))
    assert "Every day at 09:00 (Europe/Berlin), from 30 November 2026." in page
    assert "Tuesday, 1 December 2026, 09:00 (UTC+01:00)" in page
    assert page.count(">on</span>") == 1
    before = count_queries(admin_client, list_url("runschedule"))
    for number in range(3):
        make_schedule(
            Simulation.objects.create(name=f"w{number}"), name=f"s{number}", enabled=False
        )
    fire_due(NINE)
    assert count_queries(admin_client, list_url("runschedule")) == before
    page = page_of(admin_client, list_url("runschedule"))
    assert page.count(">off</span>") == 3
    assert f'<a href="/admin/engine/run/{Run.objects.get().pk}/change/">run ' in page


def test_schedule_that_is_switched_off_says_so(admin_client: Client) -> None:
    schedule = make_schedule(last_date=date(2026, 12, 1))
    with time_machine.travel(NINE, tick=False):
        assert "It is not due any more." in page_of(admin_client, change_of(schedule))
        page_of(admin_client, change_of(schedule), filled(enabled=""))
    page = page_of(admin_client, change_of(schedule))
    assert "It is switched off: nothing of this happens." in page


def test_schedule_is_deleted_with_its_occasions_once_no_run_is_live(admin_client: Client) -> None:
    schedule = make_schedule()
    fire_due(NINE)
    Run.objects.update(status="running")
    url = reverse("admin:engine_runschedule_delete", args=[schedule.pk])
    page = page_of(admin_client, change_of(schedule))
    assert "It can be deleted once run" in page
    page = page_of(admin_client, url, {"post": "yes"})
    assert "of mornings is running: stop it, or wait until it is over" in page
    assert RunSchedule.objects.exists()
    Run.objects.update(status="completed")
    assert "Times that it had: 1" in page_of(admin_client, url)
    assert "was deleted successfully" in page_of(admin_client, url, {"post": "yes"})
    assert not Occasion.objects.exists()


def test_person_who_may_only_look_sees_words_and_no_form(client: Client) -> None:
    schedule = make_schedule()
    person_with(client, "view_runschedule")
    page = page_of(client, change_of(schedule))
    assert "Every day at 09:00 (Europe/Berlin), from 30 November 2026." in page
    assert "Tuesday, 1 December 2026, 09:00" in page
    assert "save nothing" not in page
    assert client.post(change_of(schedule), filled(_preview="1")).status_code == 403
    assert client.post(reverse(ADD), filled(_preview="1")).status_code == 403
    assert client.post(change_of(schedule), filled(times="10:00")).status_code == 403
    assert RunSchedule.objects.get().times == "9:00"
