"""A server for a test, on a clock that stands still until the test moves it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.anthropic_api.server import AnthropicApi, Clock


@pytest.fixture
def api() -> Iterator[AnthropicApi]:
    with AnthropicApi(clock=Clock(runs=False)) as server:
        yield server
