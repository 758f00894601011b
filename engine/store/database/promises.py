"""Money promised and spent: rows of calls and purses, inside the transaction of the caller.

A promise is one statement that compares and adds: between a reading and a writing of our own
another process could spend the same money.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from django.db import connection, transaction
from django.db.models import F, Sum

from engine.core.effects import CALL_DIED
from engine.core.errors import Fenced
from engine.core.money import TOO_MANY_CALLS, Caps, DayMoney, MonthMoney, NoMoney
from engine.models import (
    CallText,
    DayCap,
    LlmCall,
    Occasion,
    Purse,
    RunControl,
    RunLease,
    RunSchedule,
    Turn,
)
from engine.store.database import rows
from engine.store.database.lease import leases_in_force
from engine.store.purses import agent_purse, day_purse, month_purse, purses_of, run_purse

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date, datetime

    from django.db.models import QuerySet

    from engine.core.effects import CallRecord, TurnRecord

_PURSE = Purse._meta.db_table
_NO_LIMIT = 2**63 - 1
_RUN_CAP = (
    f"COALESCE((SELECT max_nano_usd FROM {RunControl._meta.db_table} WHERE run_id = %s),"
    f" CAST(%s AS BIGINT), {_NO_LIMIT})"
)
_AGENT_CAP = f"COALESCE(CAST(%s AS BIGINT), {_NO_LIMIT})"
# A schedule that is gone has no money: of nobody's cap it would be unlimited.
_MONTH_CAP = (
    f"COALESCE((SELECT COALESCE(month_nano_usd, {_NO_LIMIT}) FROM {RunSchedule._meta.db_table}"
    " WHERE id = %s), 0)"
)
_DAY_CAP = f"COALESCE((SELECT max_nano_usd FROM {DayCap._meta.db_table} WHERE id = 1), {_NO_LIMIT})"


def _promise(cap: str) -> str:
    return f"""
        INSERT INTO {_PURSE} (name, run_id, spent_nano_usd, reserved_nano_usd)
        SELECT CAST(%s AS VARCHAR(64)), CAST(%s AS BIGINT), 0, CAST(%s AS BIGINT)
        WHERE %s <= {cap}
        ON CONFLICT (name) DO UPDATE
        SET reserved_nano_usd = {_PURSE}.reserved_nano_usd + excluded.reserved_nano_usd
        WHERE {_PURSE}.spent_nano_usd + {_PURSE}.reserved_nano_usd + excluded.reserved_nano_usd
            <= {cap}
    """


_PROMISE_OF_RUN = _promise(_RUN_CAP)
_PROMISE_OF_AGENT = _promise(_AGENT_CAP)
_PROMISE_OF_MONTH = _promise(_MONTH_CAP)
_PROMISE_OF_DAY = _promise(_DAY_CAP)


class _Refused(Exception):
    """Rolls a reservation back; `reason` names the cap."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, kw_only=True)
