"""The way to the model that all turns of a run share."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from engine.core.money import TOO_MANY_CALLS
from engine.turn.permits import Permits

if TYPE_CHECKING:
    from datetime import datetime

    from engine.core.budget import Budget
    from engine.core.effects import CallRecord, TurnRecord
    from engine.core.money import Caps, NoMoney
    from engine.ports.clock import Clock
    from engine.ports.llm import Llm
    from engine.ports.store import Store
    from engine.turn.trust import Trust

#: This many transient failures in a row, over all turns, open the circuit.
CIRCUIT_FAILURES = 10
#: A call for which no place is free on the way to the model asks again after so long.
CROWDED_SECONDS = 0.5


@dataclass(slots=True)
class Doing:
    """What a turn in flight does: whose it is, and the phase and thread of its last question."""

    agent: str
    since: datetime
    phase: str = ""
    thread: int | None = None


class Line:
    """Permits, trust, promises in the store, and the circuit.

    `doing` is for who watches: the turns in flight by number.
    """

    def __init__(
        self,
        llm: Llm,
        *,
        budget: Budget,
        clock: Clock,
        permits: int,
        trust: Trust,
        store: Store,
    ) -> None:
        self.llm = llm
        self.store = store
        self.budget = budget
        self.clock = clock
        self.permits = Permits(permits)
        self.trust = trust
        self.n_failures_in_row = 0
        self.last_failure = ""
        self.doing: dict[int, Doing] = {}

    @property
    def circuit_is_open(self) -> bool:
        """True after too many transient failures in a row; the run then pauses."""
        return self.n_failures_in_row >= CIRCUIT_FAILURES

    async def promise(
        self, record: CallRecord, *, turn: TurnRecord, caps: Caps
    ) -> tuple[CallRecord, NoMoney | None]:
        """Have a call promised in the store; return it as it leaves, and what forbids it if any.

        While as many calls are on their way as may, it waits here, with its permit.
        """
        while True:
            refusal = await self.store.reserve(record, turn=turn, caps=caps)
            if refusal is None or refusal.reason != TOO_MANY_CALLS:
                return record, refusal
            await self.clock.sleep(CROWDED_SECONDS)
            now = self.clock.now()
            record = replace(record, started_at=now, reserved_on=self.budget.today(now))
