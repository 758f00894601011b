"""The buttons that a run shows in each state, without a database."""

from __future__ import annotations

import pytest

from engine.admin.live.steering_words import acts_in


@pytest.mark.parametrize(
    ("state", "wish", "words"),
    [
        ("queued", "run", ["stop"]),
        ("running", "run", ["pause", "drain", "stop"]),
        ("running", "drain", ["pause", "stop"]),
        ("running", "pause", ["stop"]),
        ("running", "stop", []),
        ("stopping", "stop", []),
        ("stalled", "stop", ["stop"]),
        ("dead", "run", ["stop"]),
        ("paused", "pause", ["resume", "stop"]),
        ("completed", "run", []),
        ("failed", "run", []),
    ],
)
def test_acts_are_those_that_make_sense(state: str, wish: str, words: list[str]) -> None:
    acts = acts_in(state, wish=wish, is_left_to_workers=False, is_at_cap=False)
    assert [act.word for act in acts] == words


def test_paused_run_that_is_to_go_on_may_stay_paused() -> None:
    acts = acts_in("paused", wish="run", is_left_to_workers=True, is_at_cap=False)
    assert [(act.word, act.label) for act in acts] == [
        ("pause", "Stay paused"),
        ("stop", "Stop"),
    ]


def test_run_at_its_cap_says_that_the_cap_comes_first() -> None:
    at_cap, free = (
        acts_in("paused", wish="run", is_left_to_workers=False, is_at_cap=is_at_cap)[0]
        for is_at_cap in (True, False)
    )
    assert at_cap.says == "It paused at a cap: raise that first, or it pauses again at once."
    assert "raise" not in free.says
