"""The pulse's look at the database: one round trip, and the renewal of the lease when due."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db.models import Exists, OuterRef, Subquery

from cohorts.models import TopologyVersion
from engine.models import Inbox, Message, RunControl, RunLease
from engine.ports.store import Beat, Wish
from engine.store.database.lease import boot_seconds, renew_lease
from engine.store.database.promises import day_money, month_money
from engine.store.database.session import ready_connection

if TYPE_CHECKING:
    from datetime import date

    from engine.core.money import MonthMoney

#: The part of a lease in which its driver trusts it; the rest is for clocks that differ.
TRUSTED = 5 / 6
NOT_OURS = Beat(ours=False, wish=Wish.STOP, topology_version=0, has_mail=False)


class Pulse:
    """Looks and renews for one driver; its thread has a connection of its own."""

    def __init__(
        self,
        *,
        simulation: int,
        run: int,
        token: int,
        lease_seconds: float,
        renew_seconds: float,
        taken_at: float,
    ) -> None:
        self._simulation = simulation
        self._run = run
        self._token = token
        self._lease_seconds = lease_seconds
        self._renew_seconds = renew_seconds
        self._renewed_at = taken_at
        #: The day whose money is looked at too; None while nothing is paid for.
        self.day: date | None = None
        #: The schedule that asked for the run, whose money of the day's month is looked at too.
        self.schedule: int | None = None

    @property
    def is_trusted(self) -> bool:
        """True for 5/6 of the lease, counted from before its last renewal on a clock that goes on
        while the process is stopped or the machine sleeps."""
        return boot_seconds() - self._renewed_at < self._lease_seconds * TRUSTED

    def beat(self) -> Beat:
        """Renew the lease if it is time, then read all that a driver has to know at once."""
        ready_connection()
        is_due = boot_seconds() - self._renewed_at >= self._renew_seconds
        found = NOT_OURS if is_due and not self._renew() else self._look()
        if not found.ours:
            self._renewed_at = float("-inf")
        return found

    def _renew(self) -> bool:
        begun_at = boot_seconds()
        renewed = renew_lease(self._simulation, token=self._token, seconds=self._lease_seconds)
        if renewed:
            self._renewed_at = begun_at
        return renewed

    def _look(self) -> Beat:
        control = RunControl.objects.filter(run_id=self._run)
        row = (
            RunLease.objects.filter(simulation_id=self._simulation)
            .annotate(
                version=Subquery(TopologyVersion.objects.values("version")[:1]),
                wish=Subquery(control.values("wish")),
                max_nano_usd=Subquery(control.values("max_nano_usd")),
                max_calls=Subquery(control.values("max_calls")),
                has_notes=Exists(Inbox.objects.filter(simulation_id=OuterRef("pk"))),
                has_messages=Exists(
                    Message.objects.filter(simulation_id=OuterRef("pk"), seq__isnull=True)
                ),
            )
            .get()
        )
        return Beat(
            ours=row.token == self._token,
            wish=Wish(row.wish or Wish.RUN),
            topology_version=row.version or 0,
            has_mail=row.has_notes or row.has_messages,
            max_nano_usd=row.max_nano_usd,
            max_calls=row.max_calls,
            day=None if self.day is None else day_money(self.day),
            month=self._month(),
        )

    def _month(self) -> MonthMoney | None:
        if self.day is None or self.schedule is None:
            return None
        return month_money(self.schedule, self.day)
