"""Laws on the gate: who may start something with whom, under which version of the cohorts."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING

from engine.laws.law import Breach, Law

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.export.schema import MessageRow
    from engine.laws.export import Cycle, Export, Gate


def topology_known(export: Export) -> Iterator[Breach]:
    for run, turns in export.turns_of_run.items():
        if run not in export.gates_of_run:
            yield Breach(f"run {run}", f"it took {len(turns)} turns without a topology.")
    for run, gates in export.gates_of_run.items():
        for before, gate in pairwise(gates):
            if gate.row.at < before.row.at:
                yield Breach(_where(gate), "it was seen before a smaller version.")
        for gate in gates:
            yield from _verdict(gate, export.run_by_id[run].configuration.policy)


def _where(gate: Gate) -> str:
    return f"run {gate.row.run} version {gate.row.version}"


def _verdict(gate: Gate, policy: str) -> Iterator[Breach]:
    if gate.row.policy != policy:
        yield Breach(_where(gate), f"its policy is {gate.row.policy} and the run's is {policy}.")
    allowed = {"open": {"in_force"}, "isolated": {"in_force", "refused"}, "off": {"off"}}
    if gate.row.verdict not in allowed[gate.row.policy]:
        yield Breach(
            _where(gate), f"{gate.row.verdict} is no verdict on the policy {gate.row.policy}."
        )


def changes_recorded(export: Export) -> Iterator[Breach]:
    """Check that the audit names each agent whose cohorts changed, or tells of an outside change."""
    named: dict[int | None, set[str | None]] = defaultdict(set)
    for change in export.changes:
        named[change.version].add(change.agent or None)
    versions = sorted(version for version in named if version is not None)
    for gates in export.gates_of_run.values():
        for before, gate in pairwise(gates):
            first = bisect_right(versions, before.row.version)
            last = bisect_right(versions, gate.row.version)
            known = set[str | None]().union(*(named[number] for number in versions[first:last]))
            if None not in known | named[None]:
                for agent in sorted(_moved(before, gate) - known):
                    yield Breach(
                        _where(gate), f"no change tells why the cohorts of {agent} differ."
                    )


def _moved(before: Gate, after: Gate) -> set[str]:
    """Return the agents that are in other cohorts than before."""
    return {agent for agent, _ in before.cohorts_of.items() ^ after.cohorts_of.items()}


def _gated(export: Export) -> Iterator[tuple[Cycle, int, Gate | None]]:
    """Yield the cycles that a message opened, by that seq, with run and gate that they name."""
    opened = sorted(export.cycles, key=lambda cycle: cycle.row.opened_seq or 0)
    for cycle in opened:
        run = export.opening_run(cycle)
        if run is not None:
            version = cycle.row.topology_version or 0
            yield cycle, run.run, export.gate_by_version.get((run.run, version))


def version_in_force(export: Export) -> Iterator[Breach]:
    newest: dict[int, int] = {}
    for cycle, run, gate in _gated(export):
        if gate is None:
            yield Breach(cycle.where, f"run {run} never used version {cycle.row.topology_version}.")
            continue
        if gate.row.version < newest.get(run, 0):
            yield Breach(
                cycle.where,
                f"it names version {gate.row.version} after another was opened under a later one.",
            )
        newest[run] = max(newest.get(run, 0), gate.row.version)
        if _is_out_of_time(export, gate, cycle):
            yield Breach(
                cycle.where, f"version {gate.row.version} was not in force when it was opened."
            )


def _is_out_of_time(export: Export, gate: Gate, cycle: Cycle) -> bool:
    at = cycle.row.opened_at
    return at is not None and gate not in _gates_at(export, gate.row.run, at.timestamp())


def _gates_at(export: Export, run: int, moment: float) -> tuple[Gate, ...]:
    """Return the gates that may have been in force at a moment: two if it is that of a change.

    On a virtual clock all of a run's: people change cohorts in their own time, not in its.
    """
    gates = export.gates_of_run.get(run, ())
    if export.run_by_id[run].configuration.clock == "virtual":
        return tuple(gates)
    position = bisect_right(gates, moment, key=lambda gate: gate.row.at.timestamp())
    first = position - 1
    while first > 0 and gates[first].row.at.timestamp() == moment:
        first -= 1
    return tuple(gates[max(first, 0) : position])


def pair_permitted(export: Export) -> Iterator[Breach]:
    for cycle, _, gate in _gated(export):
        opener, partner = cycle.row.opener, cycle.row.partner
        if gate is None or opener is None or partner is None or cycle.row.cycle > 1:
            continue
        if cycle.root.visibility == "public" and not gate.permits(opener, partner):
            yield Breach(
                cycle.where,
                f"version {gate.row.version} does not permit {opener} and {partner} to begin.",
            )


def shared_cohorts(export: Export) -> Iterator[Breach]:
    for cycle, _, gate in _gated(export):
        opener, partner = cycle.row.opener, cycle.row.partner
        if gate is None or opener is None or cycle.row.cycle > 1:
            continue
        shared = set() if partner is None else gate.shared(opener, partner)
        if set(cycle.row.shared_cohorts) != shared:
            yield Breach(
                cycle.where,
                f"version {gate.row.version} gives them "
                f"{', '.join(sorted(shared)) or 'no cohort'} in common.",
            )


def addressed(export: Export) -> Iterator[Breach]:
    sides = {cycle.row.id: cycle.sides for cycle in export.cycles}
    for message in export.log:
        if message.author is None or message.visibility == "private":
            continue
        if message.run is None or message.run not in export.run_by_id:
            continue
        within = sides.get(message.thread or 0, ()) if (message.ordinal or 0) > 1 else ()
        for other in export.mentioned(message.text):
            if other in within or other == message.author:
                continue
            if not _may_address(export, message, message.author, other):
                yield Breach(f"seq {message.seq}", f"{message.author} may not address {other}.")


def _may_address(export: Export, message: MessageRow, author: str, other: str) -> bool:
    gates = _gates_at(export, message.run or 0, message.committed_at.timestamp())
    return not gates or any(gate.permits(author, other) for gate in gates)


def grandfathered(export: Export) -> Iterator[Breach]:
    """Check the mark both ways: there was a reason for it; who needs it at the end has it."""
    for cycle in export.cycles:
        marked = cycle.row.grandfathered_at is not None
        gated = cycle.row.partner is not None and cycle.root.visibility == "public"
        if marked and not (gated and _was_refused(export, cycle)):
            yield Breach(cycle.where, "it is marked grandfathered, which no gate asked for.")
        elif gated and not marked and _needs_mark(export, cycle):
            yield Breach(cycle.where, "its pair is not permitted any more and it has no mark.")


def _was_refused(export: Export, cycle: Cycle) -> bool:
    return any(not gate.permits(*cycle.sides) for gate in export.gate_by_version.values())


def _needs_mark(export: Export, cycle: Cycle) -> bool:
    """Whether the newest gate refuses an open pair; a person may reopen any thread."""
    if cycle.row.state == "closed" or cycle.row.cycle > 1 or not export.gates_of_run:
        return False
    newest = export.gates_of_run[max(export.gates_of_run)][-1]
    return not newest.permits(*cycle.sides)


FILE = "threads.jsonl"
GATE_LAWS = (
    Law(
        name="topology-known",
        file="topology.jsonl",
        says="a run that took turns has a topology; its versions come in order, under the run's "
        "policy, with a verdict that fits it",
        check=topology_known,
    ),
    Law(
        name="changes-recorded",
        file="changes.jsonl",
        says="the audit names every agent whose cohorts differ between two versions of a run, "
        "unless it tells of a change from outside",
        check=changes_recorded,
    ),
    Law(
        name="version-in-force",
        file=FILE,
        says="a thread names the topology version that was in force when it was opened, and "
        "later threads never an earlier version",
        check=version_in_force,
    ),
    Law(
        name="pair-permitted",
        file=FILE,
        says="two agents begin a public thread only if the version that it names permits them",
        check=pair_permitted,
    ),
    Law(
        name="shared-cohorts",
        file=FILE,
        says="a thread names the cohorts that its sides had in common when they began",
        check=shared_cohorts,
    ),
    Law(
        name="addressed-permitted",
        file="messages.jsonl",
        says="an agent mentions in public only agents that it may address and its own side",
        check=addressed,
    ),
    Law(
        name="grandfathered",
        file=FILE,
        says="an open thread is marked grandfathered when its pair is no longer permitted, and "
        "never otherwise",
        check=grandfathered,
    ),
)
