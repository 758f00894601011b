"""Settings of a simulation, the texts that a database takes, and the shape of a gate."""

from __future__ import annotations

import pytest

from engine.core.gate import Gate
from engine.core.settings import SETTINGS, RefusedSetting, checked, configuration, default_of
from engine.core.texts import is_storable, storable
from tests.core.facts import topology


def test_configuration_of_nothing_is_the_defaults_of_the_offline_llm() -> None:
    made = configuration({})
    assert (made.active_thread_threshold, made.concurrent_turns) == (3, 3)
    assert (made.max_llm_calls_in_flight, made.calls_per_window) == (12, None)
    assert (made.scan_delay_seconds, made.post_interval_seconds) == (0.0, 0.0)
    assert made.pair_rest_seconds == 0.0


def test_model_that_takes_time_has_defaults_of_its_own() -> None:
    made = configuration({}, llm="anthropic")
    assert (made.scan_delay_seconds, made.post_interval_seconds) == (30.0, 900.0)
    assert made.pair_rest_seconds == 3600.0


def test_slots_follow_the_seats_and_calls_follow_the_slots() -> None:
    made = configuration({"active_thread_threshold": 5})
    assert (made.concurrent_turns, made.max_llm_calls_in_flight) == (5, 20)
    made = configuration({"concurrent_turns": 8, "max_llm_calls_in_flight": 2}, seed=4)
    assert (made.concurrent_turns, made.max_llm_calls_in_flight, made.seed) == (8, 2, 4)
    assert configuration({"concurrent_turns": None}).concurrent_turns == 3


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("turn_delay_seconds", 5, 5.0),
        ("concurrent_turns", 4.0, 4),
        ("calls_per_window", None, None),
    ],
)
def test_setting_is_returned_as_its_kind(name: str, value: object, expected: object) -> None:
    found = checked(name, value)
    assert (found, type(found)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("turn_delay_seconds", None, "turn_delay_seconds is None: give a number."),
        ("turn_delay_seconds", "5", "turn_delay_seconds is '5': give a number."),
        ("concurrent_turns", True, "concurrent_turns is True: give a number."),
        ("concurrent_turns", 2.5, "concurrent_turns is 2.5: give a whole number."),
        ("concurrent_turns", 0, "concurrent_turns is 0: give a number from 1 to 500."),
        ("concurrent_turns", 1e9, "concurrent_turns is 1e+09: give a number from 1 to 500."),
        (
            "concurrent_turns",
            float("nan"),
            "concurrent_turns is nan: give a number from 1 to 500.",
        ),
    ],
)
def test_setting_that_cannot_be_used_is_refused(name: str, value: object, sentence: str) -> None:
    with pytest.raises(RefusedSetting) as caught:
        checked(name, value)
    assert str(caught.value) == sentence


def test_unknown_setting_is_refused_with_those_there_are() -> None:
    with pytest.raises(RefusedSetting, match=r"There is no setting speed; there are active_th"):
        configuration({"speed": 3})


def test_every_default_is_within_its_bounds() -> None:
    for setting in SETTINGS:
        for llm in ("offline", "anthropic"):
            value = default_of(setting, llm=llm)
            assert value is None or checked(setting.name, value) == value


@pytest.mark.parametrize(
    ("text", "stored"),
    [("Grüße 🌱", "Grüße 🌱"), ("a\x00b", "a\ufffdb"), ("a\ud800b\udfff", "a\ufffdb\ufffd")],
)
def test_text_is_stored_without_what_a_database_refuses(text: str, stored: str) -> None:
    assert storable(text) == stored
    assert is_storable(text) is (text == stored)
    assert is_storable(stored)


def test_topology_of_cohorts_has_the_shape_of_a_gate() -> None:
    asked = [name for name in vars(Gate) if not name.startswith("_")]
    assert "permits" in asked
    made = topology((1, 2))
    assert [name for name in asked if not hasattr(made, name)] == []
