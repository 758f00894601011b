"""`manage.py checkworker`: for a watchdog, which starts a worker anew that is stuck."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.core.management import BaseCommand, CommandError
from django.db import Error
from django.utils import timezone

from engine.workers import silent_seconds, worker_of

if TYPE_CHECKING:
    from django.core.management import CommandParser

SILENT: Final = 1
#: Nobody knows: a worker is not to be started anew because its database is away.
UNKNOWN: Final = 2
OLDER_THAN_SECONDS: Final = 180.0


class Command(BaseCommand):
    help = "Exit with 0 if the worker of a queue shows that it works, and with 1 if it is silent."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("queue", help="the queue that it serves")
        parser.add_argument("--host", default="", help="where it runs, without it here")
        parser.add_argument(
            "--older-than", type=float, default=OLDER_THAN_SECONDS, metavar="SECONDS"
        )

    def handle(self, *, queue: str, host: str, older_than: float, **_: Any) -> None:
        worker = worker_of(queue, host=host)
        try:
            seconds = silent_seconds(worker, timezone.now())
        except Error as error:
            raise CommandError("The database does not answer.", returncode=UNKNOWN) from error
        if seconds is None:
            raise CommandError(f"The worker {worker} was never heard of.", returncode=SILENT)
        if seconds > older_than:
            raise CommandError(
                f"The worker {worker} has been silent for {seconds:.0f} s.", returncode=SILENT
            )
        self.stdout.write(f"The worker {worker} was heard of {max(seconds, 0):.0f} s ago.")
