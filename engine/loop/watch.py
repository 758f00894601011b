"""Who is judged when: the loop's view of every agent's place, and what wakes it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from engine.core.config import EMPTY_REST_SECONDS
from engine.core.parked import Parked
from engine.core.scheduler import Place, Scheduler
from engine.core.standing import Standing, Work, standing

if TYPE_CHECKING:
    from collections.abc import Collection

    from engine.core.draft import Concern
    from engine.core.participation import Rules
    from engine.core.records import Root
    from engine.core.world import World

#: So many agents are judged at a time; nothing else goes on meanwhile.
JUDGED_AT_ONCE = 100
#: Why nobody can call any more, until a cap is raised or money comes back.
SHARED_CAPS = frozenset({"call_cap", "money_cap", "month_cap", "day_cap"})
#: The standing of an agent that may have any work until it is judged.
UNJUDGED = Standing(work=tuple(Work))


@dataclass(slots=True)
class _Nap:
    """The rest after turns that did nothing: at least `until`, and then until the agent is stirred."""

    until: datetime
    n_in_row: int


class Watch:
    """Puts every agent in its place. The scheduler holds the places, `standing` decides them.

    An agent is judged when its turn is over, when a timer fires, when an applied change concerns
    it, and once more when a slot is granted. Of a crowd that one thing concerns each is ready
    until then, unjudged; and who only waits for posts is not judged for each of them.
    """

    def __init__(self, world: World, rules: Rules, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self._world = world
        self._rules = rules
        self._parked = Parked()
        self._naps: dict[int, _Nap] = {}
        self._stirred: set[int] = set()
        self._retries: dict[int, datetime] = {}
        self._posts_wanted: dict[int, int] = {}
        self._soon: dict[int, None] = {}
        self._on_budget: dict[int, None] = {}
        self.whys: dict[int, str] = {}

    # --- asking ----------------------------------------------------------------------------------

    def standing(self, agent: int, now: datetime, *, briefly: bool = False) -> Standing:
        """Judge one agent, the rests of its own included; `briefly`, perhaps not all its work."""
        retry_at = self._retries.get(agent)
        if retry_at is not None and now < retry_at:
            return Standing(due_at=retry_at, why="backoff")
        nap = self._naps.get(agent)
        # Whoever sleeps in spite of its work has to hear of all that could wake it.
        briefly = briefly and nap is None
        found = standing(self._world, agent, now, self._rules, briefly=briefly)
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
        if self._is_in_flight(agent):
            return None
        found = self.standing(agent, now, briefly=True)
        self.settle(agent, found, now)
        return found

    def _judge_all(self, agents: Collection[int], now: datetime) -> None:
        """Judge a few; of more, each when a slot is granted, and ready until then."""
        for agent in agents:
            if len(agents) <= JUDGED_AT_ONCE:
                self.judge(agent, now)
            elif not self._is_in_flight(agent):
                self.settle(agent, UNJUDGED, now)

    def _is_in_flight(self, agent: int) -> bool:
        if agent not in self.scheduler:
            self.scheduler.add(agent, self._world.state(agent).last_selected)
        return self.scheduler.place(agent) is Place.IN_FLIGHT

    def settle(self, agent: int, found: Standing, now: datetime) -> None:
        """Put an agent where its standing says."""
        self.whys[agent] = found.why
        self._on_budget.pop(agent, None)
        self._soon.pop(agent, None)
        self._posts_wanted.pop(agent, None)
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
        if found.why in SHARED_CAPS:
            self._on_budget[agent] = None
        if agent not in self._naps:
            self._posts_wanted[agent] = found.n_posts_wanted
        self._park(agent, found)

    def selected(self, agent: int, found: Standing) -> None:
        """Take an agent into flight; what concerns it from now on is newer than its view."""
        self._soon.pop(agent, None)
        self._retries.pop(agent, None)
        self._stirred.discard(agent)
        self._park(agent, found)

    def _park(self, agent: int, found: Standing) -> None:
        feeds = self._world.reading_keys(agent)
        self._parked.add(agent, feeds, found.waits_for, found.invited_to)

    # --- waking ----------------------------------------------------------------------------------

    def timers_fired(self, now: datetime) -> None:
        """Judge those whose time has come; but for a cooldown, that is news to who sleeps."""
        fired = self.scheduler.fired(now)
        self._stirred.update(agent for agent in fired if self.whys[agent] != "cooling")
        self._judge_all(fired, now)

    def concerned(self, concern: Concern, now: datetime) -> None:
        """Judge, in the order of the effects, those whom an applied change concerns."""
        agents = self._world.agents if concern.everybody else self._whom(concern)
        self._stirred.update(agents)
        self._judge_all([agent for agent in agents if not self._is_ready(agent)], now)

    def _is_ready(self, agent: int) -> bool:
        return agent in self.scheduler and self.scheduler.place(agent) is Place.READY

    def _whom(self, concern: Concern) -> dict[int, None]:
        agents = dict(concern.agents)
        for root in concern.roots:
            readers = self._readers(root)
            self._stirred.update(readers)
            agents.update((agent, None) for agent in readers if self._must_hear(agent, root))
        for root in concern.reopened:
            agents.update(self._readers(root))
        for agent in concern.seats:
            agents.update(dict.fromkeys(self._parked.waiting_for(agent)))
        for talk in concern.talks:
            agents.update(dict.fromkeys(self._parked.invited_to(talk)))
        return agents

    def _readers(self, root: Root) -> dict[int, None]:
        return dict.fromkeys(self._parked.readers(self._world.publishing_keys(root)))

    def _must_hear(self, agent: int, root: Root) -> bool:
        """Count a new root for an agent parked under its feed; tell whether it must be judged.

        It need not be if it would have no work for any post, or not for this one; or if it waits
        for more posts than that, or for this one to be old enough.
        """
        n_wanted = self._posts_wanted.get(agent)
        if n_wanted is None or (n_wanted > 0 and not root.is_bot):
            return True
        if n_wanted == 0 or root.author == agent or root.addressed is not None:
            return False
        self._posts_wanted[agent] = n_wanted - 1
        if n_wanted == 1:
            return True
        delay_seconds = self._rules.config.scan_delay_seconds
        self.scheduler.hasten(agent, root.at + timedelta(seconds=delay_seconds))
        self._soon[agent] = None
        self.whys[agent] = "scan_delay"
        return False

    def seats_returned(self, agent: int, now: datetime) -> None:
        """Judge those who wait for a seat that an agent's turn has given back."""
        others = [other for other in self._parked.waiting_for(agent) if other != agent]
        self._stirred.update(others)
        self._judge_all(others, now)

    def budget_returned(self, now: datetime) -> None:
        """Judge those who wait for calls or money."""
        waiting = tuple(self._on_budget)
        self._stirred.update(waiting)
        self._judge_all(waiting, now)

    def everybody(self, now: datetime) -> None:
        self._judge_all(self._world.agents, now)

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
