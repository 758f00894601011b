"""The store over Django's ORM: the only ORM in a run."""

from __future__ import annotations

from engine.store.database.lease import (
    LeaseState,
    give_back_lease,
    leases_in_force,
    one_start_at_once,
    read_lease,
    take_lease,
)
from engine.store.database.liveness import Liveness, is_alive, is_driven, take_liveness
from engine.store.database.promises import day_money, month_money, settle_the_dead
from engine.store.database.recording import count_recorded, recorded_calls
from engine.store.database.session import TROUBLE, Patience, passes
from engine.store.database.store import DjangoStore
from engine.store.database.threads import DatabaseWorker
from engine.store.database.topology import write_snapshot

__all__ = [
    "TROUBLE",
    "DatabaseWorker",
    "DjangoStore",
    "LeaseState",
    "Liveness",
    "Patience",
    "count_recorded",
    "day_money",
    "give_back_lease",
    "is_alive",
    "is_driven",
    "leases_in_force",
    "month_money",
    "one_start_at_once",
    "passes",
    "read_lease",
    "recorded_calls",
    "settle_the_dead",
    "take_lease",
    "take_liveness",
    "write_snapshot",
]
