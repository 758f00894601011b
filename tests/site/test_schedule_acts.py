"""What a person does with schedules beside editing them: run now, switch, take over, foresee."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.urls import reverse
from django.utils import timezone

from engine.admin.schedule.money import month_forecast
from engine.models import LlmCall, Occasion, Run, RunSchedule
from tests.doors import make_world
from tests.site.admin_world import Rows, list_url, make_rows, page_of, person_with, take_turn
from tests.site.schedule_rows import make_schedule

if TYPE_CHECKING:
    from django.test import Client

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin_user() -> User:
    """Stand in for pytest-django's, whose password takes a second to hash."""
    return User.objects.create(username="admin", is_staff=True, is_superuser=True)


@pytest.fixture
def schedule() -> RunSchedule:
    return make_schedule(make_world())


def now_url(schedule: RunSchedule) -> str:
    return reverse("admin:engine_runschedule_now", args=[schedule.pk])


def act(client: Client, action: str, *chosen: RunSchedule) -> str:
    form = {"action": action, "_selected_action": [one.pk for one in chosen]}
    return client.post(list_url("runschedule"), form, follow=True).content.decode()


def test_run_now_begins_one_run_whatever_the_clicks(
    admin_client: Client, schedule: RunSchedule
) -> None:
    page = admin_client.post(now_url(schedule), follow=True).content.decode()
    run = Run.objects.get()
    assert f"Run {run.pk} is asked for." in page
    occasion = Occasion.objects.get()
    assert (occasion.outcome, occasion.run, occasion.reason) == ("run", run, "Asked for by admin.")
    assert LogEntry.objects.filter(change_message=f"Run {run.pk} asked for.").exists()

    again = admin_client.post(now_url(schedule), follow=True).content.decode()
    assert "No run was begun. Asked for by admin." in again
    assert Run.objects.count() == 1


def test_run_now_is_for_who_may_and_by_post_alone(client: Client, schedule: RunSchedule) -> None:
    person_with(client, "view_runschedule")
    assert client.post(now_url(schedule)).status_code == 403
    assert client.get(now_url(schedule)).status_code == 405
    assert not Run.objects.exists()


def test_schedules_are_switched_and_one_that_cannot_go_on_says_so(
    admin_client: Client, schedule: RunSchedule
) -> None:
    over = make_schedule(schedule.simulation, name="over")
    assert "Mornings is switched off." in act(admin_client, "switch_off", schedule, over)
    assert not RunSchedule.objects.filter(enabled=True).exists()
    RunSchedule.objects.filter(pk=over.pk).update(last_date=over.first_date)
    page = act(admin_client, "switch_on", schedule, over)
    assert "Mornings is switched on." in page
    assert "Over: It would never be due again" in page
    assert list(RunSchedule.objects.filter(enabled=True)) == [schedule]


def test_owner_who_has_left_is_told_and_replaced(
    admin_client: Client, schedule: RunSchedule
) -> None:
    assert "ada, who has left" in page_of(admin_client, list_url("runschedule"))
    act(admin_client, "take_over", schedule)
    schedule.refresh_from_db()
    assert schedule.owner == "admin"
    assert "who has left" not in page_of(admin_client, list_url("runschedule"))


def test_money_of_a_month_is_foreseen_by_its_last_runs(admin_client: Client) -> None:
    rows: Rows = make_rows()
    schedule = make_schedule(rows.simulation, month_nano_usd=10**9)
    assert "known after the first" in month_forecast(schedule)
    take_turn(rows, 1)
    LlmCall.objects.update(cost_nano_usd=20_000_000)
    Occasion.objects.create(
        schedule=schedule, intended_at=timezone.now(), decided_at=timezone.now(), outcome="run", run=rows.run
    )  # fmt: skip
    told = month_forecast(schedule)
    assert "30 times in the next 30 days, at about $0.0200 a run: about $0.6000" in told
    assert "no more than $1.0000 in a calendar month" in told
    page = page_of(admin_client, reverse("admin:engine_runschedule_change", args=[schedule.pk]))
    assert "about $0.6000" in page
    assert "Run it now" in page
    schedule.enabled = False
    assert month_forecast(schedule) == ""
    schedule.enabled, schedule.times = True, "nonsense"
    assert month_forecast(schedule) == ""
