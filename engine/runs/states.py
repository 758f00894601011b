"""What a run is doing, as far as heartbeat and liveness lock prove it; shown, and not stored."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from django.conf import settings

from engine.models import Run, RunControl, RunLease, Ticket
from engine.runs.end import DRIVEN, TURNS_IN_FLIGHT
from engine.store.database import is_alive, read_lease

if TYPE_CHECKING:
    from engine.store.database import LeaseState

#: A driver that has missed so many renewals stalls.
MISSED_RENEWALS = 3
_ASKED = {
    RunControl.Wish.PAUSE: "it was asked to pause",
    RunControl.Wish.DRAIN: "it drains: nothing new is started",
    RunControl.Wish.STOP: "it was asked to stop",
}


class State(StrEnum):
    """What is shown of a run that is not over; one that is shows its status."""

    QUEUED = "queued"
    RUNNING = "running"
    STOPPING = "stopping"
    STALLED = "stalled"
    DEAD = "dead"
    PAUSED = "paused"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    """One run as it is now.

    `state` is a `State`, or the status of a run that is over. `owner` is host and process of the
    driver, `silent_seconds` the time since its last renewal, None without one. `n_turns` counts
    down what a stopping run still has in flight, None before the driver has said it.
    """

    run: int
    simulation: str
    state: str
    sentence: str
    owner: str = ""
    silent_seconds: float | None = None
    n_turns: int | None = None
    takeovers: int = 0


def state_of(run: Run) -> RunState:
    """Return what a run is doing; it has to be read with its simulation."""
    if run.status in DRIVEN:
        return _driven(run, read_lease(run.simulation_id))
    if run.status == Run.Status.QUEUED:
        return _state(run, State.QUEUED, _waits_for(run) or "It waits for a worker.")
    if run.status == Run.Status.PAUSED:
        return _paused(run)
    return _state(run, run.status, f"It is over: {run.end_reason}. {run.detail}".strip())


def _driven(run: Run, lease: LeaseState) -> RunState:
    silent = max(settings.SIM_LEASE_SECONDS - lease.seconds_left, 0.0)
    if not is_alive(run.simulation_id, lease.token):
        return _state(run, State.DEAD, _after_death(run), owner=lease.owner)
    if silent > MISSED_RENEWALS * settings.SIM_LEASE_RENEW_SECONDS:
        sentence = (
            f"Its driver lives and has been silent for {silent:.0f} s; after "
            f"{settings.SIM_LEASE_SECONDS:.0f} s another one may take it over."
        )
        return _state(run, State.STALLED, sentence, owner=lease.owner, silent_seconds=silent)
    if run.status == Run.Status.STOPPING:
        return _stopping(run, lease, silent)
    wish = RunControl.objects.filter(run=run).values_list("wish", flat=True).first()
    asked = _ASKED.get(RunControl.Wish(wish)) if wish else None
    sentence = f"It is driven{f'; {asked}' if asked else ''}."
    return _state(run, State.RUNNING, sentence, owner=lease.owner, silent_seconds=silent)


def _stopping(run: Run, lease: LeaseState, silent: float) -> RunState:
    counters = RunLease.objects.values_list("counters", flat=True).get(pk=run.simulation_id)
    n_turns = counters.get(TURNS_IN_FLIGHT)
    left = "turns" if n_turns is None else "1 turn" if n_turns == 1 else f"{n_turns} turns"
    return _state(
        run,
        State.STOPPING,
        f"It stops when {left} in flight {'is' if n_turns == 1 else 'are'} over.",
        owner=lease.owner,
        silent_seconds=silent,
        n_turns=n_turns,
    )


def _after_death(run: Run) -> str:
    if Ticket.objects.filter(run=run).exists():
        waits_for = _waits_for(run)
        return f"Its driver died; a worker goes on with it. {waits_for}".strip()
    return "Its driver died; the next `runsim` marks it interrupted."


def _paused(run: Run) -> RunState:
    why = f"It is paused ({run.end_reason})."
    if Ticket.objects.filter(run=run).exists():
        why = f"{why} It goes on as soon as a worker has it. {_waits_for(run)}"
    return _state(run, State.PAUSED, f"{why} {run.detail}".strip())


def _waits_for(run: Run) -> str:
    return Ticket.objects.filter(run=run).values_list("waits_for", flat=True).first() or ""


def _state(
    run: Run,
    state: str,
    sentence: str,
    *,
    owner: str = "",
    silent_seconds: float | None = None,
    n_turns: int | None = None,
) -> RunState:
    return RunState(
        run=run.pk,
        simulation=run.simulation.name,
        state=str(state),
        sentence=sentence,
        owner=owner,
        silent_seconds=silent_seconds,
        n_turns=n_turns,
        takeovers=run.takeovers,
    )
