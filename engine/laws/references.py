"""Laws on names and numbers: each is unique, and what a row names is there."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from engine.laws.law import Breach, Law

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator

    from engine.laws.export import Export


def repeated(kind: str, keys: Iterable[Hashable]) -> Iterator[Breach]:
    """Yield every key that occurs more than once."""
    for key, n_rows in Counter(keys).items():
        if n_rows > 1:
            yield Breach(f"{kind} {key}", f"{n_rows} rows have it, and it names only one.")


def unique_runs(export: Export) -> Iterator[Breach]:
    yield from repeated("run", (run.run for run in export.runs))
    for run in export.runs:
        if not _is_time_zone(run.configuration.time_zone):
            yield Breach(
                f"run {run.run}", f"{run.configuration.time_zone!r} is not a known time zone."
            )


def _is_time_zone(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


def unique_agents(export: Export) -> Iterator[Breach]:
    yield from repeated("agent", (agent.agent for agent in export.agents))
    yield from repeated("bot name", (agent.bot_name.lower() for agent in export.agents))
    for agent in export.agents:
        numbers = [version.version for version in agent.versions]
        if not numbers or numbers != sorted(set(numbers)):
            yield Breach(
                f"agent {agent.agent}", "its versions are not numbered upwards from the first."
            )


def unique_turns(export: Export) -> Iterator[Breach]:
    yield from repeated("number", (turn.number for turn in export.turns))


def unique_topology(export: Export) -> Iterator[Breach]:
    yield from repeated("run and version", ((row.run, row.version) for row in export.topology))
    for row in export.topology:
        if row.run not in export.run_by_id:
            yield Breach(f"version {row.version}", f"its run {row.run} is not in the export.")


def unique_proposals(export: Export) -> Iterator[Breach]:
    yield from repeated("proposal", (proposal.id for proposal in export.proposals))


def turn_names(export: Export) -> Iterator[Breach]:
    for turn in export.turns:
        where = f"turn {turn.number}"
        if turn.run not in export.run_by_id:
            yield Breach(where, f"its run {turn.run} is not in the export.")
        yield from _version_names(export, where, turn.agent, turn.agent_version)


def _version_names(export: Export, where: str, slug: str, version: int) -> Iterator[Breach]:
    agent = export.agent_by_slug.get(slug)
    if agent is None:
        yield Breach(where, f"its agent {slug} is not in the export.")
    elif all(row.version != version for row in agent.versions):
        yield Breach(where, f"{slug} has no version {version}.")


def message_names(export: Export) -> Iterator[Breach]:
    threads = {row.id for row in export.threads}
    for line, message in enumerate(export.messages, start=1):
        where = f"line {line}"
        if message.author is not None and message.author not in export.agent_by_slug:
            yield Breach(where, f"its author {message.author} is not in the export.")
        if message.thread is not None and message.thread not in threads:
            yield Breach(where, f"its thread {message.thread} is not in the export.")
        if message.run is None or export.is_elsewhere(message.run):
            continue
        if message.run not in export.run_by_id:
            yield Breach(where, f"its run {message.run} is not in the export.")
        if message.turn is not None and message.turn not in export.turn_by_number:
            yield Breach(where, f"its turn {message.turn} is not in the export.")


def thread_names(export: Export) -> Iterator[Breach]:
    for row in export.threads:
        where = f"thread {row.id} cycle {row.cycle}"
        for slug in (row.opener, row.partner):
            if slug is not None and slug not in export.agent_by_slug:
                yield Breach(where, f"its side {slug} is not in the export.")
        root = export.message_by_seq.get(row.root_seq)
        if root is None or root.thread != row.id:
            yield Breach(where, f"no message of it has the seq {row.root_seq} of its root.")


def proposal_names(export: Export) -> Iterator[Breach]:
    cycles = {(row.id, row.cycle) for row in export.threads}
    for proposal in export.proposals:
        where = f"proposal {proposal.id}"
        if (proposal.thread, proposal.cycle) not in cycles:
            yield Breach(where, f"no thread {proposal.thread} has a cycle {proposal.cycle}.")


def call_names(export: Export) -> Iterator[Breach]:
    threads = {row.id for row in export.threads}
    for line, call in enumerate(export.llm_calls, start=1):
        turn = export.turn_by_number.get(call.turn)
        if turn is None:
            yield Breach(f"line {line}", f"its turn {call.turn} is not in the export.")
        elif (call.run, call.agent, call.agent_version) != (
            turn.run,
            turn.agent,
            turn.agent_version,
        ):
            yield Breach(f"line {line}", "its run, agent and version are not those of its turn.")
        run = export.run_by_id.get(call.run)
        if run is not None and call.house_rules_version != run.configuration.house_rules_version:
            yield Breach(f"line {line}", "its house rules are not those of its run.")
        if call.thread is not None and call.thread not in threads:
            yield Breach(f"line {line}", f"its thread {call.thread} is not in the export.")


UNIQUE = "an id, a slug, a bot name, a turn's number or a run's topology version names one thing"
NAMES = (
    "runs, turns, agents and house rules with their versions, threads and roots that a row names "
    "are there"
)

REFERENCE_LAWS = (
    Law(name="unique", file="runs.jsonl", says=UNIQUE, check=unique_runs),
    Law(name="unique", file="agents.jsonl", says=UNIQUE, check=unique_agents),
    Law(name="unique", file="turns.jsonl", says=UNIQUE, check=unique_turns),
    Law(name="unique", file="topology.jsonl", says=UNIQUE, check=unique_topology),
    Law(name="unique", file="proposals.jsonl", says=UNIQUE, check=unique_proposals),
    Law(name="references", file="turns.jsonl", says=NAMES, check=turn_names),
    Law(name="references", file="messages.jsonl", says=NAMES, check=message_names),
    Law(name="references", file="threads.jsonl", says=NAMES, check=thread_names),
    Law(name="references", file="proposals.jsonl", says=NAMES, check=proposal_names),
    Law(name="references", file="llm_calls.jsonl", says=NAMES, check=call_names),
)
