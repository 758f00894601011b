"""Why a run cannot begin, in sentences that name who stands in its way."""

from __future__ import annotations

from contextlib import contextmanager
from math import ceil
from typing import TYPE_CHECKING

from django.db import OperationalError, connection
from django.utils import timezone

from engine.build import models_of
from engine.models import Run, RunLease
from engine.models.runs import LIVE
from engine.money import day_cap, price_table
from engine.store.database import LeaseState, is_alive, passes, read_lease
from engine.store.database.reading import agent_specs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.core.config import RunConfig
    from engine.models import Simulation


class RunRefused(Exception):
    """A run that cannot begin; the message is one sentence for the person who asked."""


class RunIsLive(RunRefused):
    """The simulation has a live run; the message names it, its host and its state."""


def check_priced(simulation: Simulation, config: RunConfig) -> None:
    """Refuse a run under a money cap of which a model has no price: no cap could hold."""
    if config.max_nano_usd is None and day_cap() is None:
        return
    table, now = price_table(), timezone.now()
    models = models_of(config, agent_specs(simulation.pk))
    unpriced = [model for model in models if not table.knows(model, now)]
    if unpriced:
        raise RunRefused(
            f"{unpriced[0]} has no price, so no money cap could hold: enter what it costs under "
            '"Prices of models" in the admin, or run it without a cap.'
        )


def quicker_sentence(simulation: Simulation) -> str:
    """Return the sentence about the run that began while ours did."""
    live = Run.objects.filter(simulation=simulation, status__in=LIVE).first()
    if live is None:
        return f"Another run of {simulation.name} began and ended at this moment: try again."
    return live_sentence(simulation, live, read_lease(simulation.pk))


def live_sentence(simulation: Simulation, run: Run, lease: LeaseState) -> str:
    """Return the sentence about a live run: who drives it, and until when he surely may."""
    if run.status == Run.Status.PAUSED:
        return (
            f"Run {run.pk} of {simulation.name} is paused ({run.end_reason}): go on with "
            "`runsim --resume`, or stop it."
        )
    where = f" on {lease.owner}" if lease.owner else ""
    ends = f" (its lease ends in {ceil(lease.seconds_left)} s unless it renews it)"
    return (
        f"Run {run.pk} of {simulation.name} is {run.status}{where}"
        f"{'' if lease.is_expired else ends}: stop it first."
    )


@contextmanager
def naming_who_locks() -> Iterator[None]:
    """Turn SQLite's "database is locked" into a refusal.

    A driver that was stopped in the middle of a transaction holds the file until it is killed; in
    WAL mode its lease can be read all the same.
    """
    try:
        yield
    except OperationalError as error:
        if connection.vendor != "sqlite" or not passes(error):
            raise
        drivers = ", ".join(_drivers())
        if not drivers:
            raise RunRefused(
                "Another process has locked the database file: end it, or wait, and start again."
            ) from error
        raise RunIsLive(
            f"The database file is locked, perhaps by a driver that hangs: {drivers}. "
            "If it does, end that process and start again."
        ) from error


def _drivers() -> Iterator[str]:
    """Yield the runs, of all simulations, that a living process has a lease for."""
    leases = RunLease.objects.exclude(owner="").select_related("simulation").order_by("pk")
    for lease in leases:
        if is_alive(lease.simulation_id, lease.token):
            yield f"run {lease.run_id} of {lease.simulation.name} on {lease.owner}"