class Promises:
    """The reservations of one driver of one run; all but the fence in a transaction of the caller.

    `max_in_flight` is the most calls that all runs may have on their way; None is no limit.
    """

    simulation: int
    run: int
    token: int
    max_in_flight: int | None = None

    @cached_property
    def schedule(self) -> int | None:
        """The schedule that asked for the run; asked once, since that does not change."""
        return schedule_of(self.run)

    def pass_fence(self) -> None:
        """Hold the lease for this transaction, or raise `Fenced`: whoever takes it waits for us."""
        lease = RunLease.objects.filter(simulation_id=self.simulation, token=self.token)
        if not list(lease.select_for_update().values_list("pk")):
            raise Fenced(f"reservation by token {self.token}: the lease has moved on")

    def reserve(self, call: CallRecord, turn: TurnRecord, caps: Caps) -> NoMoney | None:
        """Store a call as reserved; a second time, after a lost answer, it is left as it is."""
        key = {"run_id": self.run, "turn": call.turn, "number": call.number}
        if LlmCall.objects.filter(**key).exists():
            return None
        try:
            with transaction.atomic():
                self._promise_all(call, caps)
                self._take_a_place()
                self._store(call, turn)
        except _Refused as refused:
            return self._no_money(refused.reason, call)
        return None

    def _no_money(self, reason: str, call: CallRecord) -> NoMoney:
        assert call.reserved_on is not None
        if reason == "day_cap":
            return NoMoney(reason=reason, day=day_money(call.reserved_on))
        if reason == "month_cap" and self.schedule is not None:
            return NoMoney(reason=reason, month=month_money(self.schedule, call.reserved_on))
        return NoMoney(reason=reason)

    def settle(self, call: CallRecord) -> None:
        """Store what a call came to, and give back what it did not cost; once, whoever asks."""
        row = rows.call_row(call, run=self.run)
        if self._reserved(call).update(**row):
            self._pay(call, cost=call.cost_nano_usd or 0)
            self._keep_text(call)

    def carried(self, call: CallRecord, at: datetime) -> None:
        """Note when what came of a call was taken, for a replay."""
        if call.text is not None:
            texts = CallText.objects.filter(call__run=self.run, call__turn=call.turn)
            texts.filter(call__number=call.number).update(handed_in_at=at)

    def release(self, call: CallRecord) -> None:
        """Undo the reservation of a call that never left."""
        n_deleted, _ = self._reserved(call).delete()
        if n_deleted:
            self._pay(call, cost=0)

    def _keep_text(self, call: CallRecord) -> None:
        if call.text is None:
            return
        key = LlmCall.objects.values_list("pk").get(
            run_id=self.run, turn=call.turn, number=call.number
        )
        CallText.objects.create(call_id=key[0], **rows.call_text_row(call.text))

    def _promise_all(self, call: CallRecord, caps: Caps) -> None:
        """Promise under each cap; the day's row, which all processes want, comes last."""
        assert call.reserved_on is not None
        price = call.reserved_nano_usd
        run_caps = (self.run, caps.run)
        run, agent = run_purse(self.run), agent_purse(self.run, call.agent)
        asked = [
            ("money_cap", _PROMISE_OF_RUN, run, self.run, run_caps),
            ("own_money_cap", _PROMISE_OF_AGENT, agent, self.run, (caps.agent,)),
            ("day_cap", _PROMISE_OF_DAY, day_purse(call.reserved_on), None, ()),
        ]
        if self.schedule is not None:
            month = month_purse(self.schedule, call.reserved_on)
            asked.insert(2, ("month_cap", _PROMISE_OF_MONTH, month, None, (self.schedule,)))
        with connection.cursor() as cursor:
            for reason, query, name, of_run, cap in asked:
                cursor.execute(query, [name, of_run, price, price, *cap, *cap])
                if cursor.rowcount != 1:
                    raise _Refused(reason)

    def _take_a_place(self) -> None:
        """Refuse while as many calls are on their way as may.

        The row of the day is ours by now, so nobody else counts at this moment. What a dead driver
        has left reserved counts until its lease ends, or somebody settles it.
        """
        if self.max_in_flight is None:
            return
        reserved = LlmCall.objects.filter(state=LlmCall.State.RESERVED)
        if reserved.filter(run__in=leases_in_force().values("run")).count() >= self.max_in_flight:
            raise _Refused(TOO_MANY_CALLS)

    def _store(self, call: CallRecord, turn: TurnRecord) -> None:
        row = rows.turn_row(turn, simulation=self.simulation, run=self.run)
        Turn.objects.bulk_create([Turn(**row)], ignore_conflicts=True)
        reserved = {**rows.call_row(call, run=self.run), "state": LlmCall.State.RESERVED}
        LlmCall.objects.bulk_create([LlmCall(**reserved)])

    def _reserved(self, call: CallRecord) -> QuerySet[LlmCall]:
        return LlmCall.objects.filter(
            run_id=self.run, turn=call.turn, number=call.number, state=LlmCall.State.RESERVED
        )

    def _pay(self, call: CallRecord, *, cost: int) -> None:
        names = purses_of(call, run=self.run, schedule=self.schedule)
        _move(names, reserved=call.reserved_nano_usd, cost=cost)


def day_money(day: date) -> DayMoney:
    """Return what all runs have spent and promised on a day, and its cap."""
    purse = Purse.objects.filter(pk=day_purse(day)).first() or Purse()
    cap = DayCap.objects.values_list("max_nano_usd", flat=True).first()
    return DayMoney(day=day, spent=purse.spent_nano_usd, reserved=purse.reserved_nano_usd, cap=cap)


def schedule_of(run: int) -> int | None:
    """Return the schedule that asked for a run, None for a person's."""
    schedules = Occasion.objects.filter(run=run).values_list("schedule", flat=True)
    return schedules.first()


def month_money(schedule: int, day: date) -> MonthMoney:
    """Return what the runs of a schedule have spent and promised in a day's month, and its cap."""
    purse = Purse.objects.filter(pk=month_purse(schedule, day)).first() or Purse()
    caps = RunSchedule.objects.filter(pk=schedule).values_list("month_nano_usd", flat=True)
    return MonthMoney(
        month=day.replace(day=1),
        spent=purse.spent_nano_usd,
        reserved=purse.reserved_nano_usd,
        cap=caps.first(),
    )


def settle_the_dead(run: int) -> None:
    """Settle at its estimate what nobody of this run can settle any more.

    For whoever has fenced its driver, or is its driver at the end.
    """
    dead = LlmCall.objects.filter(run=run, state=LlmCall.State.RESERVED)
    schedule = schedule_of(run)
    sums = dead.order_by("agent", "reserved_on").values_list("agent", "reserved_on")
    for agent, day, nano_usd in sums.annotate(n=Sum("reserved_nano_usd")):
        names = [run_purse(run), agent_purse(run, agent), day_purse(day)]
        if schedule is not None:
            names.append(month_purse(schedule, day))
        _move(names, reserved=nano_usd, cost=nano_usd)
    dead.filter(reserved_nano_usd__gt=0).update(cost_nano_usd=F("reserved_nano_usd"))
    dead.update(state=LlmCall.State.SETTLED, error=CALL_DIED)


def _move(names: Sequence[str], *, reserved: int, cost: int) -> None:
    """Take a promise off the purses, and put what it came to on them."""
    Purse.objects.filter(pk__in=names).update(
        reserved_nano_usd=F("reserved_nano_usd") - reserved,
        spent_nano_usd=F("spent_nano_usd") + cost,
    )
