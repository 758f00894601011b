"""What a post costs where 10,000 agents read its channel.

The baseline judges every subscriber at once, as a poller would. Ours is timed twice: until the loop can
go on, and with the judging of all that are ready then, which is spread over their grants.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count

from benchmarks.parts.measuring import Table, Way, compare, duration, run, times
from cohorts.rules import Policy, build_topology
from engine.core.budget import Budget
from engine.core.claims import Claims
from engine.core.config import RunConfig
from engine.core.draft import Concern
from engine.core.participation import Rules
from engine.core.records import AgentState, Channel, Root, Visibility
from engine.core.scheduler import Place, Scheduler
from engine.core.world import World
from engine.loop.watch import Watch
from tests.runtime.society import make_agent

N_AGENTS, N_AGENTS_SMALL = 10_000, 200
START = datetime(2026, 3, 2, tzinfo=UTC)
AUTHOR = 1
CHANNEL = 1


def tables(*, small: bool) -> Iterator[Table]:
    n_agents = N_AGENTS_SMALL if small else N_AGENTS
    n_rounds = 1 if small else 5
    one = Scene(n_agents, 1, scan_delay_seconds=0)
    patient = Scene(n_agents, 1, scan_delay_seconds=30)
    many = Scene(n_agents, n_agents // 100, scan_delay_seconds=0)
    cases = {
        "one cohort, all parked": (one, one.park_all),
        "one cohort, all parked, scans wait 30 s": (patient, patient.park_all),
        "one cohort, all ready": (one, one.ready_all),
        "cohorts of 100, all parked": (many, many.park_all),
    }
    yield Table(
        title=f"A post with {n_agents:,} subscribers",
        columns=("", "judging all", "ours", "ratio", "with all judging", "ratio", "ready then"),
        rows=[
            (name, *_row(scene, before, n_rounds=n_rounds))
            for name, (scene, before) in cases.items()
        ],
    )


def _row(scene: Scene, before: Way, *, n_rounds: int) -> tuple[str, ...]:
    ways: dict[str, Way] = {
        "all": scene.poll,
        "ours": scene.post,
        "judged": scene.post_and_judge,
    }
    found = compare(ways, n_rounds=n_rounds, before=before)
    before()
    scene.post()
    return (
        duration(found["all"].seconds),
        *(duration(found["ours"].seconds), times(found["ours"].ratio)),
        *(duration(found["judged"].seconds), times(found["judged"].ratio)),
        f"{scene.watch.scheduler.n_ready:,}",
    )


class Scene:
    """A world of agents that read one channel, `n_cohorts` cohorts of the same size, one author."""

    def __init__(self, n_agents: int, n_cohorts: int, *, scan_delay_seconds: float) -> None:
        config = RunConfig(scan_delay_seconds=scan_delay_seconds)
        self.world = _world(n_agents, n_cohorts)
        self.rules = Rules(config=config, claims=Claims(), budget=Budget(config))
        self.watch = Watch(self.world, self.rules, Scheduler())
        self._seqs = count(1)

    def ready_all(self) -> None:
        self.watch.everybody(START)

    def park_all(self) -> None:
        """Let everybody have read everything, judge each, and find that none has work."""
        for agent in self.world.agents:
            # Nobody has a chance to post for a day.
            self.world.states[agent] = AgentState(
                cursor=self.world.last_seq, next_post_at=START + timedelta(days=1)
            )
            self.watch.judge(agent, START)

    def post(self) -> None:
        """Enter a root as a commit does, and tell those whom it concerns."""
        self.watch.concerned(Concern(roots=[self._published()]), START)

    def poll(self) -> None:
        """Enter a root, and ask the judge about every subscriber."""
        self._published()
        for agent in self.world.agents:
            self.watch.judge(agent, START)

    def post_and_judge(self) -> None:
        """Enter a root, and judge each agent that is ready then, as the loop does at its grant."""
        self.post()
        for agent in tuple(self.watch.scheduler.agents(Place.READY)):
            self.watch.judge(agent, START)

    def _published(self) -> Root:
        seq = next(self._seqs)
        root = Root(seq=seq, channel=CHANNEL, author=AUTHOR, is_bot=True, addressed=None, at=START)
        self.world.roots[seq] = root
        self.world.last_seq = seq
        self.world.publish(root)
        return root


def _world(n_agents: int, n_cohorts: int) -> World:
    agents = range(1, n_agents + 1)
    gate = build_topology(
        version=1,
        policy=Policy.ISOLATED,
        memberships=[(agent % n_cohorts, agent) for agent in agents],
        names={cohort: f"c{cohort}" for cohort in range(n_cohorts)},
        agents=agents,
        running=agents,
        members_of={},
    )
    channel = Channel(id=CHANNEL, name="general", topic="", visibility=Visibility.PUBLIC)
    world = World(
        gate=gate,
        agents={agent: make_agent(agent) for agent in agents},
        channels={CHANNEL: channel},
        subscriptions=dict.fromkeys(agents, (CHANNEL,)),
    )
    world.rebuild_caches()
    return world


if __name__ == "__main__":
    run(tables, __doc__)
