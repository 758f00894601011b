"""Reservations and settlements in the tables, as the database makes them in transactions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.core.effects import CALL_DIED
from engine.core.errors import Fenced

if TYPE_CHECKING:
    from engine.core.effects import CallRecord, TurnRecord
    from engine.core.money import Caps, NoMoney
    from engine.store.memory.tables import Tables


def reserve(
    tables: Tables, call: CallRecord, turn: TurnRecord, caps: Caps, *, token: int
) -> NoMoney | None:
    """Store a call as reserved, with its turn, or tell which cap forbids it; raise `Fenced`."""
    if tables.token != token:
        raise Fenced(f"reservation by token {token}: the lease has moved on")
    run_cap = caps.run if tables.max_nano_usd is None else tables.max_nano_usd
    refusal = tables.purses.promise(
        call, replace(caps, run=run_cap), run=tables.run, schedule=tables.schedule
    )
    if refusal is None:
        key = (call.turn, call.number)
        tables.turns.setdefault(turn.number, turn)
        tables.calls[key] = call
        tables.reserved[key] = None
    return refusal


def settle(tables: Tables, call: CallRecord, *, token: int) -> None:
    """Store what a reserved call came to, once, if the lease is still its driver's."""
    if tables.token == token and pay(tables, call):
        tables.calls[call.turn, call.number] = call


def release(tables: Tables, call: CallRecord, *, token: int) -> None:
    """Undo the reservation of a call that never left."""
    if tables.token == token and pay(tables, replace(call, cost_nano_usd=0)):
        del tables.calls[call.turn, call.number]


def settle_the_dead(tables: Tables) -> None:
    """Settle at its estimate what the driver before has left reserved."""
    for key in tuple(tables.reserved):
        call = tables.calls[key]
        dead = replace(call, cost_nano_usd=call.reserved_nano_usd or None, error=CALL_DIED)
        pay(tables, dead)
        tables.calls[key] = dead


def pay(tables: Tables, call: CallRecord) -> bool:
    """Give back what a reserved call did not cost; False if it is settled already, or free."""
    key = (call.turn, call.number)
    if key not in tables.reserved:
        return False
    del tables.reserved[key]
    tables.purses.pay(call, cost=call.cost_nano_usd or 0, run=tables.run, schedule=tables.schedule)
    return True
