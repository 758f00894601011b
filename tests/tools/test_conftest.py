"""What our pytest refuses: skips, empty parameter sets, warnings, and the network."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
CASES = {
    "passed": ("def test_a():\n    pass\n", 0, "1 passed"),
    "skipped": (
        "import pytest\n@pytest.mark.skip\ndef test_a():\n    pass\n",
        1,
        "Tests were skipped, which fails the run",
    ),
    "skipped in a test": (
        "import pytest\ndef test_a():\n    pytest.skip('no server')\n",
        1,
        "Tests were skipped, which fails the run",
    ),
    "no parameters": (
        "import pytest\n@pytest.mark.parametrize('a', [])\ndef test_a(a):\n    pass\n",
        2,
        "Empty parameter set",
    ),
    "warning": (
        "import warnings\ndef test_a():\n    warnings.warn('old', DeprecationWarning)\n",
        1,
        "DeprecationWarning: old",
    ),
    "network": (
        "import socket\ndef test_a():\n    socket.create_connection(('192.0.2.1', 80))\n",
        1,
        "SocketConnectBlockedError",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_pytest_refuses_what_would_hide_something(case: str, tmp_path: Path) -> None:
    text, exit_code, message = CASES[case]
    (tmp_path / "test_case.py").write_text(text, encoding="utf-8")
    options = ["-c", str(ROOT / "pyproject.toml"), "-p", "tests.conftest", "-p", "no:cacheprovider"]

    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, str(tmp_path / "test_case.py")],
        cwd=ROOT, capture_output=True, text=True, timeout=50, check=False,
    )  # fmt: skip

    assert done.returncode == exit_code, done.stdout
    assert message in done.stdout
