"""A run begins: the right to drive is taken first, and only then is anything read."""

from __future__ import annotations

import os
import socket
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils import timezone

from cohorts.triggers import missing_triggers
from engine.core.config import RunConfig
from engine.models import Run, RunControl
from engine.models.runs import LIVE
from engine.runs.end import interrupt
from engine.store.database import LeaseState, read_lease, take_lease

if TYPE_CHECKING:
    from engine.models import Simulation


class RunRefused(Exception):
    """A run that cannot begin; the message is one sentence for the person who asked."""


class RunIsLive(RunRefused):
    """The simulation has a live run; the message names it, its host and its state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A run whose lease is ours."""

    simulation_id: int
    run_id: int
    token: int
    config: RunConfig


def begin(simulation: Simulation, config: RunConfig, *, who: str) -> Begun:
    """Begin a new run of a simulation.

    A run that died is fenced and marked interrupted first. Raises `RunIsLive` while another one
    is live, and `RunRefused` when the database lacks what guards the topology.
    """
    _check_triggers()
    lease = _clear_the_way(simulation)
    try:
        with transaction.atomic():
            run = Run.objects.create(
                simulation=simulation,
                status=Run.Status.RUNNING,
                configuration=asdict(config),
                started_by=who,
                code_version=settings.CODE_VERSION,
                seed=config.seed,
                started_at=timezone.now(),
            )
            RunControl.objects.create(run=run)
            token = _take(simulation, run, lease)
    except IntegrityError as error:
        raise RunIsLive(f"Another run of {simulation.name} began at this moment.") from error
    return Begun(simulation_id=simulation.pk, run_id=run.pk, token=token, config=config)


def resume(
    simulation: Simulation,
    *,
    max_calls: int | None = None,
    max_nano_usd: int | None = None,
) -> Begun:
    """Go on with a simulation's paused run, with its stored settings; caps may be raised.

    Raises `RunIsLive` while it is driven, and `RunRefused` if no run is paused.
    """
    _check_triggers()
    run = Run.objects.filter(simulation=simulation, status__in=LIVE).first()
    if run is None:
        raise RunRefused(f"No run of {simulation.name} is paused: start one without --resume.")
    lease = read_lease(simulation.pk)
    if run.status != Run.Status.PAUSED:
        raise RunIsLive(_live_sentence(simulation, run, lease))
    config = RunConfig(**run.configuration)
    config = replace(
        config,
        max_calls=config.max_calls if max_calls is None else max_calls,
        max_nano_usd=config.max_nano_usd if max_nano_usd is None else max_nano_usd,
    )
    with transaction.atomic():
        RunControl.objects.filter(run=run).update(
            wish=RunControl.Wish.RUN, max_calls=max_calls, max_nano_usd=max_nano_usd
        )
        token = _take(simulation, run, lease)
        n_resumed = Run.objects.filter(pk=run.pk, status=Run.Status.PAUSED).update(
            status=Run.Status.RUNNING, end_reason="", detail="", configuration=asdict(config)
        )
        if not n_resumed:
            raise RunIsLive(f"Run {run.pk} of {simulation.name} is no longer paused.")
    return Begun(simulation_id=simulation.pk, run_id=run.pk, token=token, config=config)


def _check_triggers() -> None:
    missing = missing_triggers()
    if missing:
        raise RunRefused(
            f"The database lacks {', '.join(missing)}, without which cohort changes would go "
            "unnoticed: run `manage.py migrate`."
        )


def _clear_the_way(simulation: Simulation) -> LeaseState:
    """Return the free lease; a dead run is fenced and marked, a live one refuses."""
    live = Run.objects.filter(simulation=simulation, status__in=LIVE).first()
    lease = read_lease(simulation.pk)
    if live is None:
        return lease
    if live.status == Run.Status.PAUSED or not lease.is_expired:
        raise RunIsLive(_live_sentence(simulation, live, lease))
    if not interrupt(live, lease):
        raise RunIsLive(f"Another run of {simulation.name} began at this moment.")
    return read_lease(simulation.pk)


def _take(simulation: Simulation, run: Run, lease: LeaseState) -> int:
    token = take_lease(
        simulation.pk,
        run.pk,
        known_token=lease.token,
        owner=f"{socket.gethostname()}:{os.getpid()}",
        seconds=settings.SIM_LEASE_SECONDS,
    )
    if token is None:
        raise RunIsLive(f"Another driver has taken {simulation.name} at this moment.")
    return token


def _live_sentence(simulation: Simulation, run: Run, lease: LeaseState) -> str:
    if run.status == Run.Status.PAUSED:
        return (
            f"Run {run.pk} of {simulation.name} is paused ({run.end_reason}): go on with "
            "`runsim --resume`, or stop it."
        )
    where = f" on {lease.owner}" if lease.owner else ""
    return f"Run {run.pk} of {simulation.name} is {run.status}{where}: stop it first."
