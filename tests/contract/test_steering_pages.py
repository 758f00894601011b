"""The buttons of a run's page do what `manage.py simctl` does, on either database."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse
from django_q.models import OrmQ

from engine import runs
from engine.core.config import RunConfig
from engine.models import Run, RunControl
from engine.runs.end import mark_stopping
from engine.runs.progress import Silence
from engine.tasks import drive_run
from tests.doors import driver_elsewhere, make_world

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.runs import Begun

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def run() -> Run:
    """A run that waits for a worker, and goes on until somebody asks it not to."""
    return runs.request(make_world(agents=("ash", "elm")), RunConfig(seed=1), who="Ada")


@pytest.fixture
def operator() -> Client:
    return person("Olga", "view_run", "change_runcontrol")


@pytest.fixture
def begun(run: Run) -> Iterator[Begun]:
    found = runs.pick_up(run.pk)
    assert found is not None
    yield found
    found.liveness.release()


def person(name: str, *codenames: str) -> Client:
    user = User.objects.create(username=name, is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    client = Client()
    client.force_login(user)
    return client


def page_url(run: Run) -> str:
    return reverse("admin:engine_run_change", args=[run.pk])


def press(client: Client, run: Run, word: str) -> str:
    """Press a button and return the page that it leads to."""
    url = reverse("admin:engine_run_ask", args=[run.pk])
    response = client.post(url, {"word": word}, follow=True)
    assert response.status_code == 200
    return response.content.decode()


def buttons(client: Client, run: Run) -> list[str]:
    page = client.get(page_url(run)).content.decode()
    words = ("pause", "resume", "drain", "stop")
    return [word for word in words if f'name="word" value="{word}"' in page]


@pytest.mark.parametrize(
    ("word", "then", "left", "end_reason"),
    [
        ("stop", "it stops when the turns in flight are over", [], "stopped"),
        ("pause", "it pauses when the turns in flight are over", ["stop"], "pause_requested"),
        (
            "drain",
            "it starts nothing new, and stops when no thread is open",
            ["pause", "stop"],
            "stopped",
        ),
    ],
)
def test_button_is_heard_by_the_driver_and_the_second_click_changes_nothing(
    run: Run,
    begun: Begun,
    operator: Client,
    word: str,
    then: str,
    left: list[str],
    end_reason: str,
) -> None:
    assert buttons(operator, run) == ["pause", "drain", "stop"]
    assert f"Run {run.pk} is asked: {then}." in press(operator, run, word)
    control = RunControl.objects.get(run=run)
    assert (control.wish, control.asked_by) == (word, "Olga")
    assert buttons(operator, run) == left

    assert f"Nothing more was done: run {run.pk} is running." in press(operator, run, word)
    assert RunControl.objects.get(run=run).asked_at == control.asked_at
    assert [entry.change_message for entry in LogEntry.objects.all()] == [
        f"Run {run.pk} is asked: {then}."
    ]
    assert runs.drive(begun, Silence()).ending.reason == end_reason
    assert buttons(operator, run) == (["resume", "stop"] if word == "pause" else [])


def test_queued_run_is_stopped_once(run: Run, operator: Client) -> None:
    assert buttons(operator, run) == ["stop"]
    assert f"Run {run.pk} had not begun: it is stopped." in press(operator, run, "stop")
    assert f"Nothing more was done: run {run.pk} is stopped." in press(operator, run, "stop")
    assert drive_run(run.pk) == "nothing to do"


def test_paused_run_is_resumed_once_and_may_stay_paused(run: Run, operator: Client) -> None:
    RunControl.objects.filter(run=run).update(wish="pause")
    drive_run(run.pk)
    OrmQ.objects.all().delete()

    press(operator, run, "resume")
    press(operator, run, "resume")
    assert OrmQ.objects.count() == 1
    assert buttons(operator, run) == ["pause", "stop"]
    assert f"Run {run.pk} stays paused." in press(operator, run, "pause")
    assert drive_run(run.pk) == "nothing to do"


def test_stopping_run_counts_its_turns_down_without_a_button(
    run: Run, begun: Begun, operator: Client
) -> None:
    mark_stopping(run.pk, token=begun.token, n_turns=3)
    page = operator.get(page_url(run)).content.decode()
    assert "It stops when 3 turns in flight are over." in page
    assert buttons(operator, run) == []


def test_dead_run_is_ended(run: Run, begun: Begun, operator: Client) -> None:
    begun.liveness.release()
    assert "Now: dead" in operator.get(page_url(run)).content.decode()
    said = press(operator, run, "stop")
    assert f"Run {run.pk} had lost its driver: it is marked interrupted." in said
    assert Run.objects.get(pk=run.pk).status == "interrupted"


def test_stalled_run_can_be_stopped(run: Run, begun: Begun, operator: Client) -> None:
    begun.liveness.release()
    with driver_elsewhere(run, seconds=1):
        page = operator.get(page_url(run)).content.decode()
        assert "Now: stalled" in page
        assert "elsewhere:7" in page
        assert buttons(operator, run) == ["stop"]


def test_what_is_refused_is_told(run: Run, operator: Client) -> None:
    RunControl.objects.filter(run=run).update(wish="pause")
    drive_run(run.pk)
    configuration = Run.objects.get(pk=run.pk).configuration
    unpriced = configuration | {"llm": "anthropic", "small_model": "x-1", "max_nano_usd": 5}
    Run.objects.filter(pk=run.pk).update(configuration=unpriced)
    assert "X-1 has no price, so no money cap could hold" in press(operator, run, "resume")
    assert LogEntry.objects.count() == 0


def test_buttons_are_for_those_who_may(run: Run, begun: Begun) -> None:
    observer = person("Otto", "view_run")
    url = reverse("admin:engine_run_ask", args=[run.pk])
    page = observer.get(page_url(run)).content.decode()
    assert "Now: running" in page
    assert buttons(observer, run) == []
    assert observer.post(url, {"word": "stop"}).status_code == 403
    assert observer.get(url).status_code == 405
    assert person("Nora", "change_runcontrol").post(url, {"word": "stop"}).status_code == 403
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(User.objects.create(username="root", is_staff=True, is_superuser=True))
    assert strict.post(url, {"word": "stop"}).status_code == 403
    assert RunControl.objects.get(run=run).wish == "run"
