"""The recorded calls of a run, for a replay; read once, before it starts."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from django.db.models import Q

from engine.core.effects import CALL_CANCELLED, CALL_DIED
from engine.core.recording import CallText, RecordedCall
from engine.core.usage import Receipt, Usage
from engine.models import LlmCall

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.db.models import QuerySet

#: Rows that the database hands over at once.
CHUNK = 500
#: What was taken at one moment is answered so far apart, to keep its order.
APART_SECONDS = 1e-6


def answered_calls(run: int) -> QuerySet[LlmCall]:
    """Return the paid calls of a run that came to something, in the order in which they were made."""
    given_up = Q(error__in=[CALL_CANCELLED, CALL_DIED])
    calls = LlmCall.objects.filter(run=run, reserved_on__isnull=False).exclude(given_up)
    return calls.order_by("turn", "number")


def count_recorded(run: int) -> tuple[int, int]:
    """Return how many calls of a run a replay would answer from, and how many are recorded."""
    calls = answered_calls(run)
    return calls.count(), calls.filter(text__isnull=False).count()


def recorded_calls(run: int) -> tuple[RecordedCall, ...]:
    """Return what a replay of a run answers from; parts of prompts that are the same, once."""
    same: dict[str, str] = {}
    calls = answered_calls(run).select_related("text", "run", "agent")
    recorded = [_recorded(call, same) for call in calls.iterator(CHUNK)]
    return tuple(_in_time(recorded))


def _recorded(call: LlmCall, same: dict[str, str]) -> _Timed:
    parts: list[str] = json.loads(call.text.asked)
    text = CallText(
        asked=tuple(same.setdefault(part, part) for part in parts),
        said=call.text.said,
        wait_seconds=call.text.wait_seconds,
    )
    begun_at, taken_at = call.run.started_at, call.text.handed_in_at
    assert begun_at is not None  # it has made calls
    answered_after = (call.started_at - begun_at).total_seconds() + call.latency_seconds
    return _Timed(
        call=RecordedCall(
            agent=call.agent.slug,
            phase=call.phase,
            turn=call.turn,
            after_seconds=answered_after,
            text=text,
            receipt=_receipt(call, text),
            error=call.error,
        ),
        taken_after=None if taken_at is None else (taken_at - begun_at).total_seconds(),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Timed:
    """A call, and after how many seconds of its run the group was taken that carries it."""

    call: RecordedCall
    taken_after: float | None


def _in_time(recorded: list[_Timed]) -> Iterator[RecordedCall]:
    """Yield the calls with the seconds after which a replay answers them.

    What came of the last call of a hand-in was felt when its group was taken, some milliseconds
    after the answer: it is answered then, since on the virtual clock our own work takes no time.
    What was taken at one moment keeps its order, a microsecond apart.
    """
    last: dict[tuple[int, float], int] = {}
    for place, one in enumerate(recorded):
        if one.taken_after is not None:
            hand_in = (one.call.turn, one.taken_after)
            last[hand_in] = max(
                last.get(hand_in, place), place, key=lambda n: recorded[n].call.after_seconds
            )
    moments: defaultdict[float, list[int]] = defaultdict(list)
    for (_, moment), place in last.items():
        moments[moment].append(place)
    after = {
        place: moment + rank * APART_SECONDS
        for moment, places in moments.items()
        for rank, place in enumerate(sorted(places, key=lambda n: recorded[n].call.after_seconds))
    }
    for place, one in enumerate(recorded):
        yield replace(one.call, after_seconds=after.get(place, one.call.after_seconds))


def _receipt(call: LlmCall, text: CallText) -> Receipt:
    """Return what the call came to then; nothing of it costs anything now."""
    usage = Usage(
        input_tokens=call.input_tokens,
        output_tokens=call.output_tokens,
        cache_read_tokens=call.cache_read_tokens,
        cache_write_tokens=call.cache_write_tokens,
    )
    # No answer is billed without a token: then nobody said what it billed.
    return Receipt(
        model=call.model,
        prompt_version=call.prompt_version,
        finish_reason=call.finish_reason,
        usage=usage if usage.prompt_tokens or usage.output_tokens else None,
        said=text.said,
    )
