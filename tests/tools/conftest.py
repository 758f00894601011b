"""The tools run commands that are not measured: tracing them would only cost time."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def commands_are_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("COVERAGE_PROCESS_CONFIG", "COVERAGE_PROCESS_START"):
        monkeypatch.delenv(name, raising=False)
