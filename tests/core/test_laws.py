"""The laws on an export: a clean one keeps all, each doctored one breaks the one it should."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.laws.checking import LAW_SAYS, check_folder
from tests.doctors import Doctor, both, copy, drop, limit, put, recount, setting
from tests.exports import at, clean_export, write_export

RULES = Path(__file__).parents[2] / "docs" / "rules.md"


def check(folder: Path, *doctors: Doctor) -> set[str]:
    """Return the names of the laws that a clean export breaks when it is doctored."""
    files = clean_export()
    for doctor in doctors:
        doctor(files)
    return {violation.law for violation in check_folder(write_export(files, folder)).violations}


def test_clean_export_keeps_every_law(tmp_path: Path) -> None:
    verdict = check_folder(write_export(clean_export(), tmp_path))

    assert verdict.violations == ()
    assert verdict.n_records == 67
    assert len(LAW_SAYS) == 51


DOCTORED: dict[str, tuple[str, Doctor]] = {
    # format and names
    "a field left out": ("format", lambda files: files["turns.jsonl"][3].pop("committed")),
    "a number as text": ("format", put("messages", {"seq": 4}, ordinal="2")),
    "a run twice": ("unique", copy("runs", {"run": 1})),
    "an unknown time zone": ("unique", setting(time_zone="Mars/Base")),
    "a bot name twice": ("unique", put("agents", {"agent": "elm"}, bot_name="FIRBOT")),
    "an agent without versions": ("unique", put("agents", {"agent": "elm"}, versions=[])),
    "a turn twice": ("unique", copy("turns", {"number": 3})),
    "a version twice": ("unique", copy("topology", {"version": 2})),
    "a proposal twice": ("unique", copy("proposals", {"id": 1})),
    "a topology of no run": ("unique", put("topology", {"version": 2}, run=7)),
    "a turn of no run": ("references", put("turns", {"number": 3}, run=7)),
    "a turn of nobody": ("references", put("turns", {"number": 3}, agent="yew")),
    "a call under other house rules": (
        "references",
        put("llm_calls", {"turn": 1}, house_rules_version=2),
    ),
    "a turn of no version": ("references", put("turns", {"number": 3}, agent_version=2)),
    "a message by nobody": ("references", put("messages", {"seq": 4}, author="yew")),
    "a message of no thread": ("references", put("messages", {"seq": 4}, thread=77)),
    "a message of no turn": ("references", put("messages", {"seq": 4}, turn=77)),
    "a message of no run": (
        "references",
        both(copy("runs", {"run": 1}, run=2), put("messages", {"seq": 4}, run=7)),
    ),
    "a side that is nobody": ("references", put("threads", {"id": 4}, partner="yew")),
    "a root that is elsewhere": ("references", put("threads", {"id": 4}, root_seq=16)),
    "a proposal of no cycle": ("references", put("proposals", {"id": 1}, cycle=3)),
    "a call of no turn": ("references", put("llm_calls", {"turn": 3}, turn=77)),
    "a call of no thread": ("references", put("llm_calls", {"turn": 3}, thread=77)),
    "a call by another agent": ("references", put("llm_calls", {"turn": 3}, agent="elm")),
    # messages
    "two messages of one seq": ("seq-increasing", copy("messages", {"seq": 17})),
    "a seq out of order": (
        "seq-increasing",
        lambda files: files["messages.jsonl"].insert(0, files["messages.jsonl"].pop(4)),
    ),
    "a message that waits in the middle": (
        "seq-increasing",
        lambda files: files["messages.jsonl"].insert(0, files["messages.jsonl"].pop()),
    ),
    "a person's message from a turn": ("authorship", put("messages", {"seq": 7}, turn=6)),
    "a seq without ordinal": ("authorship", put("messages", {"seq": 7}, ordinal=None)),
    "an agent's message from no turn": ("authorship", put("messages", {"seq": 4}, turn=None)),
    "an agent that is no bot": ("authorship", put("messages", {"seq": 4}, is_bot=False)),
    "a commit before the last": ("commit-times", put("messages", {"seq": 6}, committed_at=at(1))),
    "an ordinal left out": ("ordinals", put("messages", {"seq": 5}, ordinal=4)),
    "a message left out": ("ordinals", drop("messages", seq=9)),
    "a root that is not the first": ("ordinals", put("threads", {"id": 4}, root_seq=12)),
    "a root alone that is number two": (
        "ordinals",
        copy("messages", {"seq": 17}, seq=18, thread=None),
    ),
    "a reply elsewhere": ("one-channel", put("messages", {"seq": 9}, channel="lab")),
    "a reply made private": ("one-channel", put("messages", {"seq": 9}, visibility="private")),
    "a message after its turn": ("within-turn", put("messages", {"seq": 17}, committed_at=at(350))),
    "a message before its turn": ("within-turn", put("turns", {"number": 9}, selected_at=at(186))),
    "a message of another's turn": ("within-turn", put("messages", {"seq": 9}, author="fir")),
    "the same said again": (
        "no-repeats",
        put("messages", {"seq": 14}, text="elm lab  offers bark samples."),
    ),
    # threads
    "a thread with oneself": ("two-parties", put("threads", {"id": 5}, opener="hub")),
    "a third agent": ("two-parties", put("messages", {"seq": 9}, author="ash")),
    "sides without the author": ("two-parties", put("threads", {"id": 4}, partner="elm")),
    "another than the one addressed": (
        "entitled",
        put("messages", {"seq": 3}, text="@HubBot, shall we map roots?"),
    ),
    "an agent that a person did not call": (
        "entitled",
        put("messages", {"seq": 7}, text="Who knows about soil? @FirBot perhaps"),
    ),
    "another opening": ("opening", put("threads", {"id": 2}, opened_seq=9)),
    "another opening time": ("opening", put("threads", {"id": 2}, opened_at=at(1))),
    "another opener": ("opening", put("threads", {"id": 4}, opener="ash", partner="hub")),
    "an opening by nobody": (
        "opening",
        put(
            "threads",
            {"id": 3},
            opener=None,
            opened_seq=None,
            opened_at=None,
            topology_version=None,
        ),
    ),
    "two decisions on a cycle": ("cycle-numbers", copy("threads", {"id": 4})),
    "a cycle left out": (
        "cycle-numbers",
        both(drop("threads", id=1, cycle=1), lambda files: files["proposals.jsonl"].clear()),
    ),
    "a reopening before the close": (
        "cycle-numbers",
        put("threads", {"id": 1, "cycle": 1}, closed_seq=14),
    ),
    "an open thread with an outcome": ("endings", put("threads", {"id": 3}, outcome="lost")),
    "a closed thread without outcome": ("endings", put("threads", {"id": 4}, outcome=None)),
    "half an opening": ("endings", put("threads", {"id": 3}, topology_version=None)),
    "a close before the opening": ("endings", put("threads", {"id": 4}, closed_seq=11)),
    "a close in the past": ("endings", put("threads", {"id": 4}, closed_at=at(1))),
    "a word after the close": ("closed-is-closed", put("threads", {"id": 2}, closed_seq=9)),
    "a word before the reopening": (
        "closed-is-closed",
        put("threads", {"id": 1, "cycle": 2}, opened_seq=14),
    ),
    "an agent that answers itself": ("alternation", put("messages", {"seq": 9}, author="fir")),
    "a thread too long": ("thread-length", setting(thread_messages=3)),
    "a proposal left out": ("proposal-outcomes", drop("proposals", id=1)),
    "another outcome": (
        "proposal-outcomes",
        put("threads", {"id": 1, "cycle": 1}, outcome="no_proposal"),
    ),
    "two proposals of a cycle": ("proposal-outcomes", copy("proposals", {"id": 1}, id=2)),
    "a proposal of others": ("proposal-confirmed", put("proposals", {"id": 1}, agents=["elm"])),
    "a proposal that nobody confirmed": (
        "proposal-confirmed",
        both(put("messages", {"seq": 6}, author="elm"), put("messages", {"seq": 2}, thread=1)),
    ),
    "an empty proposal": ("proposal-confirmed", put("proposals", {"id": 1}, summary=" ")),
    "a review by nobody": ("reviews", put("proposals", {"id": 1}, reviewed_by=None)),
    "a pending review": ("reviews", put("proposals", {"id": 1}, state="pending")),
    # pairs
    "two threads of a pair": (
        "one-thread-per-pair",
        put("threads", {"id": 1, "cycle": 1}, opener="fir", partner="oak"),
    ),
    "a thread too many": ("seats", setting(active_thread_threshold=1)),
    "a pair without rest": (
        "pair-rest",
        both(put("threads", {"id": 4}, opener="fir", partner="hub"), setting(pair_rest_seconds=90)),
    ),
    "a pair on an old root": (
        "pair-rest",
        both(
            put("threads", {"id": 5}, opener="hub", partner="ash", root_seq=16),
            put("threads", {"id": 4}, closed_seq=16),
        ),
    ),
    "a debt at the end": (
        "no-debts",
        put("threads", {"id": 5}, state="open", outcome=None, closed_seq=None, closed_at=None),
    ),
    "a debt to a person at the end": (
        "no-debts",
        lambda files: files["messages.jsonl"][-1].update(seq=18, ordinal=3, run=1),
    ),
    # gate
    "a run without topology": ("topology-known", lambda files: files["topology.jsonl"].clear()),
    "versions out of time": ("topology-known", put("topology", {"version": 2}, at=at(-9))),
    "another policy": ("topology-known", put("topology", {"version": 2}, policy="isolated")),
    "a verdict that does not fit": (
        "topology-known",
        put("topology", {"version": 2}, verdict="off"),
    ),
    "a change that nobody recorded": (
        "changes-recorded",
        lambda files: files["changes.jsonl"].clear(),
    ),
    "a change recorded for another": (
        "changes-recorded",
        put("changes", {"version": 2}, agent="elm"),
    ),
    "a version never seen": ("version-in-force", put("threads", {"id": 4}, topology_version=3)),
    "a version of the past": ("version-in-force", put("threads", {"id": 4}, topology_version=1)),
    "a version of the future": ("version-in-force", put("threads", {"id": 2}, topology_version=2)),
    "a pair that shares nothing": (
        "pair-permitted",
        put("topology", {"version": 1}, cohorts={"c1": ["elm", "oak"], "c2": ["fir", "hub"]}),
    ),
    "a pair that isolation refuses": (
        "pair-permitted",
        both(
            setting(policy="isolated"),
            put("topology", {"version": 1}, policy="isolated"),
            put("topology", {"version": 2}, policy="isolated"),
        ),
    ),
    "a cohort not shared": ("shared-cohorts", put("threads", {"id": 2}, shared_cohorts=["c2"])),
    "a name not permitted": (
        "addressed-permitted",
        put("messages", {"seq": 2}, text="Ask @HubBot about them."),
    ),
    "a tag not permitted": (
        "addressed-permitted",
        copy(
            "messages",
            {"seq": 17},
            seq=18,
            thread=None,
            ordinal=1,
            author="fir",
            turn=16,
            visibility="public",
            channel="general",
            text="@OakBot, once more?",
        ),
    ),
    "a mark without reason": ("grandfathered", put("threads", {"id": 4}, grandfathered_at=at(200))),
    "a private thread with a mark": (
        "grandfathered",
        put("threads", {"id": 5}, grandfathered_at=at(399)),
    ),
    "a mark left out": (
        "grandfathered",
        put(
            "threads",
            {"id": 2},
            grandfathered_at=None,
            state="open",
            outcome=None,
            closed_seq=None,
            closed_at=None,
        ),
    ),
    # turns
    "a number left out": (
        "turn-numbers",
        both(drop("turns", number=12), drop("llm_calls", turn=12)),
    ),
    "a turn of the run before": (
        "turn-numbers",
        both(
            copy("runs", {"run": 1}, run=2),
            put("turns", {"number": 12}, run=2),
            put("llm_calls", {"turn": 12}, run=2),
        ),
    ),
    "a turn still running": ("turn-times", put("turns", {"number": 12}, outcome="running")),
    "a turn without end": ("turn-times", put("turns", {"number": 12}, finished_at=None)),
    "a turn that ends first": ("turn-times", put("turns", {"number": 12}, finished_at=at(1))),
    "a wait below nothing": ("turn-times", put("turns", {"number": 12}, waited_seconds=-1)),
    "a selection out of order": (
        "selection-order",
        put("turns", {"number": 12}, selected_at=at(1)),
    ),
    "two turns at once": ("one-turn-at-once", put("turns", {"number": 7}, finished_at=at(221))),
    "a rest too short": ("cooldown", setting(turn_delay_seconds=40)),
    "a slot too many": ("slots", setting(concurrent_turns=1)),
    "another longest wait": ("longest-waits", put("turns", {"number": 3}, waited_seconds=9)),
    "a wait of no turn": ("longest-waits", copy("runs", {"run": 1}, run=2)),
    "a wait beyond its bound": ("waits", put("turns", {"number": 3}, wait_bound_seconds=0.1)),
    "somebody passed over": (
        "longest-unselected-first",
        put("turns", {"number": 13}, waited_seconds=25),
    ),
    "a turn too many": ("turn-limit", setting(max_turns=15)),
    # caps
    "a post too many": ("daily-posts", setting(daily_posts=0)),
    "a post above the own limit": ("daily-posts", limit("ash", daily_posts=0)),
    "a post before the review": (
        "unreviewed-proposals",
        put("proposals", {"id": 1}, agents=["ash", "fir"], reviewed_at=at(999)),
    ),
    "a call too many": ("call-caps", setting(max_calls=16)),
    "a call above the own cap": ("call-caps", limit("fir", max_calls=5)),
    "a cent too many": ("money-caps", setting(max_usd=0.0169)),
    "a call dearer than reserved": ("money-caps", put("llm_calls", {"turn": 3}, cost_usd=0.02)),
    "an agent's cent too many": ("own-money-caps", limit("fir", max_nano_usd=5_999_999)),
    "a model without a price": (
        "money-caps",
        both(
            setting(max_usd=1),
            put("llm_calls", {"turn": 3}, cost_usd=None, reserved_usd=0),
            recount,
        ),
    ),
    "an attempt left out": ("attempts", put("llm_calls", {"turn": 3}, attempt=2)),
    "an attempt before the first": ("attempts", put("llm_calls", {"turn": 3}, attempt=0)),
    # counters
    "another number of turns": ("counters", put("runs", {"run": 1}, turns=17)),
    "another number of messages": ("counters", put("runs", {"run": 1}, messages=16)),
    "another number of refusals": (
        "counters",
        put("turns", {"number": 3}, rejected={"repeats": 1}),
    ),
    "another number kept back": ("counters", put("turns", {"number": 3}, gate_filtered=1)),
    "another phase": ("counters", put("llm_calls", {"turn": 12}, phase="prune")),
    "another number of tokens": ("counters", put("llm_calls", {"turn": 3}, output_tokens=11)),
    "another cost": ("counters", put("llm_calls", {"turn": 3}, cost_usd=0.002)),
    "another number of threads": ("counters", put("threads", {"id": 4}, outcome="lost")),
    "another number of proposals": ("counters", put("runs", {"run": 1}, proposals=2)),
    "a message without effect": ("counters", put("turns", {"number": 3}, committed=0)),
    "another number of calls": ("calls-per-turn", put("turns", {"number": 3}, llm_calls=2)),
    "another end": ("run-endings", put("runs", {"run": 1}, end_reason="money_cap")),
    "an end without time": ("run-endings", put("runs", {"run": 1}, finished_at=None)),
    "slots used twice": ("run-endings", put("runs", {"run": 1}, slot_utilisation=1.5)),
    "two live runs": (
        "run-endings",
        both(
            put("runs", {"run": 1}, status="running", end_reason=None, finished_at=None),
            copy("runs", {"run": 1}, run=2),
        ),
    ),
}


@pytest.mark.parametrize("name", DOCTORED)
def test_doctored_export_breaks_its_law(tmp_path: Path, name: str) -> None:
    law, doctor = DOCTORED[name]

    assert law in check(tmp_path, doctor)


def test_rules_document_lists_every_law_as_it_is_told() -> None:
    document = " ".join(RULES.read_text(encoding="utf-8").split())

    assert [
        name for name, says in LAW_SAYS.items() if f"| `{name}` | {says} |" not in document
    ] == []


def test_every_law_has_a_doctored_export() -> None:
    assert {law for law, _ in DOCTORED.values()} == set(LAW_SAYS)
