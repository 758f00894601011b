"""The rows of an export, file by file, read from the database in the order of their keys."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from heapq import merge
from typing import TYPE_CHECKING, Literal, cast

from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.db.models.functions import Coalesce

from cohorts.models import Agent, AgentVersion, TopologyChange
from engine.core.prices import nano_usd
from engine.export import schema
from engine.export.history import CHUNK, call_rows, message_rows, turn_rows
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
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

AgentStatus = Literal["active", "paused", "retired"]


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
    limits["max_nano_usd"] = nano_usd(version.max_usd)
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
