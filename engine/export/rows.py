"""The rows of an export, file by file, read from the database in the order of their keys."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from heapq import merge
from typing import TYPE_CHECKING, Literal, cast

from django.db.models import Exists, ExpressionWrapper, F, Field, OuterRef, Q, QuerySet
from django.db.models.functions import Coalesce

from cohorts.models import Agent, AgentVersion, TopologyChange
from engine.export import schema
from engine.export.runs import run_row
from engine.models import (
    AgentState,
    Channel,
    Decision,
    LlmCall,
    Message,
    Proposal,
    RosterEntry,
    Run,
    Simulation,
    Thread,
    TopologySnapshot,
    Turn,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

AgentStatus = Literal["active", "paused", "retired"]

#: Rows that the database hands over at once.
CHUNK = 2_000


@dataclass(frozen=True, kw_only=True)
class Scope:
    """What is exported: a simulation with all its runs, or one run.

    Of one run: every thread that it wrote in, closed or asked a model about, whole; and what
    people wrote that is nobody's yet.
    """

    simulation: Simulation
    run: Run | None = None

    @cached_property
    def runs(self) -> QuerySet[Run]:
        runs = Run.objects.filter(simulation=self.simulation).order_by("pk")
        return runs if self.run is None else runs.filter(pk=self.run.pk)

    @cached_property
    def messages(self) -> QuerySet[Message]:
        """The messages in scope, each with `top`, the key of its root's row."""
        every = Message.objects.filter(simulation=self.simulation).annotate(
            top=Coalesce("root_id", "pk")
        )
        if self.run is None:
            return every
        touched = every.filter(run=self.run).values("top")
        closed = Decision.objects.filter(run=self.run).values("thread")
        asked = every.filter(seq__in=LlmCall.objects.filter(run=self.run).values("thread"))
        new = Q(seq__isnull=True, root__isnull=True)
        return every.filter(
            Q(top__in=touched) | Q(top__in=closed) | Q(top__in=asked.values("top")) | new
        )

    @cached_property
    def tops(self) -> QuerySet[Message]:
        """The roots in scope."""
        return self.messages.filter(root__isnull=True)

    @cached_property
    def slugs(self) -> dict[int, str]:
        return dict(Agent.objects.values_list("pk", "slug"))

    @cached_property
    def channels(self) -> dict[int, str]:
        channels = Channel.objects.filter(simulation=self.simulation)
        return dict(channels.values_list("pk", "name"))

    def slug(self, agent: int | None) -> str | None:
        return None if agent is None else self.slugs[agent]


def run_rows(scope: Scope) -> Iterator[schema.RunRow]:
    return map(run_row, scope.runs.select_related("simulation"))


def agent_rows(scope: Scope) -> Iterator[schema.AgentRow]:
    """Yield the agents on the roster, and those that took part before they left it."""
    agents = Agent.objects.order_by("slug")
    if scope.simulation.roster_chosen:
        roster = RosterEntry.objects.filter(simulation=scope.simulation)
        was_here = AgentState.objects.filter(simulation=scope.simulation)
        agents = agents.filter(
            Q(pk__in=roster.values("agent")) | Q(pk__in=was_here.values("agent"))
        )
    versions: dict[int, list[AgentVersion]] = defaultdict(list)
    for version in AgentVersion.objects.filter(agent__in=agents.order_by()).order_by("number"):
        versions[version.agent_id].append(version)
    for agent in agents:
        yield schema.AgentRow(
            agent=agent.slug,
            bot_name=agent.bot_name,
            represents=agent.represents,
            status=cast("AgentStatus", agent.status),
            versions=tuple(map(_version_row, versions[agent.pk])) or (_unsaved_row(agent),),
        )


def _version_row(version: AgentVersion) -> schema.AgentVersionRow:
    names = ("max_calls", "daily_posts", "calls_per_window")
    limits = {name: getattr(version, name) for name in names}
    return schema.AgentVersionRow(
        version=version.number,
        at=version.saved_at,
        public_profile=version.public_profile,
        private_instructions=version.private_instructions,
        limits={name: limit for name, limit in limits.items() if limit is not None},
    )


