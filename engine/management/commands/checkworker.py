"""`manage.py checkworker`: for a watchdog, which starts a worker anew that is stuck."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING, Any, Final

from django.core.management import BaseCommand, CommandError
from django.utils import timezone

from engine.workers import silent_seconds

if TYPE_CHECKING:
    from django.core.management import CommandParser

SILENT: Final = 1
OLDER_THAN_SECONDS: Final = 180.0


class Command(BaseCommand):
    help = "Exit with 0 if a worker shows that it does its work, and with 1 if it is silent."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "worker", nargs="?", default=platform.node(), help="without it, this host's name"
        )
        parser.add_argument(
            "--older-than", type=float, default=OLDER_THAN_SECONDS, metavar="SECONDS"
        )

    def handle(self, *, worker: str, older_than: float, **_: Any) -> None:
        seconds = silent_seconds(worker, timezone.now())
        if seconds is None:
            raise CommandError(f"The worker {worker} was never heard of.", returncode=SILENT)
        if seconds > older_than:
            raise CommandError(
                f"The worker {worker} has been silent for {seconds:.0f} s.", returncode=SILENT
            )
        self.stdout.write(f"The worker {worker} was heard of {max(seconds, 0):.0f} s ago.")
