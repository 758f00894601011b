"""Exports that look odd and break no law, each beside the law that could take offence; the
doctored exports of `test_laws` are the controls. And what the reader says of unreadable files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from engine.laws.checking import check_folder
from tests.doctors import Doctor, both, copy, drop, limit, put, recount, setting
from tests.exports import AGENTS, Files, at, clean_export, write_export

if TYPE_CHECKING:
    from pathlib import Path

REOPENED_WITHOUT_END = {"state": "open", "outcome": None, "closed_seq": None, "closed_at": None}


def nothing_yet(files: Files) -> None:
    for lines in files.values():
        lines.clear()


def another_run_before(n_turns: int) -> Doctor:
    """Return what makes it the export of one run whose first turns were another run's."""

    def doctor(files: Files) -> None:
        for name, field in (("turns.jsonl", "number"), ("llm_calls.jsonl", "turn")):
            files[name] = [line for line in files[name] if line[field] > n_turns]
        for message in files["messages.jsonl"]:
            if message["turn"] is not None and message["turn"] <= n_turns:
                message["run"] = 0
        recount(files)

    return doctor


def an_author_that_answers_a_person_first(files: Files) -> None:
    """Let ash answer a person under its own root before hub's answer makes it two-party."""
    _let_ash_answer(files, "Any at all.")


def an_answer_written_while_a_person_spoke(files: Files) -> None:
    """Let ash speak, as if it had not read the person's word yet, and then answer that."""
    _let_ash_answer(files, "Or those of last year.", "Any at all.")


def _let_ash_answer(files: Files, *texts: str) -> None:
    n_new = 1 + len(texts)
    messages = files["messages.jsonl"]
    put("messages", {"seq": 12}, ordinal=2 + n_new)(files)
    person = messages[6] | {"seq": 20, "thread": 4, "ordinal": 2, "text": "Which ones?"}
    answers = [
        messages[10] | {"seq": 20 + number, "ordinal": 2 + number, "text": text}
        for number, text in enumerate(texts, start=1)
    ]
    messages[11:11] = [person, *answers]
    for number, message in enumerate(messages[:-1], start=1):
        message["seq"] = number
    for thread in files["threads.jsonl"]:
        for field in ("root_seq", "opened_seq", "closed_seq"):
            if thread[field] is not None and thread[field] > 11:
                thread[field] += n_new
    put("threads", {"id": 4}, opener="ash", partner="hub")(files)
    put("turns", {"number": 10}, committed=n_new)(files)
    recount(files)


def a_pair_that_meets_again(files: Files) -> None:
    """Give thread 5 to the pair of thread 4, 60 s after that one was closed."""
    for number, agent in ((15, "ash"), (16, "hub")):
        put("turns", {"number": number}, agent=agent)(files)
        put("llm_calls", {"turn": number}, agent=agent)(files)
        put("messages", {"turn": number}, author=agent, text=f"{agent} once more.")(files)
    put("threads", {"id": 5}, opener="hub", partner="ash")(files)


def a_root_that_a_person_answered(files: Files) -> None:
    """Add a root, alone in its thread with a person who answers it."""
    root = files["messages.jsonl"][10]
    person = files["messages.jsonl"][12]
    place = {"thread": 6, "text": "Ash Lab asks again.", "committed_at": at(330)}
    files["messages.jsonl"][-1:-1] = [
        root | place | {"seq": 18, "turn": 16, "author": "fir"},
        person | place | {"seq": 19, "ordinal": 2, "text": "@AshBot knows."},
    ]
    files["threads.jsonl"].append(
        files["threads.jsonl"][3]
        | {"id": 6, "root_seq": 18, "opener": None, "opened_seq": None, "opened_at": None}
        | {"topology_version": None}
    )
    files["turns.jsonl"][-1]["committed"] = 2
    recount(files)


def every_limit_own(files: Files) -> None:
    for agent in AGENTS:
        limit(agent, daily_posts=2, max_calls=9)(files)


def policy(name: str, verdict: str) -> Doctor:
    return both(
        setting(policy=name),
        *(put("topology", {"version": number}, policy=name, verdict=verdict) for number in (1, 2)),
        put("topology", {"version": 1}, policy=name, verdict=verdict, cohorts={}),
        put("changes", {"version": 2}, agent=None),
        lambda files: [
            thread.update(shared_cohorts=[])
            for thread in files["threads.jsonl"]
            if thread["topology_version"] == 1
        ],
        put("threads", {"id": 2}, grandfathered_at=None),
    )


