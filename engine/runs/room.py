"""How many runs go on at once, on this host and on all; what workers start is bounded."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from django.conf import settings

from engine.runs.refusals import RunRefused
from engine.store.database import leases_in_force, one_start_at_once

if TYPE_CHECKING:
    from engine.models import Simulation


class MustWait(RunRefused):
    """A run that must wait for another one's end; the message says why."""


def check_room(simulation: Simulation) -> None:
    """Raise `MustWait` if as many other runs go on as may; until the transaction ends nobody else
    starts one that is counted.

    Terminals' runs are counted, and never refused. Of a driver that died the lease counts until
    it ends.
    """
    one_start_at_once()
    sentence = no_room(simulation)
    if sentence:
        raise MustWait(sentence)


def no_room(simulation: Simulation) -> str:
    """Return the sentence on why a worker of this host cannot begin a run now; "" if it can."""
    others = leases_in_force().exclude(simulation=simulation)
    owners = list(others.values_list("owner", flat=True))
    if len(owners) >= settings.SIM_MAX_RUNS:
        return (
            f"As many runs go on as may (SIM_MAX_RUNS is {settings.SIM_MAX_RUNS}): it begins when "
            "one of them ends."
        )
    host = socket.gethostname()
    n_here = sum(owner.rpartition(":")[0] == host for owner in owners)
    if n_here >= settings.SIM_MAX_RUNS_PER_HOST:
        return (
            "As many runs go on as may on a host (SIM_MAX_RUNS_PER_HOST is "
            f"{settings.SIM_MAX_RUNS_PER_HOST}): it begins when one of them ends."
        )
    return ""
