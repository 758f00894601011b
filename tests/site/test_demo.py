"""`manage.py demo`: a first look from nothing, and a second one that destroys nothing."""

from __future__ import annotations

import io
import re
import shutil
from pathlib import Path

import pytest
from django.contrib.auth import authenticate, get_user_model
from django.core.management import CommandError, call_command

from engine.management.commands import demo
from engine.models import Message, Run, Simulation
from engine.roster import DEMO_FOLDER
from tests.doors import make_world, runsim

pytestmark = pytest.mark.django_db(transaction=True)

KEPT = ("ferry", "kelp-farm", "lighthouse")


@pytest.fixture(autouse=True)
def small_roster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three agents of the demo's roster: a whole run of all is for `make demo`."""
    folder = tmp_path / "roster"
    shutil.copytree(DEMO_FOLDER, folder)
    (folder / "channels.csv").unlink()
    for name in ("agents.csv", "cohorts.csv"):
        path = folder / name
        header, *lines = path.read_text().splitlines()
        kept = [line for line in lines if any(slug in line for slug in KEPT)]
        path.write_text("\n".join([header, *kept]) + "\n")
    for profile in [*folder.glob("public/*.md"), *folder.glob("private/*.md")]:
        if profile.stem not in KEPT:
            profile.unlink()
    monkeypatch.setattr(demo, "DEMO_FOLDER", folder)


def show() -> str:
    out = io.StringIO()
    call_command("demo", stdout=out, stderr=io.StringIO())
    return out.getvalue()


def test_demo_makes_a_finished_run_and_a_log_in_that_works() -> None:
    told = show()
    run = Run.objects.get()
    assert (run.simulation.name, run.status, run.end_reason) == ("demo", "completed", "idle")
    assert f"Run {run.pk} of demo is completed (idle)." in told
    assert "Start the admin with `make serve`, then open http://127.0.0.1:8000/admin/" in told
    found = re.search(r"Log in as admin with the password (\S+)", told)
    assert found is not None
    user = authenticate(username="admin", password=found[1])
    assert user is not None
    assert user.is_superuser


def test_demo_shown_again_changes_nothing_and_hides_the_password() -> None:
    make_world("demo", agents=("ash", "elm"))
    assert runsim("--simulation", "demo", "--seed", "1", "--max-turns", "6").code == 0
    assert "with the password" in show()
    n_messages = Message.objects.count()
    told = show()
    assert f"Run {Run.objects.get().pk} of demo is completed (turn_limit)." in told
    assert "`manage.py runsim --simulation demo --fresh --until-idle`" in told
    assert "Log in as before" in told
    assert "with the password" not in told
    assert Message.objects.count() == n_messages > 0
    assert get_user_model()._default_manager.count() == 1


def test_demo_that_was_stopped_half_way_is_run_to_its_end() -> None:
    make_world("demo", agents=("ash", "elm"))
    assert runsim("--simulation", "demo", "--seed", "1", "--max-turns", "3").code == 0
    Run.objects.update(status="stopped", end_reason="stopped")
    told = show()
    assert Run.objects.filter(status="completed").count() == 1
    assert "is completed (idle)." in told
    assert Simulation.objects.count() == 1


def test_demo_leaves_an_installation_with_users_alone() -> None:
    make_world("demo", agents=("ash", "elm"))
    assert runsim("--simulation", "demo", "--seed", "1", "--max-turns", "1").code == 0
    get_user_model()._default_manager.create(username="ada")
    assert "Log in as before" in show()
    assert get_user_model()._default_manager.get().username == "ada"


def test_demo_whose_run_is_paused_says_how_to_go_on() -> None:
    make_world("demo", agents=("ash", "elm"))
    assert runsim("--simulation", "demo", "--max-calls", "1").code == 4
    with pytest.raises(CommandError, match="runsim --resume") as refused:
        show()
    assert refused.value.returncode == 3
