"""The lease of a simulation: who may drive it, and until when.

Its end is a number of seconds on a clock that no change of the wall clock moves: the database's
on PostgreSQL, the machine's time since boot (with the boot's id) on SQLite.
"""

from __future__ import annotations

import platform
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from django.db import connection, transaction
from django.db.models import F, FloatField, Value
from django.db.models.functions import Extract, Now

from engine.models import RunLease

if TYPE_CHECKING:
    from django.db.models import QuerySet

DATABASE_CLOCK = "database"
#: The advisory lock under which one start at a time counts what goes on.
_STARTS = 0x73696D2D73746172
BOOT_ID_FILE = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseState:
    """A lease as read: whoever wants it names `token` when taking it.

    `seconds_left` is negative or 0 once it has expired.
    """

    token: int
    run_id: int | None
    owner: str
    seconds_left: float

    @property
    def is_expired(self) -> bool:
        return self.seconds_left <= 0


class _Epoch(Extract):
    """Seconds since 1970; PostgreSQL only."""

    lookup_name = "epoch"


def boot_seconds() -> float:
    """Return the seconds since the machine's boot, time asleep included where it is known."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


@cache
def _boot_id() -> str:
    return BOOT_ID_FILE.read_text().strip() if BOOT_ID_FILE.exists() else platform.node()


def _clock() -> str:
    return DATABASE_CLOCK if connection.vendor == "postgresql" else _boot_id()


def _now() -> _Epoch | Value:
    """Return the moment on the lease's clock, as the database or this machine tells it."""
    if connection.vendor == "postgresql":
        return _Epoch(Now(), output_field=FloatField())
    return Value(boot_seconds(), output_field=FloatField())


def read_lease(simulation_id: int) -> LeaseState:
    """Return the simulation's lease, making its row if it never had one."""
    RunLease.objects.get_or_create(simulation_id=simulation_id)
    row = RunLease.objects.annotate(moment=_now()).get(simulation_id=simulation_id)
    return LeaseState(
        token=row.token,
        run_id=row.run_id,
        owner=row.owner,
        seconds_left=row.expires - row.moment if row.clock == _clock() else 0.0,
    )


def take_lease(
    simulation_id: int, run_id: int | None, *, known_token: int, owner: str, seconds: float
) -> int | None:
    """Take the lease from whoever has it; return the new token, or None if somebody was quicker.

    Fences every earlier driver from the commit of this change on. `run_id` None only fences, and
    leaves the lease free.
    """
    with transaction.atomic():
        n_taken = RunLease.objects.filter(simulation_id=simulation_id, token=known_token).update(
            token=F("token") + 1,
            run_id=run_id,
            owner=owner,
            clock=_clock(),
            expires=_now() + (0.0 if run_id is None else seconds),
            beat_at=Now(),
            counters={},
        )
    return known_token + 1 if n_taken else None


def renew_lease(simulation_id: int, *, token: int, seconds: float) -> bool:
    """Move the lease's end to `seconds` from now; False if it is another driver's by now."""
    n_renewed = RunLease.objects.filter(simulation_id=simulation_id, token=token).update(
        expires=_now() + seconds, clock=_clock(), beat_at=Now()
    )
    return n_renewed == 1


def give_back_lease(simulation_id: int, *, token: int) -> None:
    """Let the next driver take over at once."""
    RunLease.objects.filter(simulation_id=simulation_id, token=token).update(
        expires=0.0, owner="", clock=""
    )


def leases_in_force() -> QuerySet[RunLease]:
    """Return the leases that somebody holds and that have not ended, of all simulations."""
    return RunLease.objects.exclude(owner="").filter(clock=_clock(), expires__gt=_now())


def one_start_at_once() -> None:
    """Let nobody else start a run that is counted until this transaction ends.

    On SQLite every transaction that writes is alone anyway.
    """
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_STARTS])
