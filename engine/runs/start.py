"""A run begins: the right to drive is taken first, and only then is anything read."""

from __future__ import annotations

import os
import socket
import time
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import IntegrityError, connection, transaction
from django.db.models import Count, Sum
from django.db.models.functions import Coalesce

from cohorts.triggers import missing_triggers
from engine.build import make_ready
from engine.core.config import RunConfig
from engine.models import LlmCall, Run, RunControl, Ticket, Turn
from engine.models.runs import LIVE
from engine.runs.end import end_undriven, first_moment
from engine.runs.refusals import (
    RunIsLive,
    RunRefused,
    check_priced,
    live_sentence,
    naming_who_locks,
    quicker_sentence,
)
from engine.runs.room import check_room
from engine.store.database import (
    LeaseState,
    Liveness,
    is_driven,
    read_lease,
    take_lease,
    take_liveness,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from engine.models import Simulation


#: A server hears of a process's death within some milliseconds; it is given this long.
DEATH_SECONDS = 0.5


class TakenMeanwhile(Exception):
    """Somebody else was quicker; what we wrote is rolled back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """What an agent's calls in a run have cost until now."""

    agent: int
    n_calls: int
    nano_usd: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A run whose lease is ours, as it goes on from here.

    Its clock begins at `starts_at`, which is not before anything the simulation has stamped, also
    when this host's clock is behind the last driver's. `config` counts turns from here on, and
    `spent` is what earlier legs of a resumed run have used up. `liveness` is to be released when
    the run's end is written.
    """

    simulation_id: int
    run_id: int
    token: int
    liveness: Liveness
    config: RunConfig
    starts_at: datetime
    spent: tuple[Spending, ...] = ()


def begin(simulation: Simulation, config: RunConfig, *, who: str) -> Begun:
    """Begin a new run of a simulation.

    A run that died is fenced and marked interrupted first. Raises `RunIsLive` while another one
    is live, and `RunRefused` when the database lacks what guards the topology.
    """
    check_and_load(config)
    check_priced(simulation, config)
    lease = clear_the_way(simulation)
    with coming_alive(simulation, lease) as liveness:
        run = Run.objects.create(
            simulation=simulation,
            status=Run.Status.RUNNING,
            configuration=asdict(config),
            started_by=who,
            code_version=settings.CODE_VERSION,
            seed=config.seed,
        )
        RunControl.objects.create(run=run)
        token = take(run, lease)
        starts_at = first_moment(simulation.pk)
        Run.objects.filter(pk=run.pk).update(started_at=starts_at)
    return Begun(
        simulation_id=simulation.pk,
        run_id=run.pk,
        token=token,
        liveness=liveness,
        config=config,
        starts_at=starts_at,
    )


@naming_who_locks()
def resume(
    simulation: Simulation,
    *,
    max_calls: int | None = None,
    max_nano_usd: int | None = None,
    by_worker: bool = False,
) -> Begun:
    """Go on with a simulation's paused run, with its stored settings; caps may be raised.

    A cap that a person has raised meanwhile holds, too. Raises `RunIsLive` while the run is
    driven, `RunRefused` if none is paused, and for a worker `MustWait` while too many go on.
    A terminal's run is its own from then on.
    """
    check_triggers()
    run = Run.objects.filter(simulation=simulation, status=Run.Status.PAUSED).first()
    if run is not None:
        make_ready(RunConfig(**run.configuration))
    lease = lease_of_now(simulation)
    run = _paused(simulation, lease)
    raised = {"max_calls": max_calls, "max_nano_usd": max_nano_usd}
    raised = {name: cap for name, cap in raised.items() if cap is not None}
    with coming_alive(simulation, lease) as liveness:
        _admit(run, by_worker=by_worker)
        token = take(run, lease)
        RunControl.objects.filter(run=run).update(wish=RunControl.Wish.RUN, **raised)
        config = with_raised_caps(run)
        check_priced(simulation, config)
        _set_running(run, config)
        starts_at = first_moment(simulation.pk)
    return Begun(
        simulation_id=simulation.pk,
        run_id=run.pk,
        token=token,
        liveness=liveness,
        config=for_the_rest(run, config),
        starts_at=starts_at,
        spent=spent_until_now(run),
    )


def _admit(run: Run, *, by_worker: bool) -> None:
    """Count the run of a worker among those that may go on; take a terminal's from the workers."""
    if by_worker:
        check_room(run.simulation)
        ticket_used(run)
    else:
        Ticket.objects.filter(run=run).delete()


def ticket_used(run: Run) -> None:
    """Note that a driver has the run: should it die, the next message is sent at once."""
    Ticket.objects.filter(run=run).update(sent_at=None, waits_for="")


def _paused(simulation: Simulation, lease: LeaseState) -> Run:
    """Return the paused run of a simulation, or refuse for want of one."""
    run = Run.objects.filter(simulation=simulation, status__in=LIVE).first()
    if run is None:
        raise RunRefused(f"No run of {simulation.name} is paused: start one without --resume.")
    if run.status == Run.Status.PAUSED:
        return run
    if is_driven(simulation.pk, lease):
        raise RunIsLive(live_sentence(simulation, run, lease))
    raise RunRefused(f"Run {run.pk} of {simulation.name} died: start one without --resume.")


def check_and_load(config: RunConfig) -> None:
    check_triggers()
    make_ready(config)


def check_triggers() -> None:
    missing = missing_triggers()
    if missing:
        raise RunRefused(
            f"The database lacks {', '.join(missing)}, without which cohort changes would go "
            "unnoticed: run `manage.py migrate`."
        )


def clear_the_way(simulation: Simulation) -> LeaseState:
    """Return the free lease; a dead run is fenced and marked, a live one refuses.

    A run is dead when its driver's process is gone, or has been silent for the whole lease. The
    lease is read before the run: of a driver that came in between the token is another one.
    """
    lease = lease_of_now(simulation)
    live = Run.objects.filter(simulation=simulation, status__in=LIVE).first()
    if live is None:
        return lease
    if live.status == Run.Status.PAUSED or is_driven(simulation.pk, lease):
        raise RunIsLive(live_sentence(simulation, live, lease))
    if not end_undriven(live, lease):
        raise RunIsLive(quicker_sentence(simulation))
    return read_lease(simulation.pk)


def lease_of_now(simulation: Simulation) -> LeaseState:
    """Return the lease, on PostgreSQL after a moment in which the server may hear of a death."""
    lease = read_lease(simulation.pk)
    give_up_at = time.monotonic() + DEATH_SECONDS
    while (
        connection.vendor == "postgresql"
        and is_driven(simulation.pk, lease)
        and time.monotonic() < give_up_at
    ):
        time.sleep(DEATH_SECONDS / 10)
        lease = read_lease(simulation.pk)
    return lease


@contextmanager
def coming_alive(simulation: Simulation, lease: LeaseState) -> Iterator[Liveness]:
    """Hold the liveness lock of the next token, and then a transaction in which it is taken.

    In this order nobody can read the new token and take its driver for dead. If the transaction
    fails the lock is given back; if somebody was quicker, `RunIsLive` says who.
    """
    with ExitStack() as undo:
        try:
            liveness = _alive(simulation, lease.token + 1)
            undo.callback(liveness.release)
            with transaction.atomic():
                yield liveness
        except (IntegrityError, TakenMeanwhile) as error:
            raise RunIsLive(quicker_sentence(simulation)) from error
        undo.pop_all()


def _alive(simulation: Simulation, token: int) -> Liveness:
    liveness = take_liveness(simulation.pk, token)
    if liveness is None:
        raise TakenMeanwhile
    return liveness


def take(run: Run, lease: LeaseState) -> int:
    token = take_lease(
        run.simulation_id,
        run.pk,
        known_token=lease.token,
        owner=f"{socket.gethostname()}:{os.getpid()}",
        seconds=settings.SIM_LEASE_SECONDS,
    )
    if token is None:
        raise TakenMeanwhile
    return token


def with_raised_caps(run: Run) -> RunConfig:
    control = RunControl.objects.get(run=run)
    config = RunConfig(**run.configuration)
    return replace(
        config,
        max_calls=config.max_calls if control.max_calls is None else control.max_calls,
        max_nano_usd=config.max_nano_usd if control.max_nano_usd is None else control.max_nano_usd,
    )


def _set_running(run: Run, config: RunConfig) -> None:
    n_resumed = Run.objects.filter(pk=run.pk, status=Run.Status.PAUSED).update(
        status=Run.Status.RUNNING, end_reason="", detail="", configuration=asdict(config)
    )
    if not n_resumed:
        raise TakenMeanwhile


def for_the_rest(run: Run, config: RunConfig) -> RunConfig:
    """Return the configuration with the turns that are left of its limit."""
    if config.max_turns is None:
        return config
    return replace(config, max_turns=config.max_turns - Turn.objects.filter(run=run).count())


def spent_until_now(run: Run) -> tuple[Spending, ...]:
    calls = LlmCall.objects.filter(run=run).order_by("agent").values_list("agent")
    cost = Coalesce("cost_nano_usd", "reserved_nano_usd")
    sums = calls.annotate(n=Count("id"), cost=Sum(cost, default=0))
    return tuple(Spending(agent=agent, n_calls=n, nano_usd=cost) for agent, n, cost in sums)
