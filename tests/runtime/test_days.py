"""Days: a whole working day of the demo roster, and what a midnight renews."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from engine.core.days import local_day, midnight_after
from engine.core.records import Visibility
from tests.runtime.scripted_llm import by_phase, eager, silent
from tests.runtime.society import Society, demo_society, make_agent, make_society, offline, play

HOUR_SECONDS = 3600


def roots_by_day(society: Society, zone: str) -> dict[int, Counter[date]]:
    """Return, by author, how many public roots it wrote on each local day."""
    days: defaultdict[int, Counter[date]] = defaultdict(Counter)
    for row in society.tables.messages.values():
        message = row.message
        public = society.tables.channels[message.channel].visibility is Visibility.PUBLIC
        if public and message.root is None and message.author is not None:
            days[message.author][message.at.astimezone(ZoneInfo(zone)).date()] += 1
    return dict(days)


def test_working_day_of_the_demo_roster_keeps_its_rests_and_caps() -> None:
    society = demo_society()
    began = time.monotonic()
    played = play(
        society,
        llm=offline(latency_seconds=20.0),
        until_idle=False,
        max_minutes=8 * 60,
        turn_delay_seconds=60.0,
        scan_delay_seconds=30.0,
        post_interval_seconds=900.0,
        pair_rest_seconds=3600.0,
        daily_posts=2,
        unreviewed_proposals=3,
    )
    assert time.monotonic() - began < 30
    assert played.reason == "time_limit"
    assert len(society.tables.turns) > 100
    for agent in society.tables.agents:
        turns = [turn for turn in society.tables.turns.values() if turn.agent == agent]
        for sooner, later in pairwise(turns):
            assert sooner.finished_at is not None
            assert later.selected_at - sooner.finished_at >= timedelta(seconds=60)
    roots = roots_by_day(society, "UTC")
    assert max(count for days in roots.values() for count in days.values()) == 2


def test_chances_to_post_come_an_interval_apart() -> None:
    played = play(
        make_society(1),
        script=by_phase(silent, post=eager),
        until_idle=False,
        max_minutes=100,
        post_interval_seconds=900.0,
        daily_posts=100,
    )
    times = [row.message.at for row in played.tables.messages.values()]
    assert len(times) == 7
    assert {later - sooner for sooner, later in pairwise(times)} == {timedelta(seconds=900)}


def test_chances_that_are_let_pass_come_ever_later() -> None:
    played = play(make_society(1), script=silent, until_idle=False, max_minutes=120)
    times = [call.started_at for call in played.tables.calls.values()]
    gaps = [(later - sooner).total_seconds() for sooner, later in pairwise(times)]
    assert gaps == [300.0, 600.0, 900.0, 1200.0, 1500.0, 1500.0]


def test_chance_can_be_let_pass_unasked() -> None:
    played = play(make_society(3), post_skip_probability=1.0)
    assert (played.reason, played.llm.requests) == ("idle", [])
    assert [turn.outcome for turn in played.tables.turns.values()] == ["skipped"] * 3


@pytest.mark.parametrize(
    ("zone", "starts_at", "first_midnights"),
    [
        # Summer time begins at 02:00, so this Sunday has 23 hours.
        (
            "Europe/Berlin",
            datetime(2026, 3, 28, 12, tzinfo=UTC),
            [datetime(2026, 3, 28, 23, tzinfo=UTC), datetime(2026, 3, 29, 22, tzinfo=UTC)],
        ),
        # It ends at 03:00, so this one has 25.
        (
            "Europe/Berlin",
            datetime(2026, 10, 24, 12, tzinfo=UTC),
            [datetime(2026, 10, 24, 22, tzinfo=UTC), datetime(2026, 10, 25, 23, tzinfo=UTC)],
        ),
        # Here it begins at midnight: the day starts at 01:00.
        (
            "America/Santiago",
            datetime(2026, 9, 5, 12, tzinfo=UTC),
            [datetime(2026, 9, 6, 4, tzinfo=UTC), datetime(2026, 9, 7, 3, tzinfo=UTC)],
        ),
        # Half an hour off, and never any summer time.
        (
            "Asia/Kolkata",
            datetime(2026, 3, 2, 12, tzinfo=UTC),
            [datetime(2026, 3, 2, 18, 30, tzinfo=UTC), datetime(2026, 3, 3, 18, 30, tzinfo=UTC)],
        ),
    ],
)
def test_daily_posts_are_renewed_at_local_midnight(
    zone: str, starts_at: datetime, first_midnights: list[datetime]
) -> None:
    society = make_society(1)
    society.starts_at = starts_at
    played = play(
        society,
        script=by_phase(silent, post=eager),
        until_idle=False,
        max_minutes=40 * 60,
        daily_posts=2,
        time_zone=zone,
    )
    assert played.reason == "time_limit"
    assert sorted(roots_by_day(society, zone)[1].values()) == [2, 2, 2]
    times = [row.message.at for row in society.tables.messages.values()]
    assert [times[0], times[2], times[4]] == [starts_at, *first_midnights]


def test_midnight_lies_ahead_and_begins_a_day() -> None:
    """For every hour of two years, in a zone whose days may begin at 01:00."""
    zone = ZoneInfo("America/Santiago")
    now = datetime(2026, 1, 1, tzinfo=UTC)
    for _ in range(2 * 365 * 24):
        midnight = midnight_after(now, zone.key)
        assert timedelta(0) < midnight - now <= timedelta(hours=25)
        before = (midnight - timedelta(seconds=1)).astimezone(zone).date()
        assert midnight.astimezone(zone).date() - before == timedelta(days=1)
        assert local_day(now, zone.key) == before
        now += timedelta(seconds=HOUR_SECONDS)


def test_own_daily_limit_goes_before_the_runs() -> None:
    agents = [make_agent(1, daily_posts=1), make_agent(2, daily_posts=0), make_agent(3)]
    society = make_society(agents)
    play(society, script=by_phase(silent, post=eager), daily_posts=4)
    roots = roots_by_day(society, "UTC")
    assert {agent: sum(days.values()) for agent, days in roots.items()} == {1: 1, 3: 4}