def _unsaved_row(agent: Agent) -> schema.AgentVersionRow:
    """Return version 0 of an agent that no save of ours has numbered."""
    return schema.AgentVersionRow(
        version=0,
        at=agent.created_at,
        public_profile=agent.public_profile,
        private_instructions=agent.private_instructions,
    )


def topology_rows(scope: Scope) -> Iterator[schema.TopologyRow]:
    rows = TopologySnapshot.objects.filter(run__in=scope.runs.order_by())
    for row in rows.order_by("run_id", "version").iterator(CHUNK):
        yield schema.TopologyRow(
            version=row.version,
            at=row.at,
            run=row.run_id,
            policy=cast("schema.Policy", row.policy),
            verdict=cast("schema.Verdict", row.verdict),
            cohorts={name: tuple(agents) for name, agents in row.cohorts.items()},
        )


def change_rows(scope: Scope) -> Iterator[schema.ChangeRow]:
    """Yield the whole audit: cohorts belong to no simulation."""
    for row in TopologyChange.objects.order_by("at", "pk").iterator(CHUNK):
        yield schema.ChangeRow(
            version=row.version,
            at=row.at,
            who=row.who,
            action=row.action,
            cohort=row.cohort or None,
            agent=row.agent or None,
        )


def turn_rows(scope: Scope) -> Iterator[schema.TurnRow]:
    rows = Turn.objects.filter(simulation=scope.simulation, run__in=scope.runs.order_by())
    columns = (
        "run_id",
        "number",
        "agent_id",
        _as_driven("selected_at"),
        _as_driven("finished_at"),
        "waited_seconds",
        "outcome",
        "llm_calls",
        "committed",
        _as_driven("rejected"),
        "gate_filtered",
        "agent_version",
    )
    for row in rows.order_by("number").values_list(*columns).iterator(CHUNK):
        run, number, agent, selected_at, finished_at, waited, outcome, *counts = row
        llm_calls, committed, rejected, gate_filtered, version = counts
        yield schema.TurnRow(
            run=run,
            number=number,
            agent=scope.slugs[agent],
            selected_at=_aware(selected_at),
            finished_at=None if finished_at is None else _aware(finished_at),
            waited_seconds=waited,
            outcome=outcome,
            llm_calls=llm_calls,
            committed=committed,
            rejected={} if rejected == "{}" else json.loads(rejected),
            gate_filtered=gate_filtered,
            agent_version=version,
        )


def _as_driven(column: str) -> ExpressionWrapper[F]:
    """Return a column as the database's driver gives it: what Django makes of times and objects
    takes longer than all the rest of a line."""
    return ExpressionWrapper(F(column), output_field=Field())


def _aware(moment: datetime | str) -> datetime:
    """Return a time as the driver gave it; SQLite's have no zone, and are text if computed."""
    if isinstance(moment, str):
        moment = datetime.fromisoformat(moment)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def message_rows(scope: Scope) -> Iterator[schema.MessageRow]:
    """Yield the messages by `seq`; then those of people that are not taken in yet."""
    answered = Message.objects.filter(root=OuterRef("pk"))
    columns = (
        "seq",
        "channel_id",
        "visibility",
        "root_id",
        Coalesce("root__seq", "seq"),
        Exists(answered),
        "ordinal",
        "author_id",
        "person",
        "is_bot",
        "text",
        Coalesce("committed_at", "written_at", output_field=Field()),
        "run_id",
        "turn",
    )
    rows = scope.messages.order_by(F("seq").asc(nulls_last=True), "pk")
    for row in rows.values_list(*columns).iterator(CHUNK):
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
            is_bot=is_bot,
            text=text,
            committed_at=_aware(at),
            run=run,
            turn=turn,
        )


def thread_rows(scope: Scope) -> Iterator[schema.ThreadRow]:
    """Yield a row for each cycle: concluded, open, and of roots that only people have answered."""
    tops = scope.tops.values("pk")
    concluded = Decision.objects.filter(thread__in=tops).annotate(
        channel_id=F("thread__channel_id")
    )
    unfinished = Thread.objects.filter(root__in=tops, closed_seq__isnull=True)
    answered = Message.objects.filter(root=OuterRef("pk"))
    plain = scope.tops.filter(Exists(answered), thread__isnull=True, seq__isnull=False)
    return merge(
        (_cycle_row(scope, row) for row in concluded.order_by("root_seq", "cycle").iterator(CHUNK)),
        (_cycle_row(scope, row) for row in unfinished.order_by("root_seq").iterator(CHUNK)),
        (_plain_row(scope, row) for row in plain.order_by("seq").iterator(CHUNK)),
        key=lambda row: (row.id, row.cycle),
    )


