"""The comparison of two exports finds each row that is lost or altered, and passes what may change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.doctors import copy, drop, put
from tests.exports import clean_export
from tests.faults.containment import losses, repeated

if TYPE_CHECKING:
    from tests.doctors import Doctor
    from tests.exports import Files

OPEN = {"state": "open", "outcome": None, "closed_seq": None, "closed_at": None}
MEMORY = {"id": 1, "text": "Elm has bark."}
INVITATION = {"id": 1, "state": "pending", "reason": ""}
STATE = {"agent_id": 1, "last_selected": 4, "cursor": 9}


def everything(*doctors: Doctor) -> Files:
    """Return a clean export with a row of each table that no export shows, doctored."""
    files = clean_export() | {
        "memories": [dict(MEMORY)],
        "invitations": [dict(INVITATION)],
        "states": [dict(STATE)],
    }
    for doctor in doctors:
        doctor(files)
    return files


def in_table(name: str, **changes: object) -> Doctor:
    """Return what changes the one row of a table that no export shows."""
    return lambda files: files[name][0].update(changes)


def without(name: str) -> Doctor:
    return lambda files: files[name].clear()


def test_export_is_contained_in_itself() -> None:
    assert losses(everything(), everything()) == []
    assert repeated(everything()) == []


@pytest.mark.parametrize(
    ("name", "doctor"),
    [
        ("messages.jsonl", drop("messages", seq=5)),
        ("messages.jsonl", drop("messages", seq=13)),
        ("messages.jsonl", drop("messages", seq=None)),
        ("messages.jsonl", put("messages", {"seq": 5}, text="Summary: nothing.")),
        ("messages.jsonl", put("messages", {"seq": 5}, ordinal=4)),
        ("messages.jsonl", put("messages", {"seq": 7}, seq=70)),
        ("messages.jsonl", put("messages", {"seq": 5}, thread=None)),
        ("turns.jsonl", drop("turns", number=12)),
        ("turns.jsonl", put("turns", {"number": 12}, outcome="interrupted")),
        ("turns.jsonl", put("turns", {"number": 12}, committed=3)),
        ("threads.jsonl", drop("threads", id=1, cycle=1)),
        ("threads.jsonl", put("threads", {"id": 1, "cycle": 1}, outcome="timeout")),
        ("threads.jsonl", put("threads", {"id": 3}, opener="elm")),
        ("proposals.jsonl", drop("proposals", id=1)),
        ("proposals.jsonl", put("proposals", {"id": 1}, state="accepted")),
        ("llm_calls.jsonl", drop("llm_calls", turn=12)),
        ("llm_calls.jsonl", put("llm_calls", {"turn": 12}, cost_usd=0.0)),
        ("topology.jsonl", drop("topology", version=1)),
        ("topology.jsonl", put("topology", {"version": 1}, cohorts={})),
        ("changes.jsonl", drop("changes", version=2)),
        ("changes.jsonl", put("changes", {"version": 2}, who="another")),
        ("agents.jsonl", put("agents", {"agent": "elm"}, versions=[])),
        ("agents.jsonl", put("agents", {"agent": "elm"}, represents="Elm")),
        ("runs.jsonl", put("runs", {"run": 1}, status="interrupted")),
        ("runs.jsonl", put("runs", {"run": 1}, messages=14)),
        ("memories", without("memories")),
        ("memories", in_table("memories", text="")),
        ("invitations", without("invitations")),
        ("invitations", in_table("invitations", id=2)),
        ("states", without("states")),
        ("states", in_table("states", cursor=8)),
        ("states", in_table("states", last_selected=3)),
    ],
)
def test_what_is_gone_or_altered_is_a_loss(name: str, doctor: Doctor) -> None:
    found = losses(everything(), everything(doctor))
    assert len(found) == 1
    assert found[0].startswith(f"{name}: ")


def live_run(**changes: Any) -> Doctor:
    live = {"status": "running", "end_reason": None, "finished_at": None}
    return put("runs", {"run": 1}, **live, **changes)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (live_run(), put("runs", {"run": 1}, status="interrupted", end_reason="interrupted")),
        (put("turns", {"number": 12}, outcome="running"),) * 2,
        (
            put("turns", {"number": 12}, outcome="running"),
            put("turns", {"number": 12}, outcome="interrupted"),
        ),
        (put("messages", {"seq": 1}, thread=None), None),
        (put("messages", {"seq": 13}, seq=None, ordinal=None, run=None, thread=None), None),
        (put("threads", {"id": 1, "cycle": 2}, **OPEN), None),
        (drop("threads", id=1, cycle=2), None),
        (
            put("threads", {"id": 4}, **OPEN, partner=None, opened_seq=11, shared_cohorts=["x"]),
            None,
        ),
        (put("threads", {"id": 3}, opener=None, opened_seq=None, opened_at=None), None),
        (put("proposals", {"id": 1}, state="pending", reviewed_by=None), None),
        (put("llm_calls", {"turn": 11}, thread=None), None),
        (None, in_table("invitations", state="answered")),
        (None, in_table("states", last_selected=7, cursor=12, bank=[3])),
        (None, lambda files: files["memories"].append({"id": 2, "text": "And fir."})),
        (None, lambda files: files["agents.jsonl"][0]["versions"].append({"version": 2})),
        (drop("messages", seq=17), None),
    ],
)
def test_what_may_change_is_no_loss(before: Doctor | None, after: Doctor | None) -> None:
    earlier, later = (everything(*([doctor] if doctor else [])) for doctor in (before, after))
    assert losses(earlier, later) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (live_run(), put("runs", {"run": 1}, status="completed")),
        (live_run(threads={"open": 3, "proposal": 0}), put("runs", {"run": 1}, status="stopped")),
        (
            live_run(threads={"open": 3, "proposal": 0}),
            put("runs", {"run": 1}, threads={"open": 1, "proposal": 1}),
        ),
        (
            put("turns", {"number": 12}, outcome="running"),
            put("turns", {"number": 12}, outcome="worked"),
        ),
    ],
)
def test_what_the_dead_cannot_have_done_is_a_loss(before: Doctor, after: Doctor) -> None:
    assert len(losses(everything(before), everything(after))) == 1


def test_text_that_is_doubled_is_found() -> None:
    found = repeated(everything(copy("messages", {"seq": 5}, seq=18, ordinal=8)))
    assert len(found) == 1
    assert found[0].startswith("thread 1: ")
