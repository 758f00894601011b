"""Chance, interests and configuration."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, date, datetime

from engine.core.chance import keyed_random
from engine.core.days import local_day, midnight_after
from engine.core.interests import wanted_channels
from engine.core.records import Channel, Visibility
from tests.core.facts import agent

CHANNELS = (
    Channel(id=3, name="labs", topic="Wet benches and assays", visibility=Visibility.PUBLIC),
    Channel(id=1, name="general", topic="All", visibility=Visibility.PUBLIC),
    Channel(id=2, name="harbour", topic="Ships", visibility=Visibility.PUBLIC),
    Channel(id=4, name="board", topic="Assays", visibility=Visibility.PRIVATE),
)
ONE_DRAW = "from engine.core.chance import keyed_random; print(keyed_random(1, 'a', 2).random())"


def test_chance_depends_on_seed_and_key_alone() -> None:
    draws = [keyed_random(*key).random() for key in ((1, "a", 2), (1, "a", 3), (2, "a", 2))]
    assert len(set(draws)) == 3
    assert keyed_random(1, "a", 2).random() == draws[0]


def test_chance_is_the_same_in_every_process() -> None:
    draws = {
        subprocess.run(
            [sys.executable, "-c", ONE_DRAW],
            env={**os.environ, "PYTHONHASHSEED": salt},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for salt in ("0", "1")
    }
    assert draws == {str(keyed_random(1, "a", 2).random())}


def test_first_public_channel_is_joined_by_everybody() -> None:
    assert wanted_channels(agent(1), CHANNELS, {}) == (1,)


def test_channel_is_joined_for_a_telling_word_of_name_or_topic() -> None:
    assert wanted_channels(agent(1, interests="We ship an assay"), CHANNELS, {}) == (1, 2, 3)
    assert wanted_channels(agent(1, interests="the harbour with them"), CHANNELS, {}) == (1, 2)


def test_profile_stands_in_for_interests() -> None:
    spec = agent(1, public_profile="Benches.")
    assert wanted_channels(spec, CHANNELS, {}) == (1, 3)
    assert wanted_channels(agent(1, public_profile="Benches", interests="Ship"), CHANNELS, {}) == (
        1,
        2,
    )


def test_private_channel_is_joined_by_its_members_alone() -> None:
    members = {4: frozenset({1})}
    assert wanted_channels(agent(1), CHANNELS, members) == (1, 4)
    assert wanted_channels(agent(2, interests="assays"), CHANNELS, members) == (1, 3)


def test_zone_is_the_one_that_is_named() -> None:
    evening = datetime(2026, 7, 1, 18, tzinfo=UTC)
    assert local_day(evening, "Asia/Tokyo") == date(2026, 7, 2)
    assert midnight_after(evening, "Asia/Tokyo") == datetime(2026, 7, 2, 15, tzinfo=UTC)
    assert local_day(evening, "UTC") == date(2026, 7, 1)
    assert midnight_after(evening, "UTC") == datetime(2026, 7, 2, tzinfo=UTC)
