"""What a line of the log shows: what it is about, and never a secret."""

from __future__ import annotations

import json
import logging
import sys

from engine.core.logged import logged_about
from simsite.logs import JsonLines, Lines

SECRETS = ("s3cr/t pass", "", "short")


def record(message: str, *values: object, failed: bool = False) -> logging.LogRecord:
    made = logging.LogRecord(
        "engine.loop",
        logging.WARNING,
        __file__,
        1,
        message,
        values,
        sys.exc_info() if failed else None,
    )
    made.created = 1_767_268_800.5
    return made


def connect(url: str) -> None:
    raise RuntimeError(url)


def test_json_line_is_one_object_with_run_turn_and_agent() -> None:
    with logged_about(run=7), logged_about(turn=12, agent="ada-lab"):
        line = JsonLines().format(record("two\nlines of %s", "é"))

    assert "\n" not in line
    told = json.loads(line)
    assert told.pop("process") > 0
    assert told == {
        "time": "2026-01-01T12:00:00.500+00:00",
        "level": "WARNING",
        "logger": "engine.loop",
        "run": 7,
        "turn": 12,
        "agent": "ada-lab",
        "message": "two\nlines of é",
    }


def test_what_a_line_is_about_ends_with_its_part() -> None:
    with logged_about(run=7):
        with logged_about(turn=12):
            pass
        inside = Lines().format(record("said"))
    outside = Lines().format(record("said"))

    assert inside.endswith("WARNING engine.loop: said [run=7]")
    assert outside.endswith("WARNING engine.loop: said")


def test_secret_is_never_written_however_it_is_spelt() -> None:
    try:
        connect("postgres://sim:s3cr%2Ft%20pass@db/sim")
    except RuntimeError:
        failed = record("it was %s", "s3cr/t pass", failed=True)
    lines = [Lines(SECRETS).format(failed), JsonLines(SECRETS).format(failed)]

    for line in lines:
        assert "s3cr" not in line
        assert "it was [secret]" in line
        assert "RuntimeError: postgres://sim:[secret]@db/sim" in line
        assert "RuntimeError" in line
    assert "s3cr/t pass" in Lines().format(failed)


def test_word_too_short_to_be_a_secret_is_left() -> None:
    assert Lines(SECRETS).format(record("a short word")).endswith("a short word")
