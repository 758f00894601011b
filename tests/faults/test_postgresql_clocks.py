"""Hosts whose wall clocks are ten minutes apart: leases end by the database's clock alone."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any

import pytest

from engine.models import LlmCall, Message, Run, RunLease
from tests.doors import faulty_run, told, wait_until
from tests.faults.society import (
    SHORT_LEASE,
    lease_has_ended,
    see_it_stopped,
    see_laws_kept,
    stopped,
    talkative_world,
    wait_for_messages,
)

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(600)]

EARLY, LATE = "clock=-600", "clock=600"


def stamps() -> list[Any]:
    return list(Message.objects.order_by("seq").values_list("committed_at", flat=True))


def test_lease_is_not_ended_by_a_clock_that_is_ahead() -> None:
    talkative_world()
    with faulty_run(EARLY, "--seed", "3", "--json") as process:
        wait_for_messages(4)
        with faulty_run(LATE, "--json") as other:
            refused = told(other)
        assert (refused.code, refused.out) == (3, "")
        assert f":{process.pid}" in refused.err
        see_it_stopped(stopped(process))
    assert Run.objects.count() == RunLease.objects.get().token == 1


def test_lease_is_not_kept_by_a_clock_that_is_behind(tmp_path: Path) -> None:
    """The later run's clock is twenty minutes behind the first one's; its stamps are not."""
    talkative_world()
    with faulty_run(LATE, "--seed", "3", "--json", **SHORT_LEASE) as process:
        wait_for_messages(12)
        process.send_signal(signal.SIGSTOP)
        wait_until(lease_has_ended)
        n_calls = LlmCall.objects.count()
        with faulty_run(EARLY, "--seed", "4", "--json") as other:
            wait_for_messages(12)
            process.send_signal(signal.SIGCONT)
            late = told(process)
            wait_for_messages(4)
            left = stopped(other)
    assert (late.code, left.code, left.summary["status"]) == (1, 0, "stopped")
    first, second = Run.objects.order_by("pk")
    assert (first.status, second.status) == ("interrupted", "stopped")
    assert LlmCall.objects.filter(run=first).count() == n_calls
    assert stamps() == sorted(stamps())
    see_laws_kept(tmp_path)
