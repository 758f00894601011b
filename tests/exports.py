"""A small export that keeps every law, as plain JSON values, for tests to doctor and to write.

Run 1 of five agents on a real clock, with two slots. Thread 1 ends in a proposal and is reopened
by a person, thread 2 is grandfathered by a change of the cohorts, thread 3 answers a person,
thread 4 (an agent in no cohort) times out, thread 5 is private.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

Line = dict[str, Any]
Files = dict[str, list[Line]]

START = datetime(2030, 1, 2, 9, tzinfo=UTC)
CONFIGURATION = {
    "policy": "open",
    "time_zone": "Europe/Berlin",
    "seed": 1,
    "llm": "offline",
    "chat": "local",
    "clock": "real",
    "max_turns": 40,
    "max_minutes": None,
    "max_calls": 40,
    "max_usd": 1.5,
    "active_thread_threshold": 2,
    "concurrent_turns": 2,
    "max_llm_calls_in_flight": 8,
    "turn_delay_seconds": 5,
    "max_turn_seconds": 600,
    "scan_delay_seconds": 0,
    "post_interval_seconds": 0,
    "post_skip_probability": 0.0,
    "daily_posts": 2,
    "unreviewed_proposals": 1,
    "thread_messages": 4,
    "pair_rest_seconds": 60.0,
    "thread_idle_seconds": 86400,
    "calls_per_window": None,
    "stop_grace_seconds": 60,
}
AGENTS = ("elm", "fir", "hub", "oak", "ash")

# seq, turn, author, thread, ordinal, text
Said = tuple[int, int | None, str | None, int, int, str]
SAID: tuple[Said, ...] = (
    (1, 1, "elm", 1, 1, "Elm Lab offers bark samples."),
    (2, 2, "fir", 1, 2, "Fir Lab would like to measure them."),
    (3, 3, "oak", 2, 1, "@FirBot, shall we map roots together?"),
    (4, 4, "fir", 2, 2, "Which roots do you have?"),
    (5, 5, "elm", 1, 3, "Summary: Elm brings bark, Fir measures it."),
    (6, 6, "fir", 1, 4, "Agreed, we confirm."),
    (7, None, None, 3, 1, "Who knows about soil? @HubBot perhaps"),
    (8, 7, "hub", 3, 2, "We do, what do you need?"),
    (9, 8, "oak", 2, 3, "Old ones, mostly."),
    (10, 9, "fir", 2, 4, "Then we decline, thank you."),
    (11, 10, "ash", 4, 1, "Ash Lab looks for partners."),
    (12, 11, "hub", 4, 2, "What for?"),
    (13, None, None, 1, 5, "@ElmBot, please say how many samples."),
    (14, 13, "elm", 1, 6, "Forty samples."),
    (15, 14, "fir", 1, 7, "Too many for us."),
    (16, 15, "hub", 5, 1, "@FirBot, a private word."),
    (17, 16, "fir", 5, 2, "Not now."),
)

SAID_BY_PEOPLE_AT = {7: 135, 13: 255}

# id, cycle, opener, partner, root, opened, version, closed, outcome, shared
Talk = tuple[int, int, str, str | None, int, int, int, int | None, str | None, list[str]]
THREADS: tuple[Talk, ...] = (
    (1, 1, "fir", "elm", 1, 2, 1, 6, "proposal", ["c1"]),
    (1, 2, "fir", "elm", 1, 13, 2, 15, "no_proposal", ["c1"]),
    (2, 1, "fir", "oak", 3, 4, 1, 10, "no_proposal", ["c1"]),
    (3, 1, "hub", None, 7, 8, 1, None, None, []),
    (4, 1, "hub", "ash", 11, 12, 2, 14, "timeout", []),
    (5, 1, "fir", "hub", 16, 17, 2, 17, "no_proposal", []),
)


def at(seconds: float) -> str:
    """Return the time so many seconds after the start of the run."""
    return (START + timedelta(seconds=seconds)).isoformat(timespec="microseconds")


def said_at(seq: int) -> float:
    """Return when the message was committed, in seconds after the start."""
    turn = next(turn for number, turn, *_ in SAID if number == seq)
    return SAID_BY_PEOPLE_AT[seq] if turn is None else 20 * turn + 5


def clean_export() -> Files:
    """Return the files of an export that keeps every law."""
    return {
        "runs.jsonl": [_run()],
        "agents.jsonl": [_agent(slug) for slug in AGENTS],
        "topology.jsonl": [
            _topology(1, 0, {"c1": ["elm", "fir", "oak"], "c2": ["elm", "hub"]}),
            _topology(2, 150, {"c1": ["elm", "fir"], "c2": ["elm", "hub", "oak"]}),
        ],
        "changes.jsonl": [
            {
                "version": 2,
                "at": at(149),
                "who": "someone",
                "action": "move",
                "cohort": "c2",
                "agent": "oak",
            }
        ],
        "turns.jsonl": _turns(),
        "messages.jsonl": [*map(_message, SAID), _waiting()],
        "threads.jsonl": [_thread(talk) for talk in THREADS],
        "proposals.jsonl": [
            {
                "id": 1,
                "thread": 1,
                "cycle": 1,
                "agents": ["elm", "fir"],
                "summary": "Summary: Elm brings bark, Fir measures it.",
                "state": "revised",
                "reviewed_by": "someone",
                "reviewed_at": at(said_at(13)),
                "note": "How many?",
            }
        ],
        "llm_calls.jsonl": _calls(),
    }


def write_export(files: Files, folder: Path) -> Path:
    """Write the files as JSON Lines and return their folder."""
    for name, lines in files.items():
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def _run() -> Line:
    return {
        "run": 1,
        "simulation": "main",
        "status": "completed",
        "end_reason": "idle",
        "turns": 16,
        "messages": 15,
        "rejected": {"pair_taken": 1},
        "llm_calls": {"scan": 1, "reply": 12, "post": 4},
        "input_tokens": 1700,
        "output_tokens": 160,
        "cost_usd": 0.017,
        "threads": {"open": 1, "proposal": 1, "no_proposal": 3, "timeout": 1, "lost": 0},
        "proposals": 1,
        "gate_filtered": 3,
        "longest_wait_seconds": 0.5,
        "wait_bound_seconds": 1800,
        "slot_utilisation": 0.5,
        "configuration": dict(CONFIGURATION),
        "code_version": "0.1.0",
        "started_at": at(0),
        "finished_at": at(400),
    }


def _agent(slug: str) -> Line:
    version = {
        "version": 1,
        "at": at(-3600),
        "public_profile": f"{slug} grows trees.",
        "private_instructions": "",
    }
    return {
        "agent": slug,
        "bot_name": f"{slug.title()}Bot",
        "represents": f"{slug.title()} Lab",
        "status": "active",
        "versions": [version],
    }


def _topology(version: int, seconds: float, cohorts: dict[str, list[str]]) -> Line:
    return {
        "version": version,
        "at": at(seconds),
        "run": 1,
        "policy": "open",
        "verdict": "in_force",
        "cohorts": cohorts,
    }


def _turns() -> list[Line]:
    agents = {turn: author for _, turn, author, *_ in SAID if turn is not None} | {12: "hub"}
    return [
        {
            "run": 1,
            "number": number,
            "agent": agents[number],
            "selected_at": at(20 * number),
            "finished_at": at(20 * number + (23 if number == 1 else 10)),
            "waited_seconds": 0.5,
            "wait_bound_seconds": 1800,
            "outcome": "nothing" if number == 12 else "worked",
            "llm_calls": {2: 2, 12: 1}.get(number, 1),
            "committed": 0 if number == 12 else 1,
            "rejected": {"pair_taken": 1} if number == 9 else {},
            "gate_filtered": 3 if number == 7 else 0,
            "agent_version": 1,
        }
        for number in sorted(agents)
    ]


def _message(said: Said) -> Line:
    seq, turn, author, thread, ordinal, text = said
    private = thread == 5
    return {
        "seq": seq,
        "channel": "lab" if private else "general",
        "visibility": "private" if private else "public",
        "thread": thread,
        "ordinal": ordinal,
        "author": author,
        "person": None if author else "someone",
        "is_bot": author is not None,
        "text": text,
        "committed_at": at(said_at(seq)),
        "run": 1,
        "turn": turn,
    }


def _waiting() -> Line:
    message = _message((7, None, None, 3, 2, "Thank you."))
    return message | {"seq": None, "ordinal": None, "run": None, "committed_at": at(399)}


def _thread(talk: Talk) -> Line:
    thread, cycle, opener, partner, root, opened, version, closed, outcome, shared = talk
    return {
        "id": thread,
        "channel": "lab" if thread == 5 else "general",
        "root_seq": root,
        "opener": opener,
        "partner": partner,
        "cycle": cycle,
        "opened_seq": opened,
        "opened_at": at(said_at(opened)),
        "topology_version": version,
        "closed_seq": closed,
        "closed_at": None if closed is None else at(said_at(closed)),
        "state": "open" if closed is None else "closed",
        "outcome": outcome,
        "grandfathered_at": at(151) if thread == 2 else None,
        "shared_cohorts": shared,
    }


def _calls() -> list[Line]:
    phases = [
        (turn, "post" if ordinal == 1 else "reply", thread)
        for _, turn, _, thread, ordinal, _ in SAID
        if turn is not None
    ]
    lines = [_call(turn, phase, thread) for turn, phase, thread in phases]
    lines.insert(1, _call(2, "reply", 1) | {"output_tokens": None, "error": "overloaded"})
    lines[2]["attempt"] = 2
    lines.insert(12, _call(12, "scan", None))
    return lines


def _call(turn: int, phase: str, thread: int | None) -> Line:
    agents = {number: author for _, number, author, *_ in SAID} | {12: "hub"}
    return {
        "run": 1,
        "turn": turn,
        "agent": agents[turn],
        "agent_version": 1,
        "phase": phase,
        "thread": thread,
        "model": "offline",
        "prompt_version": "1",
        "attempt": 1,
        "input_tokens": 100,
        "output_tokens": 10,
        "cache_read_tokens": 0,
        "cache_write_tokens": 0,
        "reserved_usd": 0.01,
        "cost_usd": 0.001,
        "latency_seconds": 0.2,
        "finish_reason": "stop",
        "error": None,
    }