LAWFUL: dict[str, Doctor] = {
    "nothing yet": nothing_yet,
    "one run of two": another_run_before(8),
    "an author that answers a person first": an_author_that_answers_a_person_first,
    "an answer written while a person spoke": an_answer_written_while_a_person_spoke,
    "a pair that meets again": a_pair_that_meets_again,
    "a pair that meets again in the next run": both(
        a_pair_that_meets_again, another_run_before(12), setting(pair_rest_seconds=90)
    ),
    "a word to the other side": put("messages", {"seq": 4}, text="Which ones, @OakBot?"),
    "a root that only a person answered": a_root_that_a_person_answered,
    "no gate": policy("off", "off"),
    "a gate that preflight refused": policy("isolated", "refused"),
    "limits of the agents' own": both(setting(daily_posts=0), every_limit_own),
    "a post that a person asked for": both(
        limit("ash", daily_posts=0),
        put("messages", {"seq": 7}, text="@HubBot or @AshBot, who knows about soil?"),
    ),
    "a turn lost in a death": both(
        drop("turns", number=12),
        drop("llm_calls", turn=12),
        put("runs", {"run": 1}, takeovers=1),
        recount,
    ),
    "a turn that died": put("turns", {"number": 12}, outcome="interrupted", finished_at=None),
    "a live run": both(
        put("runs", {"run": 1}, status="running", end_reason=None, finished_at=None),
        put("turns", {"number": 16}, outcome="running", finished_at=None, committed=0, llm_calls=0),
    ),
    "a change in the moment of an opening": put("topology", {"version": 2}, at=at(225)),
    "a change from outside": put("changes", {"version": 2}, who="outside", agent=None),
    "people's time beside a virtual clock": both(
        setting(clock="virtual"), put("topology", {"version": 2}, at=at(1e6))
    ),
    "a call that cost nothing yet": both(put("llm_calls", {"turn": 3}, cost_usd=None), recount),
    "a debt of an agent that pauses": both(
        put("threads", {"id": 5}, **REOPENED_WITHOUT_END),
        put("agents", {"agent": "hub"}, status="paused"),
        recount,
    ),
    "a person's word to somebody else at the end": lambda files: files["messages.jsonl"][-1].update(
        seq=18, ordinal=3, run=1, text="@ElmBot may know."
    ),
    "a reopened thread of a pair that may not begin": both(
        put("threads", {"id": 1, "cycle": 2}, shared_cohorts=[]),
        put("topology", {"version": 2}, cohorts={"c1": ["elm"], "c2": ["oak", "hub", "fir"]}),
        put("changes", {"version": 2}, agent=None),
        put("threads", {"id": 5}, shared_cohorts=["c2"]),
        put("threads", {"id": 2}, grandfathered_at=None),
    ),
    "a thread that a review reopened": put(
        "threads", {"id": 1, "cycle": 2}, opened_seq=12, opened_at=at(250)
    ),
    "a review in time": put("proposals", {"id": 1}, agents=["elm", "fir"], reviewed_at=at(126)),
    "a second tool round": both(
        copy("llm_calls", {"turn": 16}),
        put("turns", {"number": 16}, llm_calls=2),
        recount,
    ),
}


@pytest.mark.parametrize("name", LAWFUL)
def test_lawful_export_breaks_nothing(tmp_path: Path, name: str) -> None:
    files = clean_export()
    LAWFUL[name](files)

    assert [str(found) for found in check_folder(write_export(files, tmp_path)).violations] == []


def test_person_excuses_one_answer_to_oneself_and_no_second(tmp_path: Path) -> None:
    files = clean_export()
    _let_ash_answer(files, "Or those of last year.", "Any at all.", "Even broken ones.")
    broken = {one.law for one in check_folder(write_export(files, tmp_path)).violations}
    assert "alternation" in broken


def test_reader_names_missing_files_and_lines_that_are_not_utf_8(tmp_path: Path) -> None:
    write_export(clean_export(), tmp_path)
    (tmp_path / "changes.jsonl").unlink()
    (tmp_path / "proposals.jsonl").write_bytes(b'{"id": "\xff"}\n\n')

    assert [str(found) for found in check_folder(tmp_path).violations] == [
        "format: changes.jsonl, whole file: it cannot be read (No such file or directory).",
        "format: proposals.jsonl, line 1: the line is not UTF-8.",
        "format: proposals.jsonl, line 2: not JSON (Expecting value: line 2 column 1 (char 1)).",
    ]
