"""The codec: rows to lines and back, and what is refused."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta, timezone

import pytest

from engine.export.codec import FormatError, decode_row, encode_row, time_text
from engine.export.schema import (
    FILES,
    AgentRow,
    AgentVersionRow,
    ChangeRow,
    LlmCallRow,
    NanoUsd,
    TopologyRow,
)
from tests.exports import clean_export

AT = datetime(2030, 1, 2, 9, 30, tzinfo=UTC)
AGENT = AgentRow(
    agent="elm",
    bot_name="ElmBot",
    represents="Elm Lab",
    status="active",
    versions=(
        AgentVersionRow(
            version=1,
            at=AT,
            public_profile="Bäume",
            private_instructions="",
            limits={"daily_posts": 2},
        ),
    ),
)
CALL = LlmCallRow(
    run=1,
    turn=7,
    agent="elm",
    agent_version=1,
    phase="reply",
    thread=None,
    model="offline",
    prompt_version="1",
    attempt=1,
    input_tokens=10,
    output_tokens=None,
    cache_read_tokens=0,
    cache_write_tokens=0,
    reserved_usd=NanoUsd(123_456_789),
    cost_usd=NanoUsd(1),
    latency_seconds=0.25,
    finish_reason="stop",
    error=None,
)
CHANGE = ChangeRow(version=None, at=AT, who="outside", action="add", cohort="c", agent=None)


def test_files_are_those_of_an_export_and_sorted_by_fields_of_their_rows() -> None:
    assert [file.name for file in FILES] == list(clean_export())
    for file in FILES:
        assert set(file.key) <= {field.name for field in fields(file.row)}


def changed(row: AgentRow | LlmCallRow | ChangeRow, **fields: object) -> str:
    return json.dumps(json.loads(encode_row(row)) | fields)


def test_encode_row_writes_utc_times_usd_and_plain_text() -> None:
    line = json.loads(encode_row(CALL))

    assert (line["reserved_usd"], line["cost_usd"]) == (0.123456789, 1e-09)
    assert json.loads(encode_row(CHANGE))["at"] == "2030-01-02T09:30:00.000000+00:00"
    assert "Bäume".encode() in encode_row(AGENT)
    assert time_text(AT) == "2030-01-02T09:30:00.000000+00:00"


@pytest.mark.parametrize("hours", [0, 5])
def test_encode_row_writes_every_moment_in_the_same_form(hours: int) -> None:
    """Also those that the library writes by itself."""
    zone = UTC if hours == 0 else timezone(timedelta(hours=hours))
    moment = datetime(2030, 1, 2, 9 + hours, 30, 0, 42, zone)
    line = json.loads(encode_row(replace(CHANGE, at=moment)))
    assert line["at"] == time_text(moment) == "2030-01-02T09:30:00.000042+00:00"


@pytest.mark.parametrize("row", [AGENT, CALL, CHANGE])
def test_decode_row_returns_what_was_encoded(row: AgentRow | LlmCallRow | ChangeRow) -> None:
    assert decode_row(type(row), encode_row(row).decode()) == row


def test_decode_row_reads_lists_by_name_and_fills_defaults() -> None:
    line = (
        '{"version":3,"at":"2030-01-02T10:30:00+01:00","run":1,"policy":"open",'
        '"verdict":"in_force","cohorts":{"b":["elm","fir"],"a":[]}}'
    )
    row = decode_row(TopologyRow, line)

    assert row.at == AT
    assert dict(row.cohorts) == {"a": (), "b": ("elm", "fir")}
    version = '{"version":1,"at":"2030-01-02T09:30:00Z","public_profile":"",'
    agent = (
        '{"agent":"elm","bot_name":"E","represents":"","status":"active","versions":['
        + version
        + '"private_instructions":""}]}'
    )
    assert dict(decode_row(AgentRow, agent).versions[0].limits) == {}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("1" * 5000, "not JSON"),
        ('{"a": NaN}', "NaN is no number"),
        ("[]", "is not an object"),
        ("{}", "field agent is missing"),
        (changed(CALL, colour=1), "field colour is not of the format"),
        (changed(CALL, run="1"), "field run: '1' is not a whole number"),
        (changed(CALL, run=True), "field run: True is not a whole number"),
        (changed(CALL, phase="dream"), "field phase: 'dream' is not one of remember"),
        (changed(CALL, phase=3), "field phase: 3 is not one of"),
        (changed(CALL, model=None), "field model: None is not a text"),
        (changed(CALL, latency_seconds="1"), "field latency_seconds: '1' is not a number"),
        (changed(CALL, reserved_usd=1e-10), "finer than a nano-USD"),
        (changed(CALL, latency_seconds=10**400), "field latency_seconds: the number is out of"),
    ],
)
def test_decode_row_says_what_does_not_fit(line: str, reason: str) -> None:
    with pytest.raises(FormatError) as caught:
        decode_row(LlmCallRow, line)
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("at", "reason"),
    [("today", "not an ISO 8601 time"), ("2030-01-02T09:30:00", "names no time zone")],
)
def test_decode_row_refuses_times_it_cannot_place(at: str, reason: str) -> None:
    with pytest.raises(FormatError) as caught:
        decode_row(ChangeRow, changed(CHANGE, at=at))
    assert reason in str(caught.value)
