"""Watches a run from outside: whenever somebody is selected, and whenever time is about to pass,
every agent is judged anew, from a world without caches, and compared with what the loop does.

Time moves in jumps alone, so what holds at the beginning of a jump holds for all of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import ceil
from typing import Any, cast

from engine.core.scheduler import Grant
from engine.core.standing import standing
from engine.core.world import World
from engine.loop.engine import Engine
from tests.runtime.society import Live


@dataclass(slots=True)
class Wait:
    """An agent is eligible since then; `rivals` are all that were so meanwhile, itself included."""

    since: datetime
    rivals: set[int] = field(default_factory=set)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """One grant as seen from outside; `n_rivals` is exact."""

    agent: int
    number: int
    at: datetime
    waited_seconds: float
    n_rivals: int


class Observer:
    """Collects `breaches` of the laws of selection, as sentences, and every `selection`."""

    def __init__(self, live: Live) -> None:
        self.engine: Engine = live.engine
        self.clock = live.clock
        self.breaches: list[str] = []
        self.selections: list[Selection] = []
        self.in_flight: dict[int, datetime] = {}
        self.ended_at: dict[int, datetime] = {}
        self.n_jumps_with_a_queue = 0
        self.most_in_flight = 0
        self._last_selected: dict[int, int] = {}
        self._waits: dict[int, Wait] = {}
        self._watch_grants()
        self._watch_turns()
        self._watch_time()

    @property
    def longest_wait_seconds(self) -> float:
        return max((one.waited_seconds for one in self.selections), default=0.0)

    # --- seams ------------------------------------------------------------------------------------

    def _watch_grants(self) -> None:
        scheduler = cast("Any", self.engine.scheduler)
        select: Callable[[datetime], Grant | None] = scheduler.grant

        def grant(now: datetime) -> Grant | None:
            eligible = self.eligible(now)
            chosen = select(now)
            if chosen is not None:
                self._selected(chosen, eligible, now)
            return chosen

        scheduler.grant = grant

    def _watch_turns(self) -> None:
        watch = cast("Any", self.engine.watch)
        end: Callable[..., None] = watch.turn_over

        def turn_over(agent: int, now: datetime, **how: Any) -> None:
            self.in_flight.pop(agent, None)
            self.ended_at[agent] = now
            end(agent, now, **how)

        watch.turn_over = turn_over

    def _watch_time(self) -> None:
        selector = cast("Any", asyncio.get_running_loop())._selector
        jump: Callable[[float], None] = selector._jump

        def watched_jump(seconds: float) -> None:
            self._time_passes()
            jump(seconds)

        selector._jump = watched_jump

    # --- judging ----------------------------------------------------------------------------------

    def eligible(self, now: datetime) -> list[int]:
        """Return who is eligible now, ascending, whatever scheduler and caches believe."""
        known = self.engine.world
        fresh = World(gate=known.gate, last_seq=known.last_seq)
        for table in ("agents", "channels", "states", "desks", "subscriptions", "roots"):
            setattr(fresh, table, getattr(known, table))
        fresh.threads, fresh.pairs, fresh.memories = known.threads, known.pairs, known.memories
        fresh.rebuild_caches()
        return [
            agent
            for agent in sorted(known.agents)
            if agent not in self.in_flight
            and not self._is_resting(agent, now)
            and standing(fresh, agent, now, self.engine.rules).work
        ]

    def _is_resting(self, agent: int, now: datetime) -> bool:
        """True of an agent that was put off, or sleeps off a turn that did nothing."""
        watch = self.engine.watch
        retry_at = watch._retries.get(agent)
        nap = watch._naps.get(agent)
        if nap is not None:
            rows = [row for row in self.engine_turns() if row.agent == agent and row.finished_at]
            if rows and (rows[-1].n_committed or rows[-1].n_llm_calls):
                self.breaches.append(f"law 7: agent {agent} sleeps although its turn did something")
        asleep = nap is not None and (agent not in watch._stirred or now < nap.until)
        return asleep or (retry_at is not None and now < retry_at)

    def engine_turns(self) -> list[Any]:
        tables = cast("Any", self.engine.committer)._store._tables
        return list(tables.turns.values())

    def _selected(self, grant: Grant, eligible: list[int], now: datetime) -> None:
        agent, config = grant.agent, self.engine.config
        if agent in self.in_flight:
            self.breaches.append(f"law 3: agent {agent} is in two turns at once")
        if agent not in eligible:
            self.breaches.append(f"law 1: agent {agent} is selected and not eligible")
        first = min(eligible, key=self._order, default=agent)
        if self._order(first) < self._order(agent):
            self.breaches.append(f"law 1: agent {agent} is selected before {first}")
        ended_at = self.ended_at.get(agent)
        rest = timedelta(seconds=config.turn_delay_seconds)
        if ended_at is not None and now < ended_at + rest:
            self.breaches.append(f"law 3: agent {agent} is selected while it cools down")
        self._note_rivals(eligible, now)
        self._note_selection(grant, now)
        self.in_flight[agent] = now
        self._last_selected[agent] = grant.number
        self.most_in_flight = max(self.most_in_flight, len(self.in_flight))
        if len(self.in_flight) > config.concurrent_turns:
            self.breaches.append(f"law 4: {len(self.in_flight)} turns are in flight")

    def _order(self, agent: int) -> tuple[int, int]:
        stored = self.engine.world.state(agent).last_selected
        return (self._last_selected.get(agent, stored), agent)

    def _note_rivals(self, eligible: list[int], now: datetime) -> None:
        """Let those who wait meet all who are eligible now; who is not any more waits no longer."""
        self._waits = {agent: self._waits.get(agent, Wait(now)) for agent in eligible}
        for wait in self._waits.values():
            wait.rivals.update(eligible)

    def _note_selection(self, grant: Grant, now: datetime) -> None:
        wait = self._waits.pop(grant.agent, Wait(now, {grant.agent}))
        waited_seconds = (now - wait.since).total_seconds()
        config = self.engine.config
        rounds = ceil(len(wait.rivals) / config.concurrent_turns)
        if waited_seconds > rounds * config.max_turn_seconds:
            self.breaches.append(f"law 5: agent {grant.agent} waited {waited_seconds} s")
        if grant.n_rivals < len(wait.rivals) or grant.waited_seconds < waited_seconds:
            self.breaches.append(f"law 5: the wait of agent {grant.agent} is told too short")
        self.selections.append(
            Selection(
                agent=grant.agent,
                number=grant.number,
                at=now,
                waited_seconds=waited_seconds,
                n_rivals=len(wait.rivals),
            )
        )

    def _time_passes(self) -> None:
        now = self.clock.now()
        eligible = self.eligible(now)
        self._note_rivals(eligible, now)
        self.n_jumps_with_a_queue += bool(eligible)
        free = self.engine.config.concurrent_turns - len(self.in_flight)
        if eligible and free > 0 and not self._is_ending():
            self.breaches.append(f"law 2: {free} slots are empty while {eligible} are eligible")

    def _is_ending(self) -> bool:
        engine = self.engine
        most = engine.config.max_turns
        limited = most is not None and len(self.selections) >= most
        ends_at = engine._limits.ends_at
        late = ends_at is not None and self.clock.now() >= ends_at
        return engine.is_stopping or engine.line.circuit_is_open or limited or late
