"""What a run costs: spent, promised and allowed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.db.models import Count, Q, Sum
from django.utils import timezone
from django.utils.formats import date_format

from engine.core.days import local_day
from engine.core.prices import in_usd
from engine.models import LlmCall, RunControl
from engine.models.runs import LIVE
from engine.store.database import day_money

if TYPE_CHECKING:
    from engine.models import Run

DAY_SENTENCE: Final = (
    "A run that meets the money of a day pauses. After midnight, or when that money is raised, "
    "it is resumed, and goes on where it was."
)


def costs(run: Run) -> dict[str, object] | None:
    """Return what the page of a run shows of its money, or None if nothing in it costs any."""
    calls = LlmCall.objects.filter(run=run)
    if not calls.filter(reserved_on__isnull=False).exists():
        return None
    return {
        "facts": _facts(run),
        "day_sentence": DAY_SENTENCE,
    }


def run_caps(run: Run) -> dict[str, int | None]:
    """Return the caps of money and calls of a run, as last raised."""
    control = RunControl.objects.filter(run=run).first() or RunControl(run=run)
    raised = {"max_nano_usd": control.max_nano_usd, "max_calls": control.max_calls}
    return {
        name: run.configuration.get(name) if cap is None else cap for name, cap in raised.items()
    }


def may_be_raised(run: Run) -> bool:
    return run.status in LIVE and any(cap is not None for cap in run_caps(run).values())


def _facts(run: Run) -> list[tuple[str, str]]:
    sums = _sums(LlmCall.objects.filter(run=run))
    day = day_money(local_day(timezone.now(), settings.TIME_ZONE))
    facts = [
        ("Spent", in_usd(sums["spent"])),
        ("Promised to calls on their way", in_usd(sums["reserved"])),
        ("Cap of this run", _cap(run_caps(run)["max_nano_usd"])),
        (
            f"All runs, {date_format(day.day, 'j M Y')}",
            f"{in_usd(day.spent + day.reserved)} spent or promised",
        ),
        ("Money of a day", _cap(day.cap)),
    ]
    if sums["n_unpriced"]:
        facts.insert(1, ("Unpriced", f"{sums['n_unpriced']} calls, whose cost nobody knows"))
    return facts


def _cap(nano_usd: int | None) -> str:
    return "no limit" if nano_usd is None else in_usd(nano_usd)


def _sums(calls: Any) -> dict[str, int]:
    return {name: value or 0 for name, value in calls.aggregate(**_SUMS).items()}


_IS_RESERVED: Final = Q(state=LlmCall.State.RESERVED)
_SUMS: Final = {
    "n": Count("pk"),
    "spent": Sum("cost_nano_usd"),
    "reserved": Sum("reserved_nano_usd", filter=_IS_RESERVED),
    "n_unpriced": Count("pk", filter=~_IS_RESERVED & Q(cost_nano_usd__isnull=True)),
}
