"""A disk that is full: the run fails with one sentence, and nothing is half written.

The limit is one of the database's own, which it reports as it reports a full disk; where a process
may mount disks, `test_small_disk` fills a real one.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from django.db import OperationalError, connection

from engine.core.errors import DiskFull
from engine.models import Message, Run
from engine.store.database import session
from tests.faults.society import (
    run_sql,
    see_it_find_no_space,
    see_laws_kept,
    see_the_next_go_on,
    talkative_world,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(600)]

#: What PostgreSQL itself reports when a file cannot grow, from the 20th message on.
TRIGGER = """
CREATE FUNCTION no_space() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF (SELECT count(*) FROM engine_message) >= 20 THEN
        RAISE EXCEPTION USING ERRCODE = 'disk_full', MESSAGE = 'could not extend file';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER no_space BEFORE INSERT ON engine_message EXECUTE FUNCTION no_space();
"""


@contextmanager
def limited() -> Iterator[str]:
    """Give the fault of a database that may not grow; it may again at the end."""
    if connection.vendor == "sqlite":
        run_sql("VACUUM")  # what earlier tests have left free would be space, too
        yield "pages=8"
        return
    run_sql(TRIGGER)
    try:
        yield "none"
    finally:
        run_sql("DROP FUNCTION no_space CASCADE")


def test_full_disk_is_told_from_what_passes_by_itself() -> None:
    fill = "DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = 'disk_full'; END $$"
    if connection.vendor == "sqlite":
        run_sql("VACUUM")  # pages that other tests have left free would do
        run_sql("PRAGMA max_page_count = 1")  # the least that it takes: what is there
        fill = "CREATE TABLE filler AS SELECT zeroblob(10000000)"
    with pytest.raises(OperationalError) as full:
        run_sql(fill)
    connection.close()
    assert not session.passes(full.value)
    assert isinstance(session.lasting(full.value), DiskFull)


def test_run_that_finds_no_space_fails_in_one_sentence_and_the_next_goes_on(
    tmp_path: Path,
) -> None:
    talkative_world()
    with limited() as fault:
        see_it_find_no_space(fault)
        assert Run.objects.get().status == "failed"
        assert Message.objects.count() >= 4
        see_laws_kept(tmp_path / "full")
    see_the_next_go_on()
    see_laws_kept(tmp_path / "goes-on")
