"""The rehearsed API with a mind that keeps to our prompts, on a clock that stands still."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.anthropic_api.server import AnthropicApi, Clock
from tests.backends.talkative import talkative


@pytest.fixture
def api() -> Iterator[AnthropicApi]:
    with AnthropicApi(mind=talkative, clock=Clock(runs=False)) as server:
        yield server
