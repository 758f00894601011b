"""`manage.py alerts`: finds what people should know without asking, and mails it."""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from django.core.management import BaseCommand
from django.db import connection
from django.utils import timezone

from engine.alerts import look, send_mails
from engine.store.database import TROUBLE

if TYPE_CHECKING:
    from argparse import ArgumentParser

log = logging.getLogger(__name__)

PAUSE_SECONDS: Final = 60.0


class Command(BaseCommand):
    """Exit: 0. It may run on several hosts, and may be killed: each event is told once."""

    help = "Find what people should know without asking, and mail it; each minute, until stopped."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--once", action="store_true", help="look once, and end")

    def handle(self, **options: Any) -> None:
        if options["once"]:
            self._look()
            return
        with suppress(KeyboardInterrupt):
            while True:
                self._look_again()
                time.sleep(PAUSE_SECONDS)

    def _look_again(self) -> None:
        try:
            self._look()
        except TROUBLE as error:
            log.warning("Alerts are looked for again later: %s", str(error).strip())
            connection.close()

    def _look(self) -> None:
        now = timezone.now()
        n_new, n_sent = len(look(now)), send_mails(now)
        if n_new or n_sent:
            self.stdout.write(f"Alerts: {n_new} new. Mails: {n_sent} sent.")
