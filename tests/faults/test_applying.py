"""Faults of ours between a commit and the world: the rows are right, and the world is made anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from engine.models import Message, Run, Turn
from tests.doors import faulty_run, runsim, told
from tests.faults.society import (
    n_groups,
    see_it_stopped,
    see_laws_kept,
    stopped,
    talkative_world,
    wait_for_messages,
)

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(600)]

REBUILT = "the world is rebuilt from the database"


def test_run_goes_on_after_two_groups_in_a_row_could_not_be_applied(tmp_path: Path) -> None:
    talkative_world()
    with faulty_run("apply=3", "--seed", "3", "--json") as process:
        wait_for_messages(30)
        left = stopped(process)
    see_it_stopped(left)
    assert left.err.count(REBUILT) == 2
    see_laws_kept(tmp_path)


def test_world_that_cannot_be_rebuilt_ends_the_run_and_the_next_goes_on(tmp_path: Path) -> None:
    talkative_world()
    with faulty_run("apply=3,rebuild=1", "--seed", "3", "--json") as process:
        left = told(process)
    assert (left.code, left.summary["status"]) == (1, "failed")
    sentence = "Nothing can be stored any more: the world cannot be rebuilt"
    assert Run.objects.get().detail == sentence
    assert left.err.splitlines()[-1] == sentence
    assert not Turn.objects.filter(outcome="running").exists()
    n_messages, n_stored = Message.objects.count(), n_groups()
    assert runsim("--seed", "1", "--max-turns", "6", "--json").code == 0
    assert Message.objects.count() > n_messages
    assert n_groups() > n_stored
    see_laws_kept(tmp_path)
