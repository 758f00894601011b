"""The rehearsed API with a mind that keeps to our prompts, on a clock that stands still; and haste."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from engine.backends.llm.anthropic import failures
from engine.core.config import EMPTY_REST_SECONDS
from engine.loop import watch
from engine.turn import calls
from tests.anthropic_api.server import AnthropicApi, Clock
from tests.backends.talkative import talkative


@pytest.fixture
def api() -> Iterator[AnthropicApi]:
    with AnthropicApi(mind=talkative, clock=Clock(runs=False)) as server:
        yield server


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the waits of a run a twentieth of what they are: after failures, and without money."""
    monkeypatch.setattr(failures, "FIRST_WAIT_SECONDS", failures.FIRST_WAIT_SECONDS / 20)
    monkeypatch.setattr(calls, "PATIENCE_SECONDS", calls.PATIENCE_SECONDS / 20)
    monkeypatch.setattr(watch, "EMPTY_REST_SECONDS", tuple(one / 20 for one in EMPTY_REST_SECONDS))
