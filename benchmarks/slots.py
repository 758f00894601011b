"""How full the slots are, and how long anybody waits for one, on the virtual clock.

Utilisation is busy slot time over all slot time, while enough agents were eligible to fill the slots.
The baseline is the same engine in rounds: as many turns as there are slots begin together, and all
must be over before the next begin. Each answer of the model takes a log-normal time (median 0.5 s,
sigma 0.8); agents scan, talk, propose and post all the time. Computing takes no time here: what is
measured is the order of things.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import mean

from benchmarks.parts.measuring import Table, run, times
from benchmarks.parts.meter import Meter
from engine.backends.clock import VirtualClock
from engine.core.chance import keyed_random
from engine.core.config import RunConfig
from engine.core.effects import TurnRecord
from engine.loop.ending import Ending
from engine.loop.engine import Engine
from engine.ports.llm import LlmRequest
from engine.store.memory import MemoryStore
from tests.runtime.scripted_llm import ScriptedLlm, eager
from tests.runtime.society import Society, in_virtual_time, make_society

N_AGENTS, COHORT = 200, 20
SLOTS, SLOTS_SMALL = (3, 10, 50), (3,)
MEDIAN_SECONDS, SIGMA = 0.5, 0.8
#: Of what an agent may do, so much that it never comes to an end.
PLENTY = 10**6


class InRounds(Engine):
    """An engine that fills its slots only when all of them are empty."""

    _n_begun = 0

    async def _slot(self) -> Ending | None:
        if self._n_begun == self.config.concurrent_turns:
            self._n_begun = 0
            while self.turns:
                await asyncio.wait(self.turns)
                await asyncio.sleep(0)
        self._n_begun += 1
        return await super()._slot()


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """A run that is over: its meter, its virtual seconds, and its turns.

    `max_turn_seconds` is what the engine was told that the longest may take.
    """

    meter: Meter
    seconds: float
    turns: tuple[TurnRecord, ...]
    max_turn_seconds: float

    @property
    def turns_per_second(self) -> float:
        return self.meter.n_turns / self.seconds

    @property
    def share_of_bound(self) -> float:
        """The largest share that a wait took of its bound, with the longest turn there was."""
        lengths = (turn.finished_at - turn.selected_at for turn in self.turns if turn.finished_at)
        longest = max(lengths).total_seconds() / self.max_turn_seconds
        return max(turn.waited_seconds / (turn.wait_bound_seconds * longest) for turn in self.turns)

    @property
    def longest_wait_seconds(self) -> float:
        return max(turn.waited_seconds for turn in self.turns)


def tables(*, small: bool) -> Iterator[Table]:
    n_turns = 60 if small else 2_000
    played = {
        n_slots: (_play(InRounds, n_slots, n_turns), _play(Engine, n_slots, n_turns))
        for n_slots in (SLOTS_SMALL if small else SLOTS)
    }
    yield Table(
        title=f"Slots in use, {N_AGENTS} agents, {n_turns:,} turns (virtual clock)",
        columns=(
            "slots",
            "in rounds: utilisation",
            "turns/s",
            "ours: utilisation",
            "turns/s",
            "ratio",
        ),
        rows=[
            (f"{n_slots}", *_use(rounds), *_use(ours), times(_gain(rounds, ours)))
            for n_slots, (rounds, ours) in played.items()
        ],
    )
    yield Table(
        title=f"Waits for a slot, {N_AGENTS} agents, {n_turns:,} turns (virtual clock)",
        columns=(
            "slots",
            "mean",
            "longest",
            "ratio",
            "in rounds: longest",
            "most of its bound, ours",
        ),
        rows=[
            (f"{n_slots}", *_wait(ours), _longest(rounds), f"{ours.share_of_bound:.2f}")
            for n_slots, (rounds, ours) in played.items()
        ],
    )


def _use(played: Played) -> tuple[str, str]:
    return f"{played.meter.utilisation:.4f}", f"{played.turns_per_second:.2f}"


def _gain(rounds: Played, ours: Played) -> float:
    return ours.turns_per_second / rounds.turns_per_second


def _wait(played: Played) -> tuple[str, str, str]:
    average = mean(turn.waited_seconds for turn in played.turns)
    ratio = played.longest_wait_seconds / average
    return f"{average:.1f} s", _longest(played), times(ratio)


def _longest(played: Played) -> str:
    return f"{played.longest_wait_seconds:.1f} s"


# --- a run ------------------------------------------------------------------------------------------


def _play(kind: type[Engine], n_slots: int, n_turns: int) -> Played:
    agents = range(1, N_AGENTS + 1)
    cohorts = {
        f"c{number}": tuple(agents[first : first + COHORT])
        for number, first in enumerate(range(0, N_AGENTS, COHORT))
    }
    society = make_society(N_AGENTS, cohorts=cohorts, policy="isolated")
    return in_virtual_time(_drive(kind, society, n_slots, n_turns))


async def _drive(kind: type[Engine], society: Society, n_slots: int, n_turns: int) -> Played:
    clock = VirtualClock(society.starts_at)
    config = RunConfig(
        policy="isolated",
        concurrent_turns=n_slots,
        max_llm_calls_in_flight=4 * n_slots,
        max_turns=n_turns,
        daily_posts=PLENTY,
        unreviewed_proposals=PLENTY,
    )
    store = MemoryStore(society.tables)
    engine = kind(
        loaded=await store.load(),
        store=store,
        llm=ScriptedLlm(clock=clock, script=eager, latency=latency),
        clock=clock,
        config=config,
    )
    meter = Meter(n_slots=n_slots)
    engine.figures = meter
    await engine.run()
    return Played(
        meter=meter,
        seconds=(clock.now() - society.starts_at).total_seconds(),
        turns=tuple(society.tables.turns.values()),
        max_turn_seconds=config.max_turn_seconds,
    )


def latency(request: LlmRequest) -> float:
    """Return the seconds of one answer, the same for the same request."""
    key = (request.agent, request.turn, request.phase, request.thread or 0, request.attempt)
    return MEDIAN_SECONDS * keyed_random(1, *key).lognormvariate(0.0, SIGMA)


if __name__ == "__main__":
    run(tables, __doc__)
