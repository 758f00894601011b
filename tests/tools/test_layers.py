"""The import contracts hold, name every module they are about, and report a planted violation."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
PURE = ("loop", "turn", "phases", "prompts", "ports", "core")
NO_BACKENDS = ("management", "admin", "tasks", "runs", "models", "store")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for name in ("engine", "cohorts", "simsite"):
        shutil.copytree(ROOT / name, tmp_path / name)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-logo", "--no-cache"]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=50, check=False
    )


def contract(name: str) -> dict[str, Any]:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts: list[dict[str, Any]] = config["tool"]["importlinter"]["contracts"]
    return next(found for found in contracts if found["name"] == name)


def existing(names: tuple[str, ...]) -> set[str]:
    engine = ROOT / "engine"
    found = [name for name in names if (engine / name).is_dir() or (engine / f"{name}.py").exists()]
    return {f"engine.{name}" for name in found}


def test_layers_hold(copy: Path) -> None:
    done = lint(copy)

    assert done.returncode == 0, done.stdout
    assert " 0 broken." in done.stdout


@pytest.mark.parametrize(
    ("file", "line", "broken"),
    [
        ("engine/core/__init__.py", "import engine.ports", "The layers of engine"),
        ("engine/new_module.py", "", "The layers of engine"),
        (
            "engine/ports/__init__.py",
            "import django",
            "From the loop down, the standard library only",
        ),
        ("cohorts/rules.py", "import django.db", "The rules of the gate, too"),
        (
            "engine/backends/__init__.py",
            "from django.conf import settings",
            "Backends know no ORM and read no settings",
        ),
        ("engine/store/__init__.py", "import engine.backends", "Only build names a backend"),
        ("cohorts/__init__.py", "import engine.core", "Cohorts know no engine"),
        (
            "engine/models/__init__.py",
            "import simsite.keys",
            "Settings are given by Django, not imported",
        ),
    ],
)
def test_layers_report_a_planted_violation(copy: Path, file: str, line: str, broken: str) -> None:
    with (copy / file).open("a", encoding="utf-8") as source:
        source.write(f"\n{line}\n")

    done = lint(copy)

    assert done.returncode == 1
    assert f"{broken} BROKEN" in done.stdout


def test_layers_name_every_module_that_they_are_about() -> None:
    pure = set(contract("From the loop down, the standard library only")["source_modules"])
    outside = set(contract("Only build names a backend")["source_modules"])

    assert existing(PURE) <= pure
    assert existing(NO_BACKENDS) <= outside
