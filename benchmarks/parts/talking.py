"""A run over a society of `benchmarks.parts.society`, with a model that answers at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.parts.society import words
from engine.core.usage import Usage
from engine.ports.llm import LlmAnswer, Move, Written

if TYPE_CHECKING:
    from engine.models import Simulation
    from engine.ports.llm import LlmRequest


class InstantLlm:
    """Implements the LLM port: goes on with every talk, in words that it has not used before."""

    free = True

    def upper_estimate(self, _request: LlmRequest) -> int:
        return 0

    async def complete(self, request: LlmRequest) -> LlmAnswer:
        return LlmAnswer(
            decision=Written(move=Move.CONTINUE, text=words(request.turn * 7919)),
            usage=Usage(input_tokens=900, output_tokens=90, cost_nano_usd=0),
            model="benchmark",
            prompt_version="1",
            finish_reason="end_turn",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Talked:
    """What a run of `n_turns` turns took; each wrote one message after one call.

    `first_turn_seconds` is from its beginning to its first selection.
    """

    n_turns: int
    turns_per_second: float
    first_turn_seconds: float


def talk(simulation: Simulation, *, n_turns: int, n_slots: int) -> Talked:
    """Run until so many turns were taken, on the real clock, as `runsim` does."""
    from django.db.models import Max, Min, Sum
    from django.utils import timezone

    from engine import build, runs
    from engine.core.settings import configuration
    from engine.models import Turn
    from engine.runs.progress import Silence

    vars(build)["OfflineLlm"] = lambda *_words, **_options: InstantLlm()
    config = configuration(
        {
            "concurrent_turns": n_slots,
            "thread_messages": 100,
            "active_thread_threshold": 1,
            "daily_posts": 0,
        },
        seed=1,
        max_turns=n_turns,
        until_idle=True,
    )
    begun_at = timezone.now()
    begun = runs.begin(simulation, config, who="benchmark")
    runs.drive(begun, Silence())
    taken = Turn.objects.filter(run=begun.run_id)
    found = taken.aggregate(
        first=Min("selected_at"),
        last=Max("finished_at"),
        n_calls=Sum("llm_calls"),
    )
    n_taken = taken.count()
    assert found["n_calls"] == n_taken, "every turn makes one call"
    return Talked(
        n_turns=n_taken,
        turns_per_second=n_taken / (found["last"] - found["first"]).total_seconds(),
        first_turn_seconds=(found["first"] - begun_at).total_seconds(),
    )
