"""How late the loop of a run comes to what is due while many calls of the real client are in flight.

Runs on the real clock and a real database ask the Anthropic backend, at more and more slots; the
service is a stub on this machine that answers after a log-normal time (median 4 s, sigma 0.8). A
probe sleeps for 5 ms on the run's loop and notes how much longer that took. The client has a loop of
its own, in a thread; `on the run's loop` is the same client without it, the baseline.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterator
from typing import Any
from unittest.mock import patch

from benchmarks.parts.database import fresh_database
from benchmarks.parts.houses import make_houses
from benchmarks.parts.measuring import Table, duration, percentile, run
from benchmarks.parts.model_server import model_server
from benchmarks.parts.probe import Probe

N_AGENTS, N_AGENTS_SMALL, COHORT_SIZE = 2_000, 20, 20
N_SLOTS, N_SLOTS_SMALL = (10, 50, 100, 200, 400), (4,)
RUN_SECONDS, RUN_SECONDS_SMALL = 30.0, 1.0
MEDIAN_SECONDS, MEDIAN_SECONDS_SMALL = 4.0, 0.05
#: Of what an agent may do, so much that it never comes to an end.
PLENTY = 1000


def tables(*, small: bool) -> Iterator[Table]:
    seconds = RUN_SECONDS_SMALL if small else RUN_SECONDS
    median = MEDIAN_SECONDS_SMALL if small else MEDIAN_SECONDS
    with fresh_database() as database, model_server(median) as url:
        yield Table(
            title=f"Lag of the loop beside calls in flight, {seconds:g} s, {database}",
            columns=(
                *("slots", "client", "calls/s", "in flight"),
                *("lag: median", "p99", "most"),
            ),
            rows=[
                (f"{n_slots}", where, *_row(n_slots, where, seconds, url, small=small))
                for n_slots in (N_SLOTS_SMALL if small else N_SLOTS)
                for where in (ON_RUNS_LOOP, ON_ITS_OWN)
            ],
        )


ON_RUNS_LOOP, ON_ITS_OWN = "on the run's loop", "on its own"


class NoLoop:
    """The client's own loop taken away: what it does, it does on the loop of the run."""

    def __init__(self, name: str) -> None:
        """Nothing is to be started."""

    async def do(self, work: Coroutine[Any, Any, object]) -> object:
        return await work

    async def close(self) -> None:
        """Nothing was started."""


def _row(n_slots: int, where: str, seconds: float, url: str, *, small: bool) -> tuple[str, ...]:
    from engine.backends.llm.anthropic import backend
    from engine.backends.llm.anthropic.own_loop import OwnLoop
    from engine.models import LlmCall

    probe = Probe()
    own_loop = OwnLoop if where == ON_ITS_OWN else NoLoop
    with patch.object(backend, "OwnLoop", own_loop):
        begun = _drive(n_slots, seconds, url, probe, small=small)
    calls = LlmCall.objects.filter(run=begun)
    in_flight = sum(calls.values_list("latency_seconds", flat=True)) / seconds
    return (
        f"{calls.count() / seconds:.1f}",
        f"{in_flight:.0f}",
        *(duration(percentile(probe.lags, share)) for share in (0.5, 0.99, 1.0)),
    )


def _drive(n_slots: int, seconds: float, url: str, probe: Probe, *, small: bool) -> int:
    from django.test.utils import override_settings

    from engine import runs
    from engine.core.config import RunConfig
    from engine.models import Simulation

    n_agents = N_AGENTS_SMALL if small else N_AGENTS
    stored = Simulation.objects.order_by("pk").last()
    if stored is None:
        simulation = make_houses("in-flight", n_agents, COHORT_SIZE)
    else:
        simulation = runs.fresh_world(stored, who="benchmark")
    config = RunConfig(
        policy="isolated",
        llm="anthropic",
        small_model="claude-haiku-5-5",
        large_model="claude-sonnet-5-5",
        max_minutes=seconds / 60,
        concurrent_turns=n_slots,
        max_llm_calls_in_flight=4 * n_slots,
        daily_posts=PLENTY,
        unreviewed_proposals=PLENTY,
        stop_grace_seconds=1.0,
    )
    with override_settings(SIM_ANTHROPIC_API_KEY="benchmark", SIM_ANTHROPIC_BASE_URL=url):
        begun = runs.begin(simulation, config, who="benchmark")
        runs.drive(begun, probe)
    return begun.run_id


if __name__ == "__main__":
    run(tables, __doc__)
