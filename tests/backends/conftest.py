"""The rehearsed API with a mind that keeps to our prompts, on a clock that stands still; and haste."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from engine.backends.llm.anthropic import failures
from engine.core.config import EMPTY_REST_SECONDS
from engine.loop import watch
from engine.turn import calls
from tests.anthropic_api.server import AnthropicApi, Clock
from tests.backends.talkative import talkative

if TYPE_CHECKING:
    from pytest_django.fixtures import Settings


@pytest.fixture
def api() -> Iterator[AnthropicApi]:
    with AnthropicApi(mind=talkative, clock=Clock(runs=False)) as server:
        yield server


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> None:
    """Shorten waits: after failures, without money, and for what other processes do."""
    settings.SIM_PULSE_SECONDS = 0.05
    monkeypatch.setattr(failures, "FIRST_WAIT_SECONDS", failures.FIRST_WAIT_SECONDS / 20)
    monkeypatch.setattr(calls, "PATIENCE_SECONDS", calls.PATIENCE_SECONDS / 20)
    monkeypatch.setattr(watch, "EMPTY_REST_SECONDS", tuple(one / 20 for one in EMPTY_REST_SECONDS))
