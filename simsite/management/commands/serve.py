"""`manage.py serve`: everything that a machine of one's own needs, under one parent."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.core.management import BaseCommand, CommandError

from simsite.health import why_not_ready
from simsite.keeping import Child, Keeper

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.core.management import CommandParser

ADDRESS: Final = "127.0.0.1:8000"
#: What is kept running: a name for people, a command of manage.py, and what its environment adds.
CHILDREN: Final[tuple[tuple[str, tuple[str, ...], dict[str, str]], ...]] = (
    ("web", ("runserver", "--noreload", "{address}"), {}),
    ("worker", ("qcluster",), {"Q_CLUSTER_NAME": "runs"}),
    ("alerts", ("alerts",), {}),
)


class Command(BaseCommand):
    help = "Serve the site and keep it running; one Ctrl-C stops everything."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "address", nargs="?", default=ADDRESS, help=f"host:port, without it {ADDRESS}"
        )

    def handle(self, *, address: str, **_: Any) -> None:
        reason = why_not_ready()
        if reason:
            raise CommandError(f"Nothing can be served: {reason}.")
        # The writing end closes with this process, however it dies; no child ever has it.
        reading, writing = os.pipe()
        try:
            asyncio.run(self._serve(reading, children(reading, address=address)))
        finally:
            os.close(reading)
            os.close(writing)

    async def _serve(self, tether: int, kept: Sequence[Child]) -> None:
        keeper = Keeper(tether=tether, folder=settings.BASE_DIR, say=self.stderr.write)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, keeper.stop)
        await keeper.keep(kept)


def children(tether: int, *, address: str) -> list[Child]:
    """Return what is kept running: each command under `simsite.tether`."""
    start = (sys.executable, "-m", "simsite.tether", str(tether))
    return [
        Child(
            name=name,
            command=(*start, *(word.format(address=address) for word in words)),
            environment=environment,
        )
        for name, words, environment in CHILDREN
    ]
