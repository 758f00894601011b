"""Runs pytest in forks of a process that has imported what all tests need, which is most of a start.

What is of the project itself is imported anew in each: it may be another copy of it.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ROOT: Final = Path(__file__).resolve().parent.parent
#: One that is missing costs time, and nothing else. Models cannot be imported before there are
#: settings.
PRELOADED: Final = (
    "pytest",
    "django.contrib.admin.options",
    "django.contrib.messages",
    "django.contrib.staticfiles.handlers",
    "django.core.mail",
    "django.core.management.commands.migrate",
    "django.db.backends.postgresql.base",
    "django.db.backends.sqlite3.base",
    "django.test",
    "django.test.utils",
    "anthropic",
    "anyio.pytest_plugin",
    "blockbuster",
    "croniter",
    "cryptography.fernet",
    "csp.middleware",
    "environ",
    "hypothesis",
    "markdown_it",
    "nh3",
    "orjson",
    "psycopg",
    "pytest_asyncio.plugin",
    "pytest_cov.plugin",
    "pytest_django.plugin",
    "pytest_randomly",
    "pytest_socket",
    "pytest_timeout",
    "rich.progress",
    "time_machine",
    "whitenoise.middleware",
    "xdist.looponfail",
    "xdist.plugin",
    "xml.etree.ElementTree",
)
_forks: Final = multiprocessing.get_context("forkserver")
_forks.set_forkserver_preload(list(PRELOADED))


def run_pytest(
    arguments: Sequence[str], *, folder: Path, environment: Mapping[str, str], seconds: float
) -> tuple[int, str]:
    """Run pytest in a folder; return its exit code and all that it printed.

    Raises TimeoutError, and kills it, when it does not end within so many seconds.
    """
    with TemporaryDirectory() as place:
        told = Path(place) / "told"
        told.touch()
        words = [*arguments, f"--basetemp={place}/base"]
        process = _forks.Process(
            target=_run, args=(words, str(folder), dict(environment), str(told))
        )
        process.start()
        process.join(seconds)
        if process.is_alive():
            process.kill()
            process.join()
            raise TimeoutError(f"pytest did not end within {seconds:g} s.")
        assert process.exitcode is not None
        return process.exitcode, told.read_text(encoding="utf-8", errors="replace")


def _run(arguments: list[str], folder: str, environment: dict[str, str], told: str) -> None:
    """Become a process that was started in `folder` with this environment; never returns."""
    os.environ.clear()
    os.environ.update(environment)
    sys.dont_write_bytecode = "PYTHONDONTWRITEBYTECODE" in environment
    os.chdir(folder)
    _forget_project()
    sys.path[:] = [folder, *(place for place in sys.path if place not in {"", str(ROOT)})]
    sys.argv[:] = ["pytest", *arguments]
    output = os.open(told, os.O_WRONLY)
    os.dup2(output, sys.stdout.fileno())
    os.dup2(output, sys.stderr.fileno())
    sys.exit(pytest.main(arguments))


def _forget_project() -> None:
    for name, module in tuple(sys.modules.items()):
        file = Path(getattr(module, "__file__", None) or "/")
        is_ours = file.is_relative_to(ROOT) and not file.is_relative_to(sys.prefix)
        if is_ours and not name.startswith("__"):
            del sys.modules[name]
