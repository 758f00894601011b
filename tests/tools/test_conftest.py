"""What our pytest refuses: skips, empty parameter sets, warnings, and the network."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
PASSED = "def test_a():\n    pass\n"
SKIPPED = "import pytest\n@pytest.mark.skip\ndef test_a():\n    pass\n"
SKIPPED_INSIDE = "import pytest\ndef test_a():\n    pytest.skip('no server')\n"
NO_PARAMETERS = "import pytest\n@pytest.mark.parametrize('a', [])\ndef test_a(a):\n    pass\n"
REFUSED = """
import socket, warnings
def test_a():
    warnings.warn('old', DeprecationWarning)
def test_b():
    socket.create_connection(('192.0.2.1', 80))
"""


@pytest.mark.parametrize(
    ("text", "exit_code", "messages"),
    [
        (PASSED, 0, ["1 passed"]),
        (SKIPPED, 1, ["Tests were skipped, which fails the run"]),
        (SKIPPED_INSIDE, 1, ["Tests were skipped, which fails the run"]),
        (NO_PARAMETERS, 2, ["Empty parameter set"]),
        (REFUSED, 1, ["2 failed", "DeprecationWarning: old", "SocketConnectBlockedError"]),
    ],
)
def test_pytest_refuses_what_would_hide_something(
    text: str, exit_code: int, messages: list[str], tmp_path: Path
) -> None:
    (tmp_path / "test_case.py").write_text(text, encoding="utf-8")
    options = ["-c", str(ROOT / "pyproject.toml"), "-p", "tests.conftest", "-p", "no:cacheprovider"]

    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, str(tmp_path / "test_case.py")],
        cwd=ROOT, capture_output=True, text=True, timeout=50, check=False,
    )  # fmt: skip

    assert done.returncode == exit_code, done.stdout
    assert [message for message in messages if message not in done.stdout] == []
