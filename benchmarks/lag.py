"""How late the event loop comes to what is due, in a run on the real clock and on a real database.

A probe sleeps for 5 ms again and again and notes how much longer it took, and how much of that time
the loop computed, which other work on the machine does not make more. Everything else of a run is
there too: the writer's thread, the pulse, and the offline LLM, which answers after a log-normal time
(median 0.5 s, sigma 0.8) and thinks on the loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterator
from random import Random
from types import TracebackType
from typing import TYPE_CHECKING

from benchmarks.parts.database import fresh_database
from benchmarks.parts.measuring import Table, duration, percentile, run
from benchmarks.parts.meter import Meter

if TYPE_CHECKING:
    from engine.loop.engine import Engine

PROBE_SECONDS = 0.005
N_SLOTS = 50
#: Agents, and how many of them share a cohort.
SIZES, SIZES_SMALL = ((200, 20), (10_000, 20), (10_000, 10_000)), ((40, 20),)
RUN_SECONDS, RUN_SECONDS_SMALL = 40.0, 1.0
MEDIAN_SECONDS = 0.5
#: Of what an agent may do, so much that it never comes to an end.
PLENTY = 1000
#: What houses have and want.
GOODS = (
    "acorn flour, barrel staves, cart wheels, drying racks, fish glue, goose feathers, hemp rope, "
    "iron nails, kiln bricks, lamp oil, maple syrup, oak tannin, pine pitch, quarry stone, reed "
    "mats, sheep wool, tide mills, wood vinegar, yew bows, zinc pails"
).split(", ")


class Probe(contextlib.AbstractContextManager[None]):
    """Observes a run; notes by how many seconds the loop was late each time, and how many it computed."""

    def __init__(self) -> None:
        self.lags: list[float] = []
        self.computed: list[float] = []
        self.meter: Meter | None = None
        self._task: asyncio.Task[None] | None = None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Nothing is left open: the task ends with the loop."""

    def started(self, engine: Engine) -> None:
        config = engine.config
        self.meter = engine.figures = Meter(
            n_slots=config.concurrent_turns, max_turn_seconds=config.max_turn_seconds
        )
        self._task = asyncio.get_running_loop().create_task(self._look())

    def beat(self, engine: Engine) -> None:
        """Nothing to show."""

    async def _look(self) -> None:
        """Look from the first turn on: before it nobody is held up."""
        loop = asyncio.get_running_loop()
        while True:
            had_begun = self.meter is not None and self.meter.n_turns > 0
            due, computed = loop.time() + PROBE_SECONDS, time.thread_time()
            await asyncio.sleep(PROBE_SECONDS)
            if had_begun:
                self.lags.append(loop.time() - due)
                self.computed.append(time.thread_time() - computed)


def tables(*, small: bool) -> Iterator[Table]:
    seconds = RUN_SECONDS_SMALL if small else RUN_SECONDS
    with fresh_database() as database:
        yield Table(
            title=f"Lag of the event loop, {N_SLOTS} slots, {seconds:g} s, {database}",
            columns=(
                *("agents", "in cohorts of", "turns/s", "utilisation"),
                *("lag: median", "p99", "most", "computed: p99", "most"),
            ),
            rows=[
                (f"{n_agents:,}", f"{size:,}", *_row(n_agents, size, seconds))
                for n_agents, size in (SIZES_SMALL if small else SIZES)
            ],
        )


def _row(n_agents: int, cohort_size: int, seconds: float) -> tuple[str, ...]:
    probe = Probe()
    _drive(n_agents, cohort_size, seconds, probe)
    assert probe.meter is not None
    return (
        f"{probe.meter.n_turns / seconds:.1f}",
        f"{probe.meter.utilisation:.4f}",
        *(duration(percentile(probe.lags, share)) for share in (0.5, 0.99, 1.0)),
        *(duration(percentile(probe.computed, share)) for share in (0.99, 1.0)),
    )


def _drive(n_agents: int, cohort_size: int, seconds: float, probe: Probe) -> None:
    from engine import runs
    from engine.core.config import RunConfig
    from engine.models import Channel, RosterEntry, Simulation

    agents = _agents(n_agents, cohort_size)
    simulation = Simulation.objects.create(
        name=f"lag-{n_agents}-{cohort_size}", policy="isolated", roster_chosen=True
    )
    Channel.objects.create(simulation=simulation, name="general")
    RosterEntry.objects.bulk_create(
        (RosterEntry(simulation=simulation, agent_id=agent) for agent in agents), batch_size=1000
    )
    config = RunConfig(
        policy="isolated",
        latency_seconds=MEDIAN_SECONDS,
        max_minutes=seconds / 60,
        concurrent_turns=N_SLOTS,
        max_llm_calls_in_flight=4 * N_SLOTS,
        daily_posts=PLENTY,
        unreviewed_proposals=PLENTY,
        stop_grace_seconds=5.0,
    )
    runs.drive(runs.begin(simulation, config, who="benchmark"), probe)


def _agents(n_agents: int, cohort_size: int) -> list[int]:
    """Make agents that have something to talk about with their cohort; return their numbers."""
    from cohorts.models import Agent, Cohort, Membership

    mark = f"{n_agents}x{cohort_size}"
    luck = Random(1)
    agents = Agent.objects.bulk_create(
        (
            Agent(
                slug=f"a{mark}-{number}",
                bot_name=f"A{mark}n{number}",
                represents=f"House {number}",
                public_profile=_profile(number, luck),
            )
            for number in range(n_agents)
        ),
        batch_size=1000,
    )
    cohorts = Cohort.objects.bulk_create(
        Cohort(name=f"c{mark}-{number}", created_by="benchmark")
        for number in range(-(-n_agents // cohort_size))
    )
    Membership.objects.bulk_create(
        (
            Membership(cohort=cohorts[place // cohort_size], agent=agent, added_by="benchmark")
            for place, agent in enumerate(agents)
        ),
        batch_size=1000,
    )
    return [agent.pk for agent in agents]


def _profile(number: int, luck: Random) -> str:
    goods = luck.sample(GOODS, 6)
    has, wants = ", ".join(goods[:3]), ", ".join(goods[3:])
    return f"House {number} makes {has}. It looks for partners in {wants}."


if __name__ == "__main__":
    run(tables, __doc__)