def _cycle_row(scope: Scope, row: Decision | Thread) -> schema.ThreadRow:
    decision = row if isinstance(row, Decision) else None
    state = row.state if isinstance(row, Thread) else "closed"
    channel: int = vars(row)["channel_id"]  # a decision's is an annotation
    return schema.ThreadRow(
        id=row.root_seq,
        channel=scope.channels[channel],
        root_seq=row.root_seq,
        opener=scope.slugs[row.opener_id],
        partner=scope.slug(row.partner_id),
        cycle=row.cycle,
        opened_seq=row.opened_seq,
        opened_at=row.opened_at,
        topology_version=row.topology_version,
        closed_seq=decision.seq if decision else None,
        closed_at=decision.at if decision else None,
        state=cast("schema.ThreadState", state),
        outcome=cast("schema.ThreadOutcome", decision.outcome) if decision else None,
        grandfathered_at=row.grandfathered_at,
        shared_cohorts=tuple(row.shared_cohorts),
    )


def _plain_row(scope: Scope, root: Message) -> schema.ThreadRow:
    seq = cast("int", root.seq)  # only placed roots are asked for
    return schema.ThreadRow(
        id=seq,
        channel=scope.channels[root.channel_id],
        root_seq=seq,
        opener=None,
        partner=None,
        cycle=1,
        opened_seq=None,
        opened_at=None,
        topology_version=None,
        closed_seq=None,
        closed_at=None,
        state="open",
        outcome=None,
        grandfathered_at=None,
        shared_cohorts=(),
    )


def proposal_rows(scope: Scope) -> Iterator[schema.ProposalRow]:
    rows = Proposal.objects.filter(thread__in=scope.tops.values("pk"))
    for row in rows.select_related("thread", "summary").order_by("pk").iterator(CHUNK):
        yield schema.ProposalRow(
            id=row.pk,
            thread=row.thread.root_seq,
            cycle=row.cycle,
            agents=(scope.slugs[row.proposer_id], scope.slugs[row.confirmer_id]),
            summary=row.summary.text,
            state=cast("schema.ProposalState", row.state),
            reviewed_by=row.reviewed_by or None,
            reviewed_at=row.reviewed_at,
            note=row.note,
        )


def call_rows(scope: Scope) -> Iterator[schema.LlmCallRow]:
    """Yield the LLM calls; one about a root that nobody answered names no thread."""
    answers = Message.objects.filter(
        root__simulation=scope.simulation, root__seq=OuterRef("thread")
    )
    columns = (
        "run_id",
        "turn",
        "agent_id",
        "agent_version",
        "phase",
        "thread",
        Exists(answers),
        "model",
        "prompt_version",
        "attempt",
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
    rows = LlmCall.objects.filter(run__in=scope.runs.order_by())
    ordered = rows.order_by("run_id", "turn", "number")
    for row in ordered.values_list(*columns).iterator(CHUNK):
        run, turn, agent, version, phase, thread, is_thread, model, prompt, attempt, *rest = row
        given, made, cache_read, cache_write, reserved, cost, latency, finish, error = rest
        yield schema.LlmCallRow(
            run=run,
            turn=turn,
            agent=scope.slugs[agent],
            agent_version=version,
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
            cost_usd=schema.NanoUsd(cost),
            latency_seconds=latency,
            finish_reason=finish or None,
            error=error or None,
        )


ROWS: Mapping[str, Callable[[Scope], Iterator[schema.Row]]] = {
    "runs.jsonl": run_rows,
    "agents.jsonl": agent_rows,
    "topology.jsonl": topology_rows,
    "changes.jsonl": change_rows,
    "turns.jsonl": turn_rows,
    "messages.jsonl": message_rows,
    "threads.jsonl": thread_rows,
    "proposals.jsonl": proposal_rows,
    "llm_calls.jsonl": call_rows,
}
