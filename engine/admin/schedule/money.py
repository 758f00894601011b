"""What a schedule will likely cost in the next thirty days, by what its last runs have cost."""

from __future__ import annotations

from datetime import timedelta
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Final

from django.db.models import Sum
from django.utils import timezone

from engine.core.prices import in_usd
from engine.core.settings import RefusedSetting
from engine.core.timetable import due_times
from engine.models import LlmCall, Run
from engine.runs.schedules import timetable_of

if TYPE_CHECKING:
    from engine.models import RunSchedule

DAYS: Final = 30
RUNS_LOOKED_AT: Final = 5
COUNTED_AT_MOST: Final = 2_000


def month_forecast(schedule: RunSchedule) -> str:
    """Return it as a sentence; "" for a schedule that is off or cannot be followed."""
    if not schedule.enabled:
        return ""
    now = timezone.now()
    try:
        coming = takewhile(
            lambda due: due.at <= now + timedelta(days=DAYS),
            due_times(timetable_of(schedule), after=now),
        )
        n_times = sum(1 for _ in islice(coming, COUNTED_AT_MOST))
    except RefusedSetting:
        return ""
    times = f"{n_times} time{'' if n_times == 1 else 's'} in the next {DAYS} days"
    last = Run.objects.filter(occasion__schedule=schedule, finished_at__isnull=False)
    runs = list(last.order_by("-pk").values_list("pk", flat=True)[:RUNS_LOOKED_AT])
    if not runs:
        return f"It is due {times}; what a run of it costs is known after the first."
    spent = LlmCall.objects.filter(run__in=runs).aggregate(n=Sum("cost_nano_usd"))["n"] or 0
    each = spent // len(runs)
    cap = schedule.month_nano_usd
    capped = f", and no more than {in_usd(cap)} in a calendar month" if cap else ""
    return (
        f"It is due {times}, at about {in_usd(each)} a run: about {in_usd(each * n_times)}{capped}."
    )
