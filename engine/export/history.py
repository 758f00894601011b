"""The rows of an export's long files: turns, messages, calls, one for each ever made.

They are read as columns, not as objects, and come out in the order of their keys.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from django.db.models import Case, Exists, ExpressionWrapper, F, Field, OuterRef, When
from django.db.models.functions import Coalesce

from engine.export import schema
from engine.models import LlmCall, Message, Turn
from engine.store.database.times import aware

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.export.rows import Scope

#: Rows that the database hands over at once.
CHUNK = 2_000


def _as_driven(column: str | Exists) -> ExpressionWrapper[F | Exists]:
    """Return a column as the database's driver gives it: what Django makes of times, objects and
    truth takes longer than all the rest of a line."""
    asked = F(column) if isinstance(column, str) else column
    return ExpressionWrapper(asked, output_field=Field())


def _time(column: str) -> Coalesce:
    """Return a time as `aware` takes it the quickest: computed, so that SQLite's is text."""
    return Coalesce(column, None, output_field=Field())


_TURN = (
    "run_id",
    "number",
    "agent_id",
    _time("selected_at"),
    _time("finished_at"),
    "waited_seconds",
    "wait_bound_seconds",
    "outcome",
    "llm_calls",
    "committed",
    _as_driven("rejected"),
    "gate_filtered",
    "agent_version",
)
_MESSAGE = (
    "seq",
    "channel_id",
    "visibility",
    "root_id",
    Coalesce("root__seq", "seq"),
    Case(
        When(
            root__isnull=True, then=_as_driven(Exists(Message.objects.filter(root=OuterRef("pk"))))
        ),
        output_field=Field(),
    ),
    "ordinal",
    "author_id",
    "person",
    _as_driven("is_bot"),
    "text",
    Coalesce("committed_at", "written_at", output_field=Field()),
    "run_id",
    "turn",
)
_CALL = (
    "run_id",
    "turn",
    "agent_id",
    "agent_version",
    "house_rules_version",
    "phase",
    "thread",
    _as_driven(
        Exists(
            Message.objects.filter(
                root__simulation=OuterRef("run__simulation"), root__seq=OuterRef("thread")
            )
        )
    ),
    "model",
    "prompt_version",
    "attempt",
    "state",
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "reserved_nano_usd",
    "cost_nano_usd",
    "latency_seconds",
    "finish_reason",
    "error",
)


def turn_rows(scope: Scope) -> Iterator[schema.TurnRow]:
    rows = Turn.objects.filter(simulation=scope.simulation, run__in=scope.runs.order_by())
    for row in rows.order_by("number").values_list(*_TURN).iterator(CHUNK):
        run, number, agent, selected_at, finished_at, waited, bound, outcome, *counts = row
        llm_calls, committed, rejected, gate_filtered, version = counts
        yield schema.TurnRow(
            run=run,
            number=number,
            agent=scope.slugs[agent],
            selected_at=aware(selected_at),
            finished_at=None if finished_at is None else aware(finished_at),
            waited_seconds=waited,
            wait_bound_seconds=bound,
            outcome=outcome,
            llm_calls=llm_calls,
            committed=committed,
            rejected={} if rejected == "{}" else json.loads(rejected),
            gate_filtered=gate_filtered,
            agent_version=version,
        )


def message_rows(scope: Scope) -> Iterator[schema.MessageRow]:
    """Yield the messages by `seq`; then those of people that are not taken in yet."""
    rows = scope.messages.order_by(F("seq").asc(nulls_last=True), "pk")
    for row in rows.values_list(*_MESSAGE).iterator(CHUNK):
        seq, channel, visibility, root, root_seq, is_answered, ordinal, *said = row
        author, person, is_bot, text, at, run, turn = said
        in_thread = root is not None or is_answered
        # An answer to a root that waits itself has no thread yet.
        waits = root is not None and root_seq == seq
        yield schema.MessageRow(
            seq=seq,
            channel=scope.channels[channel],
            visibility=visibility,
            thread=root_seq if in_thread and not waits else None,
            ordinal=ordinal,
            author=scope.slug(author),
            person=person or None,
            is_bot=bool(is_bot),
            text=text,
            committed_at=aware(at),
            run=run,
            turn=turn,
        )


def call_rows(scope: Scope) -> Iterator[schema.LlmCallRow]:
    """Yield the LLM calls; one about a root that nobody answered names no thread.

    Of one on its way only what was reserved for it is known.
    """
    rows = LlmCall.objects.filter(run__in=scope.runs.order_by())
    ordered = rows.order_by("run_id", "turn", "number")
    for row in ordered.values_list(*_CALL).iterator(CHUNK):
        run, turn, agent, version, house, phase, thread, is_thread, model, prompt, *rest = row
        attempt, state, *told, reserved, cost, latency, finish, error = rest
        is_on_its_way = state == LlmCall.State.RESERVED
        given, made, cache_read, cache_write = (None,) * 4 if is_on_its_way else told
        yield schema.LlmCallRow(
            run=run,
            turn=turn,
            agent=scope.slugs[agent],
            agent_version=version,
            house_rules_version=house,
            phase=phase,
            thread=thread if is_thread else None,
            model=model,
            prompt_version=prompt,
            attempt=attempt,
            input_tokens=given,
            output_tokens=made,
            cache_read_tokens=cache_read,
            cache_write_tokens=cache_write,
            reserved_usd=schema.NanoUsd(reserved),
            cost_usd=None if cost is None else schema.NanoUsd(cost),
            latency_seconds=None if is_on_its_way else latency,
            finish_reason=finish or None,
            error=error or None,
        )
