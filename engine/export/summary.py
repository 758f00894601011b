"""The summary object of a run, computed from its rows: for `runsim --json`, export and pages."""

from __future__ import annotations

from collections import Counter
from typing import Any

from django.db.models import Count, Sum

from engine.models import Decision, LlmCall, Message, Run, RunLease, Thread, Turn

NANO = 10**9
_OUTCOMES = ("open", "proposal", "no_proposal", "timeout", "lost")
#: What the rows cannot tell: kept by the driver with the lease, and with the run at its end.
_UTILISATION = "slot_utilisation"


def summarise(run_id: int) -> dict[str, Any]:
    """Return the summary object of docs/operations.md for a run, live or ended."""
    run = Run.objects.select_related("simulation").get(pk=run_id)
    calls = LlmCall.objects.filter(run=run)
    tokens = calls.aggregate(
        input=Sum("input_tokens"), output=Sum("output_tokens"), cost=Sum("cost_nano_usd")
    )
    threads = _threads(run)
    return {
        "run": run.pk,
        "simulation": run.simulation.name,
        "status": run.status,
        "end_reason": run.end_reason or None,
        **_turns(run),
        "messages": Message.objects.filter(run=run, is_bot=True).count(),
        "llm_calls": dict(calls.order_by("phase").values_list("phase").annotate(n=Count("id"))),
        "input_tokens": tokens["input"] or 0,
        "output_tokens": tokens["output"] or 0,
        "cost_usd": (tokens["cost"] or 0) / NANO,
        "threads": threads,
        "proposals": threads["proposal"],
        **_figures(run),
    }


def _turns(run: Run) -> dict[str, Any]:
    """Sum up the turns; a turn keeps its refusals by reason in one column."""
    turns = Turn.objects.filter(run=run)
    rejected: Counter[str] = Counter()
    for reasons in turns.exclude(rejected={}).values_list("rejected", flat=True).iterator():
        rejected.update(reasons)
    sums = turns.aggregate(n=Count("id"), filtered=Sum("gate_filtered"))
    return {
        "turns": sums["n"],
        "rejected": dict(sorted(rejected.items())),
        "gate_filtered": sums["filtered"] or 0,
    }


def _threads(run: Run) -> dict[str, int]:
    """Count the cycles that this run concluded, and the threads it leaves or holds open."""
    counts = dict.fromkeys(_OUTCOMES, 0)
    concluded = Decision.objects.filter(run=run).order_by("outcome").values_list("outcome")
    counts |= dict(concluded.annotate(n=Count("id")))
    counts["open"] = Thread.objects.filter(
        simulation=run.simulation, closed_seq__isnull=True
    ).count()
    return counts


def _figures(run: Run) -> dict[str, Any]:
    lease = RunLease.objects.filter(run=run).values_list("counters", flat=True).first()
    kept = lease or run.summary or {}
    waits = Turn.objects.filter(run=run).values_list("waited_seconds", "wait_bound_seconds")
    longest, bound = waits.order_by("-waited_seconds", "-number").first() or (None, None)
    return {
        "longest_wait_seconds": longest,
        "wait_bound_seconds": bound,
        _UTILISATION: kept.get(_UTILISATION),
    }
