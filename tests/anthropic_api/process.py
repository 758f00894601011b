"""Runs the server as a process of its own, for a test that wants it outside of its own process."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path

from tests.anthropic_api.refusal import Json
from tests.anthropic_api.server import REPORT

ROOT = Path(__file__).resolve().parent.parent.parent


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiProcess:
    """A server in another process."""

    url: str
    process: subprocess.Popen[str]

    def connect(self) -> HTTPConnection:
        """Return a connection of one's own; it opens with the first request."""
        return HTTPConnection(self.url.removeprefix("http://"), timeout=30)

    def report(self) -> Json:
        """Return the ledger of the other process, as `Ledger.report` makes it."""
        connection = self.connect()
        try:
            connection.request("GET", REPORT)
            report: Json = json.loads(connection.getresponse().read())
        finally:
            connection.close()
        return report


@contextmanager
def api_process(*arguments: str) -> Iterator[ApiProcess]:
    """Start the server with the arguments of its command, and end it by closing its input."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.anthropic_api", *arguments],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        assert url, "the server did not start: its stderr says why"
        yield ApiProcess(url=url, process=process)
