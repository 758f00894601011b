"""`manage.py prunesim`: delete the words of old LLM calls, which are kept for replays."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from django.core.management import BaseCommand, CommandError
from django.utils import timezone

from engine import runs
from engine.models import Simulation

if TYPE_CHECKING:
    from argparse import ArgumentParser

WRONG_USE: Final = 2
#: A century: further back than any call was made.
MOST_DAYS: Final = 36_525


class Command(BaseCommand):
    """Exit: 0 done, 2 wrong use."""

    help = (
        "Delete what models were asked and answered more than so many days ago. Messages, calls and "
        "costs stay; a run whose texts are gone cannot be replayed."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--simulation", metavar="NAME", help="of this one only")
        parser.add_argument("--older-than", type=float, default=30, metavar="DAYS")
        parser.add_argument("--dry-run", action="store_true", help="tell how many, delete nothing")

    def handle(self, **options: Any) -> None:
        days = options["older_than"]
        if not 0 <= days <= MOST_DAYS:
            raise CommandError(
                f"--older-than is {days:g}: give a number of days from 0 to {MOST_DAYS}.",
                returncode=WRONG_USE,
            )
        simulation = _named(options["simulation"])
        before = timezone.now() - timedelta(days=days)
        n_texts = runs.prune_texts(simulation, before=before, is_trial=options["dry_run"])
        would = "would be deleted" if options["dry_run"] else "are deleted"
        self.stdout.write(f"The texts of {n_texts:,} calls before {before:%Y-%m-%d %H:%M} {would}.")


def _named(name: str | None) -> Simulation | None:
    if name is None:
        return None
    simulation = Simulation.objects.filter(name=name).first()
    if simulation is None:
        raise CommandError(f'There is no simulation "{name}".', returncode=WRONG_USE)
    return simulation
