"""`manage.py simctl`: what people ask of runs from a terminal: here, to spend more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.core.management import BaseCommand, CommandError
from django.utils import timezone

from engine.core.days import local_day
from engine.core.prices import in_usd
from engine.core.settings import RefusedSetting
from engine.management.commands.runsim import WRONG_USE, nano_usd_of, person_here
from engine.models import Run
from engine.money import NotRaised, raise_caps, set_day_cap
from engine.store.database import day_money

if TYPE_CHECKING:
    from argparse import ArgumentParser

_NO_LIMIT: Final = "none"


class Command(BaseCommand):
    """Exit: 0 done, 2 wrong use."""

    help = "Raise the caps of a run, or show and set the money of a day."

    def add_arguments(self, parser: ArgumentParser) -> None:
        words = parser.add_subparsers(dest="word", required=True)
        raising = words.add_parser("raise", help="let a run spend more")
        raising.add_argument("run", type=int, metavar="RUN")
        raising.add_argument("--max-usd", metavar="X")
        raising.add_argument("--max-calls", type=int, metavar="N")
        day = words.add_parser("day", help="what all runs together have spent today, and may")
        day.add_argument("--max-usd", metavar="X", help=f"from now on; {_NO_LIMIT} is no limit")

    def handle(self, **options: Any) -> None:
        try:
            if options["word"] == "raise":
                self._raise(options)
            else:
                self._day(options["max_usd"])
        except (NotRaised, RefusedSetting) as error:
            raise CommandError(str(error), returncode=WRONG_USE) from error

    def _raise(self, options: dict[str, Any]) -> None:
        run = Run.objects.filter(pk=options["run"]).first()
        if run is None:
            raise NotRaised(f"There is no run {options['run']}.")
        raise_caps(
            run,
            max_nano_usd=nano_usd_of(options["max_usd"]),
            max_calls=options["max_calls"],
            who=person_here(),
        )
        then = "go on with `runsim --resume`" if run.status == Run.Status.PAUSED else "it goes on"
        self.stdout.write(f"The cap of run {run.pk} is raised: {then}.")

    def _day(self, max_usd: str | None) -> None:
        if max_usd is not None:
            cap = None if max_usd == _NO_LIMIT else nano_usd_of(max_usd)
            set_day_cap(cap, who=person_here())
        day = day_money(local_day(timezone.now(), settings.TIME_ZONE))
        most = "no limit" if day.cap is None else f"at most {in_usd(day.cap)}"
        self.stdout.write(
            f"{day.day} ({settings.TIME_ZONE}): {in_usd(day.spent)} spent, "
            f"{in_usd(day.reserved)} promised to calls on their way; {most} a day."
        )
