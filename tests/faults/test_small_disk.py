"""A real disk that is filled by a run; collected where this process may mount one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.db import connection

from engine.models import Run
from tests.faults.small_disk import messages_on, on_disk, small_disk
from tests.faults.society import (
    see_it_find_no_space,
    see_laws_kept,
    see_the_next_go_on,
    talkative_world,
)

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(600)]

#: Bytes that are enough for a few groups (of the messages alone on PostgreSQL), and for all.
LITTLE, MUCH = (16 << 10 if connection.vendor == "postgresql" else 256 << 10), 64 << 20


def test_run_on_a_disk_that_is_full_fails_and_the_next_goes_on(tmp_path: Path) -> None:
    """The run's own end may find no space, too: then its row says `interrupted` later."""
    put = on_disk if connection.vendor == "sqlite" else messages_on
    with small_disk(MUCH) as disk, put(disk):
        talkative_world()
        disk.resize(disk.used() + LITTLE)
        see_it_find_no_space("none")
        see_laws_kept(tmp_path / "full")
        disk.resize(MUCH)
        see_the_next_go_on()
        assert Run.objects.order_by("pk")[0].status in {"failed", "interrupted"}
        see_laws_kept(tmp_path / "goes-on")
