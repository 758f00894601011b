"""Changes to an export's plain values, by which tests doctor one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from tests.exports import Files, Line

Doctor = Callable[[Files], object]


def row(files: Files, name: str, **match: object) -> Line:
    """Return the one line of a file whose fields are as given."""
    (found,) = (
        line
        for line in files[f"{name}.jsonl"]
        if all(line[field] == value for field, value in match.items())
    )
    return found


def put(name: str, match: dict[str, Any], **changes: object) -> Doctor:
    """Return what changes fields of one line."""
    return lambda files: row(files, name, **match).update(changes)


def drop(name: str, **match: object) -> Doctor:
    """Return what takes one line out."""
    return lambda files: files[f"{name}.jsonl"].remove(row(files, name, **match))


def copy(name: str, match: dict[str, Any], **changes: object) -> Doctor:
    """Return what adds a changed copy of a line at the end of the file."""
    return lambda files: files[f"{name}.jsonl"].append(row(files, name, **match) | changes)


def setting(**changes: object) -> Doctor:
    """Return what changes settings of the run."""
    return lambda files: files["runs.jsonl"][0]["configuration"].update(changes)


def limit(agent: str, **limits: int) -> Doctor:
    """Return what gives an agent limits of its own."""
    return lambda files: row(files, "agents", agent=agent)["versions"][0].update(limits=limits)


def both(*doctors: Doctor) -> Doctor:
    return lambda files: [doctor(files) for doctor in doctors]


def recount(files: Files) -> None:
    """Make the counters of the one run agree with its rows again."""
    turns, calls = files["turns.jsonl"], files["llm_calls.jsonl"]
    by_agents = [line for line in files["messages.jsonl"] if line["author"] and line["run"] == 1]
    outcomes = [line["outcome"] or "open" for line in files["threads.jsonl"] if line["opener"]]
    files["runs.jsonl"][0] |= {
        "turns": len(turns),
        "messages": len(by_agents),
        "rejected": {"pair_taken": sum("pair_taken" in line["rejected"] for line in turns)},
        "gate_filtered": sum(line["gate_filtered"] for line in turns),
        "llm_calls": dict(Counter(line["phase"] for line in calls)),
        "input_tokens": sum(line["input_tokens"] for line in calls),
        "output_tokens": sum(line["output_tokens"] or 0 for line in calls),
        "cost_usd": sum(int((line["cost_usd"] or 0) * 1000) for line in calls) / 1000,
        "threads": dict(Counter(outcomes)),
    }
