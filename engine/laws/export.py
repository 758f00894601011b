"""An export as one value: the rows of its files, and what the laws derive from them once."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING

from engine.core.mentions import find_mentions, first_mentioned

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.export.schema import (
        AgentRow,
        ChangeRow,
        LlmCallRow,
        MessageRow,
        ProposalRow,
        RunRow,
        ThreadRow,
        TopologyRow,
        TurnRow,
    )


@dataclass(frozen=True, kw_only=True)
class Gate:
    """Who may start something with whom under one topology version of a run."""

    row: TopologyRow

    @cached_property
    def cohorts_of(self) -> Mapping[str, frozenset[str]]:
        """The cohorts of every agent that is in one."""
        found: dict[str, set[str]] = defaultdict(set)
        for cohort, members in self.row.cohorts.items():
            for agent in members:
                found[agent].add(cohort)
        return {agent: frozenset(cohorts) for agent, cohorts in found.items()}

    def shared(self, one: str, other: str) -> frozenset[str]:
        """Return the cohorts that both agents are in."""
        nothing: frozenset[str] = frozenset()
        return self.cohorts_of.get(one, nothing) & self.cohorts_of.get(other, nothing)

    def permits(self, one: str, other: str) -> bool:
        """Whether two agents may start something with each other, private channels apart."""
        if self.row.verdict != "in_force" or self.shared(one, other):
            return True
        loose = one not in self.cohorts_of or other not in self.cohorts_of
        return self.row.policy == "open" and loose


@dataclass(frozen=True, slots=True, kw_only=True)
class Cycle:
    """One cycle of a thread with its messages in order of `seq`, people's included.

    `late` are the agents' messages that came after the previous cycle's close and before this
    one's opening; no law allows any.
    """

    row: ThreadRow
    root: MessageRow
    messages: Sequence[MessageRow]
    late: Sequence[MessageRow]

    @property
    def where(self) -> str:
        return f"thread {self.row.id} cycle {self.row.cycle}"

    @property
    def by_agents(self) -> list[MessageRow]:
        return [message for message in self.messages if message.author is not None]

    @property
    def sides(self) -> tuple[str, ...]:
        """The agents that talk here: two, one opposite a person, or none yet."""
        return tuple(side for side in (self.row.opener, self.row.partner) if side is not None)


@dataclass(frozen=True, kw_only=True)
class Export:
    """The rows of an export folder, each file in its own order."""

    runs: tuple[RunRow, ...]
    agents: tuple[AgentRow, ...]
    topology: tuple[TopologyRow, ...]
    changes: tuple[ChangeRow, ...]
    turns: tuple[TurnRow, ...]
    messages: tuple[MessageRow, ...]
    threads: tuple[ThreadRow, ...]
    proposals: tuple[ProposalRow, ...]
    llm_calls: tuple[LlmCallRow, ...]

    @property
    def n_records(self) -> int:
        """How many lines the files have in all."""
        return sum(len(getattr(self, item.name)) for item in fields(self))

    @cached_property
    def run_by_id(self) -> Mapping[int, RunRow]:
        return {run.run: run for run in self.runs}

    @cached_property
    def agent_by_slug(self) -> Mapping[str, AgentRow]:
        return {agent.agent: agent for agent in self.agents}

    @cached_property
    def turn_by_number(self) -> Mapping[int, TurnRow]:
        return {turn.number: turn for turn in self.turns}

    @cached_property
    def log(self) -> Sequence[MessageRow]:
        """The messages that are taken in, by `seq`."""
        taken_in = [message for message in self.messages if message.seq is not None]
        return sorted(taken_in, key=lambda message: message.seq or 0)

    @cached_property
    def message_by_seq(self) -> Mapping[int, MessageRow]:
        return {message.seq: message for message in self.messages if message.seq is not None}

    @cached_property
    def turns_of_run(self) -> Mapping[int, Sequence[TurnRow]]:
        """The turns of each run that has some, by number."""
        found: dict[int, list[TurnRow]] = defaultdict(list)
        for turn in sorted(self.turns, key=lambda turn: turn.number):
            found[turn.run].append(turn)
        return found

    @cached_property
    def gates_of_run(self) -> Mapping[int, Sequence[Gate]]:
        """The gates that each run used, by version."""
        found: dict[int, list[Gate]] = defaultdict(list)
        for row in sorted(self.topology, key=lambda row: row.version):
            found[row.run].append(Gate(row=row))
        return found

    @cached_property
    def gate_by_version(self) -> Mapping[tuple[int, int], Gate]:
        gates = (gate for gates in self.gates_of_run.values() for gate in gates)
        return {(gate.row.run, gate.row.version): gate for gate in gates}

    @cached_property
    def cycles(self) -> Sequence[Cycle]:
        """Every cycle of every thread, by thread and cycle."""
        messages: dict[int, list[MessageRow]] = defaultdict(list)
        for message in self.log:
            if message.thread is not None:
                messages[message.thread].append(message)
        rows = sorted(self.threads, key=lambda row: (row.id, row.cycle))
        return [
            cycle
            for thread, of_thread in groupby(rows, key=lambda row: row.id)
            for cycle in self._cycles_of(list(of_thread), messages[thread])
        ]

    def _cycles_of(self, rows: list[ThreadRow], messages: list[MessageRow]) -> list[Cycle]:
        """Share a thread's messages out over its cycles by the `seq` of each close."""
        cycles = []
        position = 0
        for row in rows:
            end = position
            while end < len(messages) and not _is_past(messages[end], row.closed_seq):
                end += 1
            within = messages[position:end]
            root = self.message_by_seq[row.root_seq]
            cycles.append(Cycle(row=row, root=root, messages=within, late=_early(row, within)))
            position = end
        if rows and position < len(messages):
            rest = [message for message in messages[position:] if message.author is not None]
            last = cycles[-1]
            cycles[-1] = Cycle(
                row=last.row, root=last.root, messages=last.messages, late=[*last.late, *rest]
            )
        return cycles

    @cached_property
    def handles(self) -> Mapping[str, int]:
        """Bot names in lower case to the position of their agent in `agents`."""
        return {agent.bot_name.lower(): number for number, agent in enumerate(self.agents)}

    @cached_property
    def number_by_slug(self) -> Mapping[str, int]:
        return {agent.agent: number for number, agent in enumerate(self.agents)}

    def mentioned(self, text: str) -> tuple[str, ...]:
        """Return the agents that a text mentions, in order."""
        if "@" not in text:
            return ()
        return tuple(self.agents[number].agent for number in find_mentions(text, self.handles))

    def addressee(self, root: MessageRow) -> str | None:
        """Return the agent that a root is addressed to, or None: it is open to all."""
        author = None if root.author is None else self.number_by_slug[root.author]
        number = first_mentioned(root.text, self.handles, author)
        return None if number is None else self.agents[number].agent

    def opening_run(self, cycle: Cycle) -> RunRow | None:
        """Return the run in which a message of the thread itself opened the cycle.

        None when a review reopened it, when nobody has answered yet, or when that run is not in
        this export.
        """
        if cycle.row.opened_seq is None:
            return None
        message = self.message_by_seq.get(cycle.row.opened_seq)
        if message is None or message.thread != cycle.row.id or message.run is None:
            return None
        return self.run_by_id.get(message.run)

    def limit(self, turn: TurnRow, name: str) -> int | None:
        """Return the agent's own limit under the version that the turn used, if it has one."""
        versions = self.agent_by_slug[turn.agent].versions
        return next(
            (row.limits.get(name) for row in versions if row.version == turn.agent_version), None
        )

    def is_elsewhere(self, run: int) -> bool:
        """Whether a run is left out because this is the export of one run alone.

        Such an export carries whole threads, so that messages of other runs come along.
        """
        return len(self.runs) == 1 and run != self.runs[0].run


def _is_past(message: MessageRow, closed_seq: int | None) -> bool:
    return closed_seq is not None and message.seq is not None and message.seq > closed_seq


def _early(row: ThreadRow, messages: Sequence[MessageRow]) -> list[MessageRow]:
    """Return the agents' messages of a later cycle that stand before its reopening."""
    if row.cycle == 1 or row.opened_seq is None:
        return []
    return [
        message
        for message in messages
        if message.author is not None and (message.seq or 0) <= row.opened_seq
    ]
