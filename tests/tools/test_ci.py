"""The last line of `.ci/run`, and what makes it fail; `make` is played by a script."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
GREEN = "===== 12 passed in 1.20s ====="
POSTGRESQL = "===== 3 passed, 9 deselected in 61.20s (0:01:01) ====="
GUARDS = "guards: 2 passed, 0 failed"


def run_ci(folder: Path, output: dict[str, list[str]], code: int = 0) -> tuple[int, str]:
    make = folder / "make"
    cases = "".join(
        f"{target}) printf '%s\\n' {' '.join(repr(line) for line in lines)} ;;\n"
        for target, lines in output.items()
    )
    make.write_text(f'#!/bin/sh\ncase "$1" in\n{cases}esac\nexit {code}\n', encoding="utf-8")
    make.chmod(0o755)
    done = subprocess.run(
        [str(ROOT / ".ci" / "run")],
        env=os.environ | {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True, text=True, timeout=50, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout.strip().splitlines()[-1]


def test_ci_ends_with_the_sum_of_what_passed(tmp_path: Path) -> None:
    output = {
        "check": ["fine"],
        "test": [GREEN, POSTGRESQL],
        "test-browser": [GREEN],
        "guards": [GUARDS],
    }

    assert run_ci(tmp_path, output) == (0, "29 passed, 0 failed")


@pytest.mark.parametrize(
    ("tests", "guards"),
    [
        ("===== 12 passed, 1 skipped in 1.20s =====", GUARDS),
        ("===== 1 failed, 12 passed in 1.20s =====", GUARDS),
        ("===== 12 passed, 1 error in 1.20s =====", GUARDS),
        (GREEN, "guards: 2 passed, 1 failed"),
    ],
)
def test_ci_fails_by_what_was_skipped_or_failed(tmp_path: Path, tests: str, guards: str) -> None:
    code, _ = run_ci(tmp_path, {"test": [tests], "guards": [guards]})

    assert code == 1


def test_ci_fails_when_a_step_fails_or_says_nothing(tmp_path: Path) -> None:
    assert run_ci(tmp_path, {"check": ["broken"]}, code=2) == (2, "broken")
    assert run_ci(tmp_path, {"check": ["fine"]}) == (1, "fine")
