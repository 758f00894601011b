"""A run ends: its row says so only when it is true, and only its own driver may say it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.utils import timezone

from engine.export.summary import summarise
from engine.loop.ending import Ending, EndReason
from engine.models import Run, RunControl, RunLease, Ticket, Turn
from engine.store.database import LeaseState, give_back_lease, settle_the_dead, take_lease

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from engine.loop.figures import Figures

#: The states of a run that somebody drives.
DRIVEN = (Run.Status.RUNNING, Run.Status.STOPPING)
DIED = Ending(reason=EndReason.INTERRUPTED, sentence="Its driver died.")
#: In the counters of a lease, while its run stops.
TURNS_IN_FLIGHT = "turns_in_flight"
_STATUSES = {
    EndReason.MONEY_CAP: Run.Status.PAUSED,
    EndReason.CALL_CAP: Run.Status.PAUSED,
    EndReason.CIRCUIT_OPEN: Run.Status.PAUSED,
    EndReason.PAUSE_REQUESTED: Run.Status.PAUSED,
    EndReason.STOPPED: Run.Status.STOPPED,
    EndReason.FAILED: Run.Status.FAILED,
    EndReason.INTERRUPTED: Run.Status.INTERRUPTED,
}


def status_after(reason: EndReason) -> Run.Status:
    """Return the state that a run is in after it ended, or paused, for this reason."""
    return _STATUSES.get(reason, Run.Status.COMPLETED)


def end(run_id: int, *, token: int, ending: Ending, figures: Figures | None, at: datetime) -> bool:
    """Write how a run ended, `at` the time of its own clock, and give its lease back.

    A driver that lost the lease writes nothing; False then. Without `figures` the run ended
    before it had any.
    """
    with transaction.atomic():
        lease = RunLease.objects.select_for_update().filter(run_id=run_id, token=token).first()
        if lease is None:
            return False
        if figures is not None:
            lease.counters = figures.as_counters()
        lease.wrote_at = max(at, lease.wrote_at or at)
        lease.save(update_fields=["counters", "wrote_at"])
        _conclude(run_id, _as_wished(run_id, ending), at=at)
        give_back_lease(lease.simulation_id, token=token)
    return True


def first_moment(simulation_id: int) -> datetime:
    """Return now, or the last stamp of the simulation if that is later.

    The hosts' clocks may differ, and a virtual one runs ahead; a simulation's time never goes back.
    """
    wrote_at = RunLease.objects.values_list("wrote_at", flat=True).get(simulation=simulation_id)
    now = timezone.now()
    return now if wrote_at is None else max(now, wrote_at)


def _as_wished(run_id: int, ending: Ending) -> Ending:
    """Return the stop that somebody asked for while the run was on its way to a pause."""
    is_stop = RunControl.objects.filter(run=run_id, wish=RunControl.Wish.STOP).exists()
    if is_stop and status_after(ending.reason) == Run.Status.PAUSED:
        return Ending(reason=EndReason.STOPPED)
    return ending


def mark_stopping(
    run_id: int, *, token: int, n_turns: int, picture: dict[str, Any] | None = None
) -> None:
    """Say that a run is on its way to its end: no new turns, `n_turns` in flight finish.

    The picture is what its driver shows beside that.
    """
    Run.objects.filter(
        pk=run_id,
        status=Run.Status.RUNNING,
        simulation__lease__run=run_id,
        simulation__lease__token=token,
    ).update(status=Run.Status.STOPPING)
    # Not once it is given back: a beat that hung would write over the counters of the end.
    held = RunLease.objects.filter(run=run_id, token=token).exclude(owner="")
    held.update(counters=(picture or {}) | {TURNS_IN_FLIGHT: n_turns})


def end_undriven(
    run: Run, lease: LeaseState, ending: Ending = DIED, *, was: Sequence[str] = DRIVEN
) -> bool:
    """Fence the last driver of a run, and end the run if it still is what it `was`.

    False if somebody was quicker: a driver took it, or it moved on by itself.
    """
    token = take_lease(run.simulation_id, None, known_token=lease.token, owner="", seconds=0.0)
    if token is None:
        return False
    with transaction.atomic():
        return _conclude(run.pk, ending, at=first_moment(run.simulation_id), was=was)


def _conclude(run_id: int, ending: Ending, *, at: datetime, was: Sequence[str] = DRIVEN) -> bool:
    """Move a run to where its ending leads, and mark turns that will never end.

    Calls that died in flight are settled at their estimate: they may have been billed.
    """
    settle_turns_and_calls(run_id)
    status = status_after(ending.reason)
    n_ended = Run.objects.filter(pk=run_id, status__in=was).update(
        status=status,
        end_reason=ending.reason,
        detail=ending.sentence,
        finished_at=None if status == Run.Status.PAUSED else at,
    )
    if n_ended:
        Ticket.objects.filter(run=run_id).delete()
        Run.objects.filter(pk=run_id).update(summary=summarise(run_id))
    return bool(n_ended)


def settle_turns_and_calls(run_id: int) -> None:
    """Mark what a driver left behind that can no longer write, or that is at its end."""
    settle_the_dead(run_id)
    Turn.objects.filter(run_id=run_id, outcome="running").update(outcome="interrupted")
