"""How late the event loop comes to what is due, in a run on the real clock and on a real database.

A probe sleeps for 5 ms again and again and notes how much longer it took, and how much of that time
the loop computed, which other work on the machine does not make more. Everything else of a run is
there too: the writer's thread, the pulse, and the offline LLM, which answers after a log-normal time
(median 0.5 s, sigma 0.8) and thinks on the loop.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.parts.database import fresh_database
from benchmarks.parts.houses import make_houses
from benchmarks.parts.measuring import Table, duration, percentile, run
from benchmarks.parts.probe import Probe

N_SLOTS = 50
#: Agents, and how many of them share a cohort.
SIZES, SIZES_SMALL = ((200, 20), (10_000, 20), (10_000, 10_000)), ((40, 20),)
RUN_SECONDS, RUN_SECONDS_SMALL = 40.0, 1.0
MEDIAN_SECONDS = 0.5
#: Of what an agent may do, so much that it never comes to an end.
PLENTY = 1000


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

    simulation = make_houses("lag", n_agents, cohort_size)
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


if __name__ == "__main__":
    run(tables, __doc__)
