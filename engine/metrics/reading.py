"""Reads what there is to measure; every query here is bounded by an index, or by its table."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.db.models import Count, Max, Min, Q, Sum

from engine.core.days import local_day
from engine.core.prices import NANO
from engine.metrics.families import Family
from engine.models import (
    Alert,
    AlertMail,
    LlmCall,
    Proposal,
    Purse,
    Run,
    RunLease,
    Turn,
    WorkerBeat,
)
from engine.models.runs import LIVE
from engine.store.database import day_money
from engine.store.purses import run_purse

if TYPE_CHECKING:
    from collections.abc import Iterator

WINDOW: Final = timedelta(minutes=10)
#: The longest wait is that of so many turns, the last ones of a simulation.
LAST_TURNS: Final = 500


def read(now: datetime) -> list[Family]:
    """Return every metric; a constant number of queries, and a few for each live run."""
    live = list(Run.objects.filter(status__in=LIVE).select_related("simulation").order_by("pk"))
    return [
        *_runs(now),
        *_drivers(now),
        *_turns(live),
        *_calls(live, now),
        *_money(live, now),
        *_people(now),
    ]


def _runs(now: datetime) -> Iterator[Family]:
    runs = Family(name="sim_runs", says="Runs by status.")
    counts = dict(Run.objects.order_by("status").values_list("status").annotate(n=Count("id")))
    for status in Run.Status.values:
        runs.add(counts.get(status, 0), status=status)
    yield runs
    queued = Run.objects.filter(status=Run.Status.QUEUED).aggregate(oldest=Min("created_at"))
    wait = Family(name="sim_queue_longest_wait_seconds", says="Age of the oldest queued run.")
    wait.add(_seconds(queued["oldest"], now))
    yield wait


def _drivers(now: datetime) -> Iterator[Family]:
    """What is driven, by its lease: one that is far older than its renewals has no driver."""
    age = Family(name="sim_lease_age_seconds", says="Since a driven run's lease was renewed.")
    driven = Q(run__status__in=(Run.Status.RUNNING, Run.Status.STOPPING))
    leases = RunLease.objects.filter(driven).select_related("simulation").order_by("run")
    for lease in leases:
        age.add(_seconds(lease.beat_at, now), run=lease.run_id, simulation=lease.simulation.name)
    yield age
    beats = Family(name="sim_worker_silent_seconds", says="Since a worker showed that it works.")
    for beat in WorkerBeat.objects.order_by("pk"):
        beats.add(_seconds(beat.at, now), worker=beat.pk)
    yield beats


def _turns(live: list[Run]) -> Iterator[Family]:
    turns = Family(
        name="sim_turns_total", says="Turns of a simulation with a live run.", kind="counter"
    )
    wait = Family(
        name="sim_turn_longest_wait_seconds",
        says=f"Longest wait from eligible to selected, of the last {LAST_TURNS} turns.",
    )
    for run in live:
        last = Turn.objects.filter(simulation=run.simulation_id).order_by("-number")
        found = last[:LAST_TURNS].aggregate(number=Max("number"), wait=Max("waited_seconds"))
        turns.add(found["number"] or 0, simulation=run.simulation.name)
        wait.add(found["wait"] or 0.0, simulation=run.simulation.name)
    yield turns
    yield wait


def _calls(live: list[Run], now: datetime) -> Iterator[Family]:
    """Calls of the last ten minutes by model, with what they used and cost."""
    calls = Family(name="sim_recent_llm_calls", says="Model calls of ten minutes, of live runs.")
    tokens = Family(name="sim_recent_tokens", says="Tokens of these calls.")
    money = Family(name="sim_recent_cost_usd", says="What these calls cost, as far as it is known.")
    rows = (
        LlmCall.objects.filter(run__in=live, started_at__gt=now - WINDOW)
        .order_by("model")
        .values("model")
        .annotate(
            n=Count("id"),
            n_failed=Count("id", filter=~Q(error="")),
            cost=Sum("cost_nano_usd"),
            input=Sum("input_tokens"),
            output=Sum("output_tokens"),
            cache_read=Sum("cache_read_tokens"),
            cache_write=Sum("cache_write_tokens"),
        )
    )
    for row in rows:
        model = row["model"]
        calls.add(row["n"] - row["n_failed"], model=model, outcome="answered")
        calls.add(row["n_failed"], model=model, outcome="failed")
        money.add((row["cost"] or 0) / NANO, model=model)
        tokens.add(row["input"], model=model, kind="input")
        tokens.add(row["output"], model=model, kind="output")
        tokens.add(row["cache_read"], model=model, kind="cache_read")
        tokens.add(row["cache_write"], model=model, kind="cache_write")
    yield from (calls, tokens, money)


def _money(live: list[Run], now: datetime) -> Iterator[Family]:
    day = day_money(local_day(now, settings.TIME_ZONE))
    of_day = Family(name="sim_day_usd", says="Money of all runs today; no cap, no sample of it.")
    of_day.add(day.spent / NANO, state="spent")
    of_day.add(day.reserved / NANO, state="reserved")
    if day.cap is not None:
        of_day.add(day.cap / NANO, state="cap")
    yield of_day
    of_run = Family(name="sim_run_usd", says="Money of a live run.")
    purses = Purse.objects.in_bulk([run_purse(run.pk) for run in live])
    for run in live:
        purse = purses.get(run_purse(run.pk))
        if purse is not None:
            labels = {"run": run.pk, "simulation": run.simulation.name}
            of_run.add(purse.spent_nano_usd / NANO, state="spent", **labels)
            of_run.add(purse.reserved_nano_usd / NANO, state="reserved", **labels)
    yield of_run


def _people(now: datetime) -> Iterator[Family]:
    """What waits for people, and whether they were told."""
    proposals = Family(name="sim_proposals_waiting", says="Proposals that wait for review.")
    waiting = Proposal.objects.filter(state=Proposal.State.PENDING)
    found = waiting.aggregate(n=Count("id"), oldest=Min("proposed_at"))
    proposals.add(found["n"])
    yield proposals
    oldest = Family(name="sim_proposals_longest_wait_seconds", says="Age of the oldest of them.")
    oldest.add(_seconds(found["oldest"], now))
    yield oldest
    alerts = Family(name="sim_alerts", says="Alerts that are kept, by kind.")
    counts = dict(Alert.objects.order_by("kind").values_list("kind").annotate(n=Count("id")))
    for kind in Alert.Kind.values:
        alerts.add(counts.get(kind, 0), kind=kind)
    yield alerts
    mails = Family(name="sim_alert_mails_waiting", says="Mails of alerts that are not sent yet.")
    mails.add(AlertMail.objects.filter(sent_at__isnull=True).count())
    yield mails


def _seconds(since: datetime | None, now: datetime) -> float:
    return 0.0 if since is None else max(0.0, (now - since).total_seconds())
