"""A worker picks a run up: one that is queued, or was resumed, or whose driver died."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from django.db.models import F
from django.utils import timezone

from engine.core.config import RunConfig
from engine.core.settings import RefusedSetting
from engine.loop.ending import Ending, EndReason
from engine.models import Run, RunControl, Ticket
from engine.models.runs import LIVE
from engine.runs.end import end_undriven, first_moment, settle_turns_and_calls
from engine.runs.refusals import RunIsLive, RunRefused, check_priced
from engine.runs.room import MustWait, check_room
from engine.runs.start import (
    Begun,
    TakenMeanwhile,
    check_and_load,
    clear_the_way,
    coming_alive,
    for_the_rest,
    lease_of_now,
    resume,
    spent_until_now,
    take,
    ticket_used,
    with_raised_caps,
)
from engine.store.database import TROUBLE, is_driven, read_lease

if TYPE_CHECKING:
    from datetime import datetime

    from engine.store.database import LeaseState

log = logging.getLogger(__name__)

#: A run that loses one driver more ends: it may be what kills them.
MAX_TAKEOVERS = 3
#: What is left of a time limit that is over, in minutes: enough to end for that reason.
NO_MINUTES = 0.001

#: What a run comes to whose driver died before it could do what was asked of it.
_ENDINGS = {
    RunControl.Wish.STOP: Ending(
        reason=EndReason.STOPPED, sentence="Its driver died before it stopped."
    ),
    RunControl.Wish.PAUSE: Ending(
        reason=EndReason.PAUSE_REQUESTED, sentence="Its driver died before it paused."
    ),
}
_DIED_TOO_OFTEN = Ending(
    reason=EndReason.INTERRUPTED,
    sentence=f"Its driver died, and so had {MAX_TAKEOVERS} before it.",
)


def pick_up(run_id: int) -> Begun | None:
    """Take the right to drive a run that waits for a worker; None if there is nothing to do.

    It may have no ticket any more, be driven by somebody, or have to wait: its ticket then says
    for what. Whatever message led here, and how often, nothing is done twice. Raises what time
    cures of a database's failures.
    """
    ticket = Ticket.objects.select_related("run__simulation").filter(run=run_id).first()
    if ticket is None:
        return None
    run = ticket.run
    try:
        return _pick_up(run)
    except MustWait as waits:
        Ticket.objects.filter(run=run).update(waits_for=str(waits), sent_at=None)
    except RunIsLive:
        Ticket.objects.filter(run=run, run__status=Run.Status.QUEUED).update(sent_at=None)
    except (RunRefused, RefusedSetting) as refusal:
        _refuse(run, str(refusal))
    except TROUBLE:
        raise  # it passes, and the run is sent again
    except Exception as error:  # what nobody can begin must not come again for ever
        log.exception("Run %s could not be picked up.", run.pk)
        _refuse(run, f"{type(error).__name__}: {error}")
    return None


def _pick_up(run: Run) -> Begun | None:
    if run.status == Run.Status.QUEUED:
        return _begin_queued(run)
    if run.status == Run.Status.PAUSED:
        return resume(run.simulation, by_worker=True)
    return _take_over(run)


def in_the_way(run: Run) -> str:
    """Return the sentence about the live run that a queued one must wait for; "" without one.

    A terminal's run that died is not waited for; of two queued ones the older goes first.
    """
    simulation = run.simulation
    live = Run.objects.filter(simulation=simulation, status__in=LIVE).first()
    if live is None:
        older = Run.objects.filter(
            simulation=simulation, status=Run.Status.QUEUED, pk__lt=run.pk, ticket__isnull=False
        ).first()
        return "" if older is None else f"Run {older.pk} of {simulation.name} is queued before it."
    lease = read_lease(simulation.pk)
    has_ticket = Ticket.objects.filter(run=live).exists()
    is_dead = live.status != Run.Status.PAUSED and not is_driven(simulation.pk, lease)
    if is_dead and not has_ticket:
        return ""
    return f"Run {live.pk} of {simulation.name} is {live.status}: it begins when that has ended."


def _begin_queued(run: Run) -> Begun:
    simulation = run.simulation
    config = RunConfig(**run.configuration)
    sentence = in_the_way(run)
    if sentence:
        raise MustWait(sentence)
    check_and_load(config)
    check_priced(simulation, config)
    lease = clear_the_way(simulation)
    with coming_alive(simulation, lease) as liveness:
        check_room(simulation)
        token = take(run, lease)
        starts_at = first_moment(simulation.pk)
        _change(run, status=Run.Status.RUNNING, started_at=starts_at)
    return Begun(
        simulation_id=simulation.pk,
        run_id=run.pk,
        token=token,
        liveness=liveness,
        config=config,
        starts_at=starts_at,
    )


def _take_over(run: Run) -> Begun | None:
    """Go on with a run whose driver is dead, or has been silent for the whole lease."""
    simulation = run.simulation
    lease = lease_of_now(simulation)
    if is_driven(simulation.pk, lease):
        return None
    ending = _ending_without_driver(run)
    if ending is None:
        return _go_on(run, lease)
    end_undriven(run, lease, ending)
    return None


def _ending_without_driver(run: Run) -> Ending | None:
    """Return how a run ends, or pauses, with which nobody is to go on."""
    wish = RunControl.objects.values_list("wish", flat=True).get(run=run)
    if run.status == Run.Status.STOPPING:
        wish = RunControl.Wish.STOP
    if wish not in _ENDINGS and run.takeovers >= MAX_TAKEOVERS:
        return _DIED_TOO_OFTEN
    return _ENDINGS.get(RunControl.Wish(wish))


def _go_on(run: Run, lease: LeaseState) -> Begun:
    simulation = run.simulation
    config = with_raised_caps(run)
    check_and_load(config)
    with coming_alive(simulation, lease) as liveness:
        check_room(simulation)
        token = take(run, lease)
        settle_turns_and_calls(run.pk)
        _change(run, takeovers=F("takeovers") + 1)
        starts_at = first_moment(simulation.pk)
    log.warning(
        "Run %s of %s is taken over from %s.", run.pk, simulation, lease.owner or "a dead driver"
    )
    return Begun(
        simulation_id=simulation.pk,
        run_id=run.pk,
        token=token,
        liveness=liveness,
        config=_until_its_time(run, for_the_rest(run, config), starts_at),
        starts_at=starts_at,
        spent=spent_until_now(run),
    )


def _until_its_time(run: Run, config: RunConfig, now: datetime) -> RunConfig:
    """Return the configuration with what is left of the time limit."""
    if config.max_minutes is None or run.started_at is None:
        return config
    minutes = config.max_minutes - (now - run.started_at).total_seconds() / 60
    return replace(config, max_minutes=max(minutes, NO_MINUTES))


def _change(run: Run, **values: object) -> None:
    """Change a run that still is as it was read, and note that it has a driver."""
    rows = Run.objects.filter(pk=run.pk, status=run.status, takeovers=run.takeovers)
    if not rows.update(**values):
        raise TakenMeanwhile
    ticket_used(run)


def _refuse(run: Run, sentence: str) -> None:
    """End a queued run that cannot begin; one that has begun waits for another try, or host."""
    log.error("Run %s cannot be driven here: %s", run.pk, sentence)
    Ticket.objects.filter(run=run).update(waits_for=sentence)
    n_failed = Run.objects.filter(pk=run.pk, status=Run.Status.QUEUED).update(
        status=Run.Status.FAILED,
        end_reason=EndReason.FAILED,
        detail=sentence,
        finished_at=timezone.now(),
    )
    if n_failed:
        Ticket.objects.filter(run=run).delete()
