"""`exportrun`: every file from one snapshot, in the agreed format, whole or not at all."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from cohorts.models import Agent, AgentVersion, Cohort
from cohorts.operations import add_members
from engine.core.group import NewProposal
from engine.core.records import AgentState, Outcome
from engine.export import writer
from engine.export.summary import summarise
from engine.laws.reading import FolderReader
from engine.laws.references import REFERENCE_LAWS
from engine.models import Message, RosterEntry, Run, RunControl, RunLease
from engine.store.database.topology import load_gate
from tests.contract.groups import (
    at,
    call,
    closed,
    decision,
    group,
    message,
    post,
    taken_in,
    thread,
    turn,
)
from tests.contract.site import DjangoSite, commit

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cohorts.rules import Topology
    from engine.export.rows import Scope

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def site() -> Iterator[DjangoSite]:
    """A run with a proposal, an open thread, and a root that only a person has answered."""
    made = DjangoSite()
    cohort = Cohort.objects.create(name="alpha", created_by="Ada")
    add_members(cohort, Agent.objects.filter(pk__in=(1, 2)), who="Ada")
    made.run.started_at = at(0)
    made.run.configuration = {"concurrent_turns": 2, "max_turn_seconds": 100.0, "seed": 7}
    made.run.save()
    _talk(made)
    yield made
    made.close()


def _talk(site: DjangoSite) -> None:
    store = site.open_store()
    person = site.write_message(channel=1, text="What about me?")
    ends = closed(thread(1, 2, 1), 2, Outcome.PROPOSAL)
    commit(
        store,
        group(
            1,
            messages=[post(1), message(2, author=2, root=1, ordinal=2, text="Let us “try”.")],
            threads=[ends],
            decisions=[decision(ends)],
            proposals=[NewProposal(root=1, cycle=1, agents=(2, 1), summary_seq=2, at=at(2))],
            states=[(agent, AgentState(last_selected=agent)) for agent in (1, 2)],
            turns=[
                turn(1),
                replace(
                    turn(2, agent=2),
                    n_gate_filtered=3,
                    waited_seconds=4.5,
                    wait_bound_seconds=200.0,
                ),
            ],
            calls=[replace(call(1, 1), thread=1, cost_nano_usd=1_500_000_000), call(2, 1, agent=2)],
            adopted=site_gate(site),
        ),
        group(
            2,
            messages=[post(3), message(4, author=3, root=3, ordinal=2)],
            threads=[thread(3, 3, 1)],
            taken_in=[taken_in(person, 5)],
            calls=[replace(call(2, 2, agent=2), thread=5)],
        ),
    )
    answer = site.write_message(channel=1, text="Anybody?", root=5)
    commit(store, group(3, taken_in=[taken_in(answer, 6, root=5, ordinal=2)]))
    site.write_message(channel=2, text="Not taken in")
    site.write_message(channel=1, text="Nor this", root=3)


def site_gate(site: DjangoSite) -> Topology:
    return load_gate(site.simulation.pk, "open")


def export(*what: str, to: Path) -> dict[str, list[dict[str, object]]]:
    """Run the command and return the lines of each file; see the format kept."""
    call_command("exportrun", *what, "--to", str(to), stdout=io.StringIO())
    reader = FolderReader(to)
    read = reader.read()
    assert reader.violations == []
    assert [breach for law in REFERENCE_LAWS for breach in law.check(read)] == []
    return {
        path.name: [json.loads(line) for line in path.read_text().splitlines()]
        for path in to.iterdir()
    }


def test_export_holds_every_file(site: DjangoSite, tmp_path: Path) -> None:
    files = export("--simulation", "main", to=tmp_path / "out")
    changes = [one for one in files.pop("changes.jsonl") if one["who"] == "Ada"]
    assert [(one["action"], one["cohort"], one["agent"]) for one in changes] == [
        ("member_added", "alpha", "lab-1"),
        ("member_added", "alpha", "lab-2"),
    ]
    assert {name: len(lines) for name, lines in sorted(files.items())} == {
        "agents.jsonl": 4,
        "llm_calls.jsonl": 3,
        "messages.jsonl": 8,
        "proposals.jsonl": 1,
        "runs.jsonl": 1,
        "threads.jsonl": 3,
        "topology.jsonl": 1,
        "turns.jsonl": 2,
    }


def test_export_names_threads_of_answered_roots_only(site: DjangoSite, tmp_path: Path) -> None:
    files = export("--simulation", "main", to=tmp_path / "out")
    shown = [(one["seq"], one["thread"], one["ordinal"]) for one in files["messages.jsonl"]]
    assert shown == [
        (1, 1, 1),
        (2, 1, 2),
        (3, 3, 1),
        (4, 3, 2),
        (5, 5, 1),
        (6, 5, 2),
        (None, None, None),
        (None, 3, None),
    ]
    cycles = [
        (one["id"], one["opener"], one["partner"], one["state"], one["outcome"])
        for one in files["threads.jsonl"]
    ]
    assert cycles == [
        (1, "lab-2", "lab-1", "closed", "proposal"),
        (3, "lab-3", "lab-1", "open", None),
        (5, None, None, "open", None),
    ]
    assert [one["thread"] for one in files["llm_calls.jsonl"]] == [1, None, 5]


def test_export_tells_who_wrote_what(site: DjangoSite, tmp_path: Path) -> None:
    files = export(str(site.run.pk), to=tmp_path / "out")
    by_seq = {one["seq"]: one for one in files["messages.jsonl"]}
    assert by_seq[2]["text"] == "Let us “try”."
    assert (by_seq[2]["author"], by_seq[2]["person"], by_seq[2]["turn"]) == ("lab-2", None, 1)
    assert (by_seq[5]["author"], by_seq[5]["person"], by_seq[5]["run"]) == (
        None,
        "Ada",
        site.run.pk,
    )
    assert files["topology.jsonl"][0]["cohorts"] == {"alpha": ["lab-1", "lab-2"]}
    assert files["proposals.jsonl"][0]["summary"] == "Let us “try”."
    assert [one["channel"] for one in files["messages.jsonl"]][-2:] == ["room-2", "room-1"]


def test_summary_equals_the_rows(site: DjangoSite) -> None:
    RunLease.objects.filter(run=site.run).update(counters={"slot_utilisation": 0.5})
    assert summarise(site.run.pk) == {
        "run": site.run.pk,
        "simulation": "main",
        "status": "running",
        "end_reason": None,
        "turns": 2,
        "messages": 4,
        "rejected": {"repeats": 4},
        "llm_calls": {"scan": 3},
        "input_tokens": 0,
        "output_tokens": 0,
        "cost_usd": 1.5,
        "threads": {"open": 1, "proposal": 1, "no_proposal": 0, "timeout": 0, "lost": 0},
        "proposals": 1,
        "gate_filtered": 3,
        "longest_wait_seconds": 4.5,
        "wait_bound_seconds": 200.0,
        "slot_utilisation": 0.5,
    }


def test_summary_of_a_run_without_turns_has_no_waits(site: DjangoSite) -> None:
    idle = Run.objects.create(simulation=site.simulation)
    summary = summarise(idle.pk)
    assert (summary["turns"], summary["messages"], summary["cost_usd"]) == (0, 0, 0)
    assert (summary["longest_wait_seconds"], summary["slot_utilisation"]) == (None, None)


def test_export_tells_an_ended_run_as_it_ended(site: DjangoSite, tmp_path: Path) -> None:
    summary = {**summarise(site.run.pk), "status": "completed", "end_reason": "idle", "turns": 1}
    Run.objects.filter(pk=site.run.pk).update(
        status="completed", summary=summary, finished_at=timezone.now()
    )
    RunControl.objects.filter(run=site.run).update(max_calls=9, max_nano_usd=2_000_000_000)
    (run,) = export(str(site.run.pk), to=tmp_path / "out")["runs.jsonl"]
    assert (run["end_reason"], run["turns"], run["cost_usd"]) == ("idle", 1, 1.5)
    configuration = cast("dict[str, object]", run["configuration"])
    assert (configuration["seed"], configuration["concurrent_turns"]) == (7, 2)
    assert (configuration["max_calls"], configuration["max_usd"]) == (9, 2.0)
    assert configuration["thread_messages"] == 12


def test_export_of_one_run_carries_whole_threads_and_no_others(
    site: DjangoSite, tmp_path: Path
) -> None:
    Run.objects.filter(pk=site.run.pk).update(status="completed")
    site.run = Run.objects.create(simulation=site.simulation, status="running")
    store = site.open_store()
    answer = replace(message(7, author=1, root=3, ordinal=3), turn=3)
    commit(store, group(4, messages=[answer], turns=[turn(3)]))
    files = export(str(site.run.pk), to=tmp_path / "second")
    assert [one["seq"] for one in files["messages.jsonl"]] == [3, 4, 7, None, None]
    assert [one["id"] for one in files["threads.jsonl"]] == [3]
    assert [one["number"] for one in files["turns.jsonl"]] == [3]
    assert files["proposals.jsonl"] == []
    both = export("--simulation", "main", to=tmp_path / "both")
    assert len(both["runs.jsonl"]) == 2
    assert len(both["messages.jsonl"]) == 9


def test_export_of_a_chosen_roster_holds_its_agents_and_who_was_there(
    site: DjangoSite, tmp_path: Path
) -> None:
    for number in (3, 4):
        RosterEntry.objects.create(simulation=site.simulation, agent_id=number)
    site.simulation.roster_chosen = True
    site.simulation.save()
    Agent.objects.create(pk=9, slug="stranger", bot_name="Stranger")
    AgentVersion.objects.filter(agent=4).delete()
    agents = export("--simulation", "main", to=tmp_path / "out")["agents.jsonl"]
    assert [one["agent"] for one in agents] == ["lab-1", "lab-2", "lab-3", "lab-4"]
    versions = [cast("list[dict[str, object]]", one["versions"]) for one in agents]
    assert [one[0]["version"] for one in versions] == [1, 1, 1, 0]


def test_export_is_written_into_an_empty_folder(site: DjangoSite, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    export(str(site.run.pk), to=folder)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out"]


def test_export_leaves_nothing_when_it_fails(
    site: DjangoSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: object) -> bytes:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(writer, "encode_row", full)
    with pytest.raises(CommandError, match="No space left on device"):
        call_command("exportrun", str(site.run.pk), "--to", str(tmp_path / "deep" / "out"))
    assert list((tmp_path / "deep").iterdir()) == []


@pytest.mark.parametrize(
    ("what", "name", "sentence"),
    [
        (["99"], "new", "There is no run 99."),
        (["--simulation", "nowhere"], "new", "There is no simulation nowhere."),
        (["--simulation", "main"], "full", "full is not empty: name a new or empty folder."),
        (["--simulation", "main"], "file", "file is a file: name a new or empty folder."),
        (["--simulation", "main"], "file/out", "file cannot be made"),
    ],
)
def test_export_refuses_wrong_use(
    site: DjangoSite, tmp_path: Path, what: list[str], name: str, sentence: str
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "note.txt").touch()
    (tmp_path / "file").touch()
    with pytest.raises(CommandError, match=sentence) as refused:
        call_command("exportrun", *what, "--to", str(tmp_path / name))
    assert refused.value.returncode == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "full"]


def test_export_tells_how_many_lines_it_wrote(site: DjangoSite, tmp_path: Path) -> None:
    told = io.StringIO()
    call_command("exportrun", str(site.run.pk), "--to", str(tmp_path / "out"), stdout=told)
    assert told.getvalue().splitlines()[:2] == ["runs.jsonl: 1 line", "agents.jsonl: 4 lines"]


def test_export_is_of_one_moment(
    site: DjangoSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is committed while the files are written is in none of them, and waits for nobody."""
    store = site.open_store()
    write_file = writer._write_file

    def and_commit(scope: Scope, path: Path) -> int:
        if path.name == "turns.jsonl":
            commit(store, group(4, messages=[post(7)], turns=[turn(3)]))
        return write_file(scope, path)

    monkeypatch.setattr(writer, "_write_file", and_commit)
    files = export(str(site.run.pk), to=tmp_path / "out")
    assert [one["number"] for one in files["turns.jsonl"]] == [1, 2]
    assert 7 not in [one["seq"] for one in files["messages.jsonl"]]
    assert Message.objects.filter(seq=7).exists()
