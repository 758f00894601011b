"""Laws on counters: what runs and turns say of themselves equals the rows."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from engine.export.schema import LIVE_STATUSES, LlmCallRow, RunRow, TurnRow
from engine.laws.law import Breach, Law

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from engine.laws.export import Export

UNSETTLED = frozenset({"running", "interrupted"})
END_REASONS: Mapping[str, frozenset[str | None]] = {
    "queued": frozenset({None}),
    "running": frozenset({None}),
    "stopping": frozenset({None}),
    "paused": frozenset({"money_cap", "call_cap", "circuit_open", "pause_requested"}),
    "stopped": frozenset({"stopped"}),
    "completed": frozenset({"idle", "time_limit", "turn_limit", "nobody_left"}),
    "failed": frozenset({"failed"}),
    "interrupted": frozenset({"interrupted"}),
}


def turn_counters(export: Export) -> Iterator[Breach]:
    for run in export.runs:
        turns = export.turns_of_run.get(run.run, ())
        yield from _differ(run, "turns", run.turns, len(turns))
        yield from _differ(
            run, "gate_filtered", run.gate_filtered, sum(turn.gate_filtered for turn in turns)
        )
        yield from _differ_by_key(run, "rejected", run.rejected, _rejected(turns))


def _rejected(turns: Sequence[TurnRow]) -> Counter[str]:
    total: Counter[str] = Counter()
    for turn in turns:
        total.update(turn.rejected)
    return total


def message_counters(export: Export) -> Iterator[Breach]:
    n_of_run = Counter(message.run for message in export.log if message.author is not None)
    n_of_turn = Counter(message.turn for message in export.log if message.turn is not None)
    for run in export.runs:
        yield from _differ(run, "messages", run.messages, n_of_run[run.run])
    for turn in export.turns:
        n_messages = n_of_turn[turn.number]
        if n_messages > turn.committed and turn.outcome not in UNSETTLED:
            yield Breach(
                f"turn {turn.number}",
                f"it committed {turn.committed} effects and wrote {n_messages} messages.",
            )


def call_counters(export: Export) -> Iterator[Breach]:
    calls: dict[int, list[LlmCallRow]] = {run.run: [] for run in export.runs}
    for call in export.llm_calls:
        calls[call.run].append(call)
    for run in export.runs:
        of_run = calls[run.run]
        by_phase: Counter[str] = Counter(call.phase for call in of_run)
        stated = {str(phase): n_calls for phase, n_calls in run.llm_calls.items()}
        yield from _differ_by_key(run, "llm_calls", stated, by_phase)
        yield from _differ(
            run, "input_tokens", run.input_tokens, sum(call.input_tokens or 0 for call in of_run)
        )
        yield from _differ(
            run, "output_tokens", run.output_tokens, sum(call.output_tokens or 0 for call in of_run)
        )
        yield from _differ(
            run, "cost_usd (nano)", run.cost_usd, sum(call.cost_usd or 0 for call in of_run)
        )


def calls_per_turn(export: Export) -> Iterator[Breach]:
    n_of_turn = Counter(call.turn for call in export.llm_calls)
    for turn in export.turns:
        if turn.llm_calls != n_of_turn[turn.number] and turn.outcome not in UNSETTLED:
            yield Breach(
                f"turn {turn.number}",
                f"it says {turn.llm_calls} calls and there are {n_of_turn[turn.number]}.",
            )


def thread_counters(export: Export) -> Iterator[Breach]:
    """Compare threads and proposals with a run alone in the export and in its simulation.

    Of several runs it cannot be said which of them closed a cycle.
    """
    if len(export.runs) != 1 or any(
        message.run is not None and export.is_elsewhere(message.run) for message in export.messages
    ):
        return
    run = export.runs[0]
    counted: Counter[str] = Counter(
        row.outcome or "open" for row in export.threads if row.opener is not None
    )
    yield from _differ_by_key(run, "threads", run.threads, counted)
    yield from _differ(run, "proposals", run.proposals, len(export.proposals))


def run_endings(export: Export) -> Iterator[Breach]:
    for run in export.runs:
        where = f"run {run.run}"
        if run.end_reason not in END_REASONS[run.status]:
            yield Breach(where, f"it is {run.status} and its end_reason is {run.end_reason}.")
        if (run.finished_at is None) != (run.status in LIVE_STATUSES):
            yield Breach(where, f"it is {run.status}, which does not agree with its finished_at.")
        if run.slot_utilisation is not None and not 0 <= run.slot_utilisation <= 1:
            yield Breach(where, "its slot_utilisation does not lie between 0 and 1.")
    live = [run.run for run in export.runs if run.status in LIVE_STATUSES - {"queued"}]
    if len(live) > 1:
        yield Breach(f"runs {', '.join(map(str, live))}", "more than one run is live.")


def _differ(run: RunRow, name: str, stated: int, counted: int) -> Iterator[Breach]:
    if stated != counted:
        yield Breach(f"run {run.run}", f"{name} is {stated} and the rows say {counted}.")


def _differ_by_key(
    run: RunRow, name: str, stated: Mapping[str, int], counted: Mapping[str, int]
) -> Iterator[Breach]:
    """Compare counts by key; a key left out is a zero."""
    for key in sorted(stated.keys() | counted.keys()):
        yield from _differ(run, f"{name} {key}", stated.get(key, 0), counted.get(key, 0))


COUNTED = "the counters of a run equal its rows"
COUNTER_LAWS = (
    Law(name="counters", file="turns.jsonl", says=COUNTED, check=turn_counters),
    Law(name="counters", file="messages.jsonl", says=COUNTED, check=message_counters),
    Law(name="counters", file="llm_calls.jsonl", says=COUNTED, check=call_counters),
    Law(name="counters", file="threads.jsonl", says=COUNTED, check=thread_counters),
    Law(
        name="calls-per-turn",
        file="turns.jsonl",
        says="a turn that ended counts its own LLM calls right",
        check=calls_per_turn,
    ),
    Law(
        name="run-endings",
        file="runs.jsonl",
        says="a run's status, end_reason and finished_at agree; at most one run is live",
        check=run_endings,
    ),
)
