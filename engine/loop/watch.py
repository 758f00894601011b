"""Who is judged when: the loop's view of every agent's place, and what wakes it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from engine.core.config import EMPTY_REST_SECONDS
from engine.core.parked import Parked
from engine.core.scheduler import Place, Scheduler
from engine.core.standing import Standing, standing

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.core.draft import Concern
    from engine.core.participation import Rules
    from engine.core.world import World


@dataclass(slots=True)
class _Nap:
    """The rest after turns that did nothing: at least `until`, and then until the agent is stirred."""

    until: datetime
    n_in_row: int


class Watch:
    """Puts every agent in its place. The scheduler holds the places, `standing` decides them.

    An agent is judged when its turn is over, when a timer fires, when an applied change concerns
    it, and once more when a slot is granted.
    """

    def __init__(self, world: World, rules: Rules, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self._world = world
        self._rules = rules
        self._parked = Parked()
        self._naps: dict[int, _Nap] = {}
        self._stirred: set[int] = set()
        self._retries: dict[int, datetime] = {}
        self._soon: dict[int, None] = {}
        self._on_budget: dict[int, None] = {}
        self.whys: dict[int, str] = {}

    # --- asking ----------------------------------------------------------------------------------

    def standing(self, agent: int, now: datetime) -> Standing:
        """Judge one agent, the rests of its own included."""
        retry_at = self._retries.get(agent)
        if retry_at is not None and now < retry_at:
            return Standing(due_at=retry_at, why="backoff")
        found = standing(self._world, agent, now, self._rules)
        nap = self._naps.get(agent)
        if nap is None or not found.work:
            return found
        if agent not in self._stirred:
            return replace(found, work=(), why="asleep")
        return found if now >= nap.until else Standing(due_at=nap.until, why="asleep")

    @property
    def has_timer_of_ours(self) -> bool:
        """True while an engine timer (cooldown, back-off, scan delay, window) may bring work."""
        return bool(self._soon)

    @property
    def spent_cap(self) -> str:
        """The run's cap that keeps somebody from working, or an empty string."""
        return next((self.whys[agent] for agent in self._on_budget), "")

    # --- placing ---------------------------------------------------------------------------------

    def judge(self, agent: int, now: datetime) -> Standing | None:
        """Put an agent where it belongs now; one in flight is judged when its turn is over."""
        if agent not in self.scheduler:
            self.scheduler.add(agent, self._world.state(agent).last_selected)
        if self.scheduler.place(agent) is Place.IN_FLIGHT:
            return None
        found = self.standing(agent, now)
        self.settle(agent, found, now)
        return found

    def settle(self, agent: int, found: Standing, now: datetime) -> None:
        """Put an agent where its standing says."""
        self.whys[agent] = found.why
        self._on_budget.pop(agent, None)
        self._soon.pop(agent, None)
        self._parked.discard(agent)
        if found.work:
            self.scheduler.make_ready(agent, now)
            return
        times = [at for at in (found.due_at, found.calendar_at) if at is not None]
        self.scheduler.rest(agent, _place(found), min(times, default=None))
        if found.out:
            return
        if found.due_at is not None:
            self._soon[agent] = None
        if found.why in {"call_cap", "money_cap"}:
            self._on_budget[agent] = None
        self._parked.add(agent, self._world.reading_keys(agent), found.waits_for)

    def selected(self, agent: int, found: Standing) -> None:
        """Take an agent into flight; what concerns it from now on is newer than its view."""
        self._soon.pop(agent, None)
        self._retries.pop(agent, None)
        self._stirred.discard(agent)
        self._parked.add(agent, self._world.reading_keys(agent), found.waits_for)

    # --- waking ----------------------------------------------------------------------------------

    def timers_fired(self, now: datetime) -> None:
        """Judge those whose time has come; but for a cooldown, that is news to who sleeps."""
        for agent in self.scheduler.fired(now):
            if self.whys[agent] != "cooling":
                self._stirred.add(agent)
            self.judge(agent, now)

    def concerned(self, concern: Concern, now: datetime) -> None:
        """Judge, in the order of the effects, those whom an applied change concerns."""
        for agent in self._whom(concern):
            self._stirred.add(agent)
            if agent not in self.scheduler or self.scheduler.place(agent) is not Place.READY:
                self.judge(agent, now)

    def _whom(self, concern: Concern) -> Iterable[int]:
        if concern.everybody:
            return tuple(self._world.agents)
        agents = dict(concern.agents)
        for root in concern.roots:
            agents.update(dict.fromkeys(self._parked.readers(self._world.publishing_keys(root))))
        for agent in concern.seats:
            agents.update(dict.fromkeys(self._parked.waiting_for(agent)))
        return agents

    def seats_returned(self, agent: int, now: datetime) -> None:
        """Judge those who wait for a seat that an agent's turn has given back."""
        for other in self._parked.waiting_for(agent):
            if other != agent:
                self._stirred.add(other)
                self.judge(other, now)

    def budget_returned(self, now: datetime) -> None:
        """Judge those who wait for calls or money."""
        for agent in tuple(self._on_budget):
            self._stirred.add(agent)
            self.judge(agent, now)

    def everybody(self, now: datetime) -> None:
        for agent in tuple(self._world.agents):
            self.judge(agent, now)

    # --- after a turn ----------------------------------------------------------------------------

    def turn_over(
        self, agent: int, now: datetime, *, empty: bool, retry_at: datetime | None
    ) -> None:
        """Release an agent from flight and judge it.

        After a turn that changed nothing and asked nobody it sleeps until something newer
        concerns it, for at least 5, 15, then 30 seconds.
        """
        if empty:
            before = self._naps.get(agent)
            n_in_row = 1 if before is None else before.n_in_row + 1
            rest = EMPTY_REST_SECONDS[min(n_in_row, len(EMPTY_REST_SECONDS)) - 1]
            self._naps[agent] = _Nap(now + timedelta(seconds=rest), n_in_row)
        else:
            self._naps.pop(agent, None)
        if retry_at is not None:
            self._retries[agent] = retry_at
        self.scheduler.rest(agent, Place.PARKED, None)
        self.judge(agent, now)


def _place(found: Standing) -> Place:
    if found.out:
        return Place.OUT
    return Place.COOLING if found.why == "cooling" else Place.PARKED
