"""django-q2's pages: nobody but a superuser sees them, and nothing but our tasks is taken."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth.models import Permission, User
from django.urls import reverse
from django_q.models import OrmQ, Schedule, Success

from engine.admin.schedule.queue import TASKS
from tests.site.admin_world import page_of

if TYPE_CHECKING:
    from django.test import Client

pytestmark = pytest.mark.django_db

ADD = "admin:django_q_schedule_add"
PAGES = ("schedule", "success", "failure", "ormq")


@pytest.fixture
def admin_user() -> User:
    """Stand in for pytest-django's, whose password takes a second to hash."""
    return User.objects.create(username="ada", is_staff=True, is_superuser=True)


def filled(**given: Any) -> dict[str, Any]:
    return {
        "name": "again",
        "func": TASKS[0],
        "schedule_type": "D",
        "repeats": "-1",
        "next_run_0": "2026-12-01",
        "next_run_1": "09:00",
        **given,
    }


def test_schedule_of_the_queue_calls_one_of_our_tasks(admin_client: Client) -> None:
    given = filled(args="1, 'a'", kwargs="{'x': [1, None]}")
    assert "was added successfully" in page_of(admin_client, reverse(ADD), given)
    assert Schedule.objects.get().func == TASKS[0]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"func": "os.system"}, "Select a valid choice."),
        ({"args": "'id > x"}, "Arguments cannot be read: write them like 1"),
        ({"args": "__import__('os')"}, "Arguments cannot be read: write them like 1"),
        ({"args": "(" * 5000}, "Arguments cannot be read: write them like 1"),
        ({"kwargs": "x=1"}, "Keyword arguments cannot be read: write them like"),
        ({"kwargs": "[1]"}, "Keyword arguments are names with values, like"),
    ],
)
def test_row_that_would_stop_the_queue_is_refused(
    admin_client: Client, given: dict[str, str], sentence: str
) -> None:
    assert sentence in page_of(admin_client, reverse(ADD), filled(**given))
    assert not Schedule.objects.exists()


def test_hook_is_not_for_the_page(admin_client: Client) -> None:
    page_of(admin_client, reverse(ADD), filled(hook="os.system", intended_date_kwarg="x"))
    row = Schedule.objects.get()
    assert (row.hook, row.intended_date_kwarg) == (None, None)


def test_pages_of_the_queue_are_shown_to_a_superuser(admin_client: Client) -> None:
    for name in PAGES:
        page_of(admin_client, reverse(f"admin:django_q_{name}_changelist"))
    assert "Scheduled tasks" in page_of(admin_client, reverse("admin:index"))


def test_pages_of_the_queue_are_for_superusers_alone(client: Client) -> None:
    user = User.objects.create(username="bob", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(content_type__app_label="django_q"))
    client.force_login(user)
    for name in PAGES:
        assert client.get(reverse(f"admin:django_q_{name}_changelist")).status_code == 403
    assert client.post(reverse(ADD), filled()).status_code == 403
    assert "Scheduled tasks" not in page_of(client, reverse("admin:index"))


def test_tasks_are_not_sent_again_by_their_rows(admin_client: Client) -> None:
    for name in ("success", "failure"):
        url = reverse(f"admin:django_q_{name}_changelist")
        admin_client.post(url, {"action": "resubmit_task", "_selected_action": ["1"]})
    assert not OrmQ.objects.exists()
    assert not Success.objects.exists()


def test_messages_are_not_written_by_hand(admin_client: Client) -> None:
    message = OrmQ.objects.create(key="runs", payload="x")
    url = reverse("admin:django_q_ormq_change", args=[message.pk])
    assert admin_client.post(url, {"key": "other"}).status_code == 403
    assert "runs" in page_of(admin_client, url)
    page_of(admin_client, reverse("admin:django_q_ormq_delete", args=[message.pk]), {"post": "yes"})
    assert not OrmQ.objects.exists()
