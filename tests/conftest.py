"""What every test has: a database file of its own, and no silent skips."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from django.db import connections
from hypothesis import Phase
from hypothesis import settings as hypothesis_settings

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter

# Started in the background of a shell, a process ignores Ctrl-C, and so do those that it starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

CONTRACT_FOLDER = Path(__file__).parent / "contract"
BROWSER_FOLDER = Path(__file__).parent / "browser"

# Examples are timed by pytest-timeout; a deadline per example fails on a busy machine.
hypothesis_settings.register_profile("project", deadline=None, print_blob=True)
hypothesis_settings.load_profile("project")
hypothesis_settings.register_profile("soak", deadline=None, print_blob=True, max_examples=2000)
# `make guards` only asks whether a test fails, not for the smallest example.
hypothesis_settings.register_profile(
    "guards",
    deadline=None,
    database=None,
    phases=(Phase.explicit, Phase.generate),
)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave the browser's tests to `make test-browser`: its loop would run in the others' thread."""
    named = any(BROWSER_FOLDER.name in Path(arg.split("::")[0]).parts for arg in config.args)
    return True if collection_path == BROWSER_FOLDER and not named else None


@pytest.fixture(scope="session")
def django_db_modify_db_settings(
    django_db_modify_db_settings_parallel_suffix: None, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Put SQLite's test database into a fresh folder: threads cannot share one in memory, and the
    leftover WAL of a killed session would be replayed into a new file of the same name."""
    settings = connections["default"].settings_dict
    if settings["ENGINE"].endswith("sqlite3"):
        settings["TEST"]["NAME"] = str(tmp_path_factory.mktemp("database") / "test.sqlite3")


@pytest.fixture(scope="session")
def is_soak(pytestconfig: pytest.Config) -> bool:
    """Tell whether this is `make soak`, where a test takes the time that it needs."""
    return bool(pytestconfig.getoption("--hypothesis-profile") == "soak")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The contract tests run on both databases, by their place."""
    for item in items:
        if CONTRACT_FOLDER in item.path.parents:
            item.add_marker(pytest.mark.both_databases)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """A skipped test fails the run: what was not tested must not look like what passed."""
    reporter: TerminalReporter | None = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and reporter.stats.get("skipped"):
        reporter.write_line(
            "\nTests were skipped, which fails the run: make them run, or delete them."
        )
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
