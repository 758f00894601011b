"""The summary object of a run, counted from its rows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from math import ceil
from typing import TYPE_CHECKING

from django.db.models import Count, Sum

from cohorts.models import Agent
from engine.core.config import RunConfig
from engine.models import Decision, LlmCall, Message, Run, Thread, Turn

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

NANO = 1_000_000_000
OPEN_AND_OUTCOMES = ("open", *Decision.Outcome.values)


@dataclass(slots=True, kw_only=True)
class TurnSums:
    """What the turns of a run add up to; `busy` is the time that slots were taken."""

    n_turns: int = 0
    rejected: Counter[str]
    gate_filtered: int = 0
    longest_wait_seconds: float | None = None
    busy: timedelta = timedelta()
    first_at: datetime | None = None
    last_at: datetime | None = None


def summarise(run_id: int) -> dict[str, object]:
    """Return the summary object of a run, as `runsim --json` prints it; money in USD.

    Threads count by cycle: those that this run closed, by outcome, and those open now.
    """
    run = Run.objects.select_related("simulation").get(pk=run_id)
    turns = _sum_turns(run_id)
    calls = LlmCall.objects.filter(run=run_id)
    totals = calls.aggregate(
        input=Sum("input_tokens", default=0),
        output=Sum("output_tokens", default=0),
        cost=Sum("cost_nano_usd", default=0),
    )
    phases = calls.values_list("phase").annotate(n=Count("pk")).order_by("phase")
    n_slots = _setting(run.configuration, "concurrent_turns")
    return {
        "run": run.pk,
        "simulation": run.simulation.name,
        "status": run.status,
        "end_reason": run.end_reason or None,
        "turns": turns.n_turns,
        "messages": Message.objects.filter(
            simulation=run.simulation, run=run_id, author__isnull=False
        ).count(),
        "rejected": dict(sorted(turns.rejected.items())),
        "llm_calls": dict(phases),
        "input_tokens": totals["input"],
        "output_tokens": totals["output"],
        "cost_usd": totals["cost"] / NANO,
        "threads": _threads(run),
        "proposals": run.decisions.filter(outcome=Decision.Outcome.PROPOSAL).count(),
        "gate_filtered": turns.gate_filtered,
        "longest_wait_seconds": turns.longest_wait_seconds,
        "wait_bound_seconds": _wait_bound_seconds(run, n_slots),
        "slot_utilisation": _utilisation(turns, n_slots),
    }


def _setting(configuration: Mapping[str, object], name: str) -> float:
    value = configuration.get(name, getattr(RunConfig(), name))
    if not isinstance(value, int | float):
        raise TypeError(f"{name} is {value!r}, which is no number")
    return value


def _sum_turns(run_id: int) -> TurnSums:
    """Add the turns up in one pass, since reasons are counted inside JSON."""
    sums = TurnSums(rejected=Counter())
    columns = ("selected_at", "finished_at", "waited_seconds", "gate_filtered", "rejected")
    rows = Turn.objects.filter(run=run_id).order_by("number").values_list(*columns)
    for selected_at, finished_at, waited_seconds, gate_filtered, rejected in rows.iterator():
        sums.n_turns += 1
        sums.rejected.update(rejected)
        sums.gate_filtered += gate_filtered
        sums.longest_wait_seconds = max(waited_seconds, sums.longest_wait_seconds or 0.0)
        sums.first_at = min(selected_at, sums.first_at or selected_at)
        if finished_at is not None:
            sums.busy += finished_at - selected_at
            sums.last_at = max(finished_at, sums.last_at or finished_at)
    return sums


def _threads(run: Run) -> dict[str, int]:
    counts = dict.fromkeys(OPEN_AND_OUTCOMES, 0)
    by_outcome = run.decisions.values_list("outcome").annotate(n=Count("pk")).order_by()
    counts.update(dict(by_outcome))
    counts["open"] = Thread.objects.filter(
        simulation=run.simulation, closed_seq__isnull=True
    ).count()
    return counts


def _wait_bound_seconds(run: Run, n_slots: float) -> float:
    """Return the longest that anybody may wait: every other agent has one whole turn before."""
    agents = Agent.objects.exclude(status=Agent.Status.RETIRED)
    if run.simulation.roster_chosen:
        agents = agents.filter(roster_entries__simulation=run.simulation)
    return ceil(agents.count() / n_slots) * _setting(run.configuration, "max_turn_seconds")


def _utilisation(turns: TurnSums, n_slots: float) -> float | None:
    """Return the part of the slots' time that was used, from the first turn to the last end."""
    if turns.first_at is None or turns.last_at is None or turns.last_at <= turns.first_at:
        return None
    return min(1.0, turns.busy / (turns.last_at - turns.first_at) / n_slots)
