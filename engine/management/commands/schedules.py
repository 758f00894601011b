"""`manage.py schedules`: what begins by the clock, in words, with the next times of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.management import BaseCommand
from django.utils import timezone

from engine.core.settings import RefusedSetting
from engine.models import RunSchedule
from engine.runs.firing import fire_due
from engine.runs.schedules import told, told_times

if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Iterator
    from datetime import datetime

    from engine.models import Occasion


class Command(BaseCommand):
    """Exit: 0. A worker follows schedules by itself; `--fire` is for a site that has none."""

    help = "Tell every schedule in words, with its next five times."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--fire", action="store_true", help="follow what is due now, and tell what came of it"
        )

    def handle(self, **options: Any) -> None:
        now = timezone.now()
        if options["fire"]:
            lines = [_came_of(occasion) for occasion in fire_due(now)]
            self.stdout.write("\n".join(lines) or "Nothing is due.")
            return
        rows = RunSchedule.objects.select_related("simulation")
        lines = [line for schedule in rows for line in _told(schedule, now)]
        self.stdout.write("\n".join(lines) or "There is no schedule: write one in the admin.")


def _came_of(occasion: Occasion) -> str:
    came = occasion.reason if occasion.run is None else f"run {occasion.run.pk} is asked for."
    return f"{occasion}: {came}"


def _told(schedule: RunSchedule, now: datetime) -> Iterator[str]:
    """Yield the lines about one schedule."""
    state = "on" if schedule.enabled else "off"
    where = schedule.simulation or "no simulation"
    yield f"{schedule} ({where}, {state}): {told(schedule)}"
    if schedule.problem:
        yield f"  It cannot be followed: {schedule.problem}"
    try:
        times = told_times(schedule, after=now) if schedule.enabled else []
    except RefusedSetting:
        return
    yield from (f"  {line}" for line in times)
