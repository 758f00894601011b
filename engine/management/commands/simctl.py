"""`manage.py simctl`: what people ask of runs from a terminal, wherever they are driven."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.core.management import BaseCommand, CommandError
from django.utils import timezone

from engine import runs
from engine.core.days import local_day
from engine.core.prices import in_usd
from engine.core.settings import RefusedSetting
from engine.management.commands.runsim import WRONG_USE, nano_usd_of, person_here
from engine.models import Run
from engine.models.runs import LIVE
from engine.money import NotRaised, raise_caps, set_day_cap
from engine.store.database import day_money

if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Iterable

    from engine.runs import RunState

_NO_LIMIT: Final = "none"
_ASKS: Final = {
    "stop": (runs.stop, "end a run when its turns in flight are over"),
    "drain": (runs.drain, "start nothing new, and stop when no thread is open"),
    "pause": (runs.pause, "pause a run when its turns in flight are over"),
    "resume": (runs.resume_by_worker, "leave a paused run to a worker"),
}


class Command(BaseCommand):
    """Exit: 0 done, 2 wrong use."""

    help = "Ask runs to stop, drain, pause, go on or spend more; show what they do."

    def add_arguments(self, parser: ArgumentParser) -> None:
        words = parser.add_subparsers(dest="word", required=True)
        status = words.add_parser("status", help="what a run is doing, or all that are not over")
        status.add_argument("run", type=int, nargs="?", metavar="RUN")
        status.add_argument("--json", action="store_true", help="a line of JSON for each run")
        for word, (_, text) in _ASKS.items():
            words.add_parser(word, help=text).add_argument("run", type=int, metavar="RUN")
        raising = words.add_parser("raise", help="let a run spend more")
        raising.add_argument("run", type=int, metavar="RUN")
        raising.add_argument("--max-usd", metavar="X")
        raising.add_argument("--max-calls", type=int, metavar="N")
        day = words.add_parser("day", help="what all runs together have spent today, and may")
        day.add_argument("--max-usd", metavar="X", help=f"from now on; {_NO_LIMIT} is no limit")

    def handle(self, **options: Any) -> None:
        word = options["word"]
        try:
            if word == "status":
                self._status(options["run"], as_json=options["json"])
            elif word == "raise":
                self._raise(options)
            elif word == "day":
                self._day(options["max_usd"])
            else:
                ask, _ = _ASKS[word]
                self.stdout.write(ask(_run(options["run"]), who=person_here()))
        except (NotRaised, RefusedSetting, runs.RunRefused) as error:
            raise CommandError(str(error), returncode=WRONG_USE) from error

    def _status(self, number: int | None, *, as_json: bool) -> None:
        states = [runs.state_of(run) for run in _asked_about(number)]
        for state in states:
            self.stdout.write(json.dumps(asdict(state)) if as_json else _in_words(state))
        if not states and not as_json:
            self.stdout.write("No run is queued or live.")

    def _raise(self, options: dict[str, Any]) -> None:
        run = _run(options["run"])
        raise_caps(
            run,
            max_nano_usd=nano_usd_of(options["max_usd"]),
            max_calls=options["max_calls"],
            who=person_here(),
        )
        then = (
            f"go on with `simctl resume {run.pk}` or `runsim --resume`"
            if run.status == Run.Status.PAUSED
            else "it goes on"
        )
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


def _run(number: int) -> Run:
    run = Run.objects.select_related("simulation").filter(pk=number).first()
    if run is None:
        raise runs.RunRefused(f"There is no run {number}.")
    return run


def _asked_about(number: int | None) -> Iterable[Run]:
    if number is not None:
        return [_run(number)]
    rows = Run.objects.select_related("simulation").order_by("pk")
    return rows.filter(status__in=(Run.Status.QUEUED, *LIVE))


def _in_words(state: RunState) -> str:
    where = f" on {state.owner}" if state.owner else ""
    beat = "" if state.silent_seconds is None else f" (last beat {state.silent_seconds:.0f} s ago)"
    taken = "" if not state.takeovers else f" Taken over {state.takeovers} times."
    return (
        f"Run {state.run} of {state.simulation}: {state.state}{where}{beat}. "
        f"{state.sentence}{taken}"
    )
