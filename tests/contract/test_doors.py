"""Whole runs over a real database: the same seed the same export, and every law kept."""

from __future__ import annotations

import json
import threading
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest
from django.core.management import call_command
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from cohorts.models import Agent, Cohort, Membership
from cohorts.operations import add_members, save_agent
from engine import inbox
from engine.core.config import RunConfig
from engine.laws.checking import check_folder
from engine.loop.ending import Ending, EndReason
from engine.models import Channel, Message, Proposal, Run, RunControl, Simulation, Turn
from engine.runs import RunIsLive, begin, fresh_world, resume, start
from engine.runs.end import end, end_undriven, mark_stopping
from engine.store.database import Liveness, read_lease, take_lease, take_liveness
from tests.doors import make_agent, make_world, runsim, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(180)]

SIX = ("ash", "elm", "fir", "oak", "yew", "bay")
COHORTS = {"north": ("ash", "elm", "fir"), "south": ("fir", "oak", "yew")}
#: Fields that name a row, not what happened: equal runs number them in the same order.
IDS = ("run", "id", "thread", "version", "topology_version", "agent_version")
#: What has wall times of people's work, not of the run.
OF_PEOPLE = ("agents.jsonl", "changes.jsonl")


def export(folder: Path, *what: str) -> dict[str, list[dict[str, Any]]]:
    call_command("exportrun", *what, "--to", str(folder), verbosity=0)
    return {
        path.name: [json.loads(line) for line in path.read_text().splitlines()]
        for path in sorted(folder.iterdir())
    }


def masked(files: dict[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    """Return an export with ids as ranks of their first use, and times as seconds of the run."""
    start = datetime.fromisoformat(files["runs.jsonl"][0]["started_at"])
    ranks: dict[str, dict[object, int]] = {name: {} for name in IDS}

    def mask(name: str, value: object) -> object:
        if name in ranks and value is not None:
            known = ranks["id" if name == "thread" else name]
            return known.setdefault(value, len(known))
        if name.endswith("_at") or name == "at":
            return value and (datetime.fromisoformat(str(value)) - start).total_seconds()
        return value

    return {
        file: [{name: mask(name, value) for name, value in line.items()} for line in lines]
        for file, lines in files.items()
        if file not in OF_PEOPLE
    }


def test_same_seed_gives_the_same_export_but_for_ids_and_wall_times(tmp_path: Path) -> None:
    make_world(agents=SIX[:4], cohorts=COHORTS)
    words = (
        "--until-idle",
        "--max-turns",
        "40",
        "--clock",
        "virtual",
        "--concurrent-turns",
        "1",
        "--latency",
        "2",
    )
    exports = []
    for number, seed in enumerate(("7", "7", "8")):
        told = runsim(*words, "--turn-delay", "3", "--seed", seed, "--fresh", "--json")
        assert told.code == 0
        exports.append(export(tmp_path / str(number), str(told.summary["run"])))
    first, second, other = exports
    assert first != second
    one, two = masked(first), masked(second)
    for file, lines in one.items():
        assert lines == two[file], file
    assert len(one["messages.jsonl"]) > 20
    assert one["turns.jsonl"][-1]["selected_at"] > 60
    assert masked(other)["messages.jsonl"] != one["messages.jsonl"]


@pytest.mark.parametrize("n_slots", [1, 3, 8])
def test_every_law_is_kept_with_people_and_changes_beside(n_slots: int, tmp_path: Path) -> None:
    make_world(agents=SIX, cohorts=COHORTS, unreviewed_proposals=1)
    words = ("--concurrent-turns", str(n_slots), "--latency", "0.05", "--seed", "1", "--json")
    meddling = Meddling()
    told = meddling.beside(lambda: runsim(*words))
    assert (told.code, told.summary["end_reason"]) == (0, "stopped")
    files = export(tmp_path, "--simulation", "main")
    verdict = check_folder(tmp_path)
    assert [str(violation) for violation in verdict.violations] == []
    assert any(message["person"] for message in files["messages.jsonl"])
    assert len({row["version"] for row in files["topology.jsonl"]}) >= 2
    assert any(turn["agent_version"] == 2 for turn in files["turns.jsonl"])
    assert files["runs.jsonl"][0]["turns"] == len(files["turns.jsonl"])


class Meddling:
    """A person who writes, edits, reviews and regroups beside a run, and then stops it."""

    def __init__(self) -> None:
        self._failure: BaseException | None = None

    def beside(self, work: Callable[[], Any]) -> Any:
        """Do the work here and meddle in a thread; what fails there fails the test."""
        thread = threading.Thread(target=self._run)
        thread.start()
        try:
            done = work()
        finally:
            thread.join()
        if self._failure is not None:
            raise self._failure
        return done

    def _run(self) -> None:
        try:
            self._meddle()
        except BaseException as error:
            self._failure = error
            raise
        finally:
            RunControl.objects.update(wish="stop")
            connection.close()

    def _meddle(self) -> None:
        wait_until(lambda: Message.objects.count() >= 8)
        ash = make_agent("ash")
        question = ask(ash, "Who dries wood, @Ash?")
        Membership.objects.filter(cohort__name="south", agent__slug="fir").delete()
        ash.represents = "The Charcoal Guild"
        save_agent(ash, who="Ada")
        root = Message.objects.filter(root=None, is_bot=True).latest("seq")
        inbox.write_message(channel=root.channel, person="Ada", text="Go on, please.", root=root)
        add_members(Cohort.objects.get(name="north"), Agent.objects.filter(slug="bay"), who="Ada")
        # A run may fall silent at any moment: only what a person asks for is sure to be said, and
        # that only where it takes no seat.
        while not Turn.objects.filter(agent=ash, agent_version=2).exists():
            ask(ash, "And who burns it, @Ash?", root=question)
        for proposal in Proposal.objects.filter(state="pending")[:2]:
            inbox.review_proposal(
                proposal, version=proposal.version, state="revised", person="Ada", note="Shorter."
            )
        ask(Agent.objects.get(slug="bay"), "Anything else, @Bay?")


def ask(agent: Agent, text: str, *, root: Message | None = None) -> Message:
    """Write as a person, and wait for the answer of the agent that the text names."""
    call = inbox.write_message(channel=Channel.objects.get(), person="Ada", text=text, root=root)
    answers = Message.objects.filter(root=root or call, author=agent, pk__gt=call.pk)
    wait_until(answers.exists)
    return call


@pytest.fixture
def paused() -> Run:
    """A run whose cap is spent, so that its lease is free."""
    make_world(agents=("ash", "elm"))
    assert runsim("--until-idle", "--clock", "virtual", "--max-calls", "2").code == 4
    return Run.objects.get()


@pytest.fixture(autouse=True)
def liveness_locks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Give back the locks of runs that are begun here and never driven."""
    taken: list[Liveness] = []

    def take_and_note(simulation_id: int, token: int) -> Liveness | None:
        lock = take_liveness(simulation_id, token)
        if lock is not None:
            taken.append(lock)
        return lock

    monkeypatch.setattr(start, "take_liveness", take_and_note)
    yield
    for lock in taken:
        lock.release()


def take(run: Run, *, known_token: int, owner: str) -> int | None:
    return take_lease(run.simulation_id, run.pk, known_token=known_token, owner=owner, seconds=30)


def test_lease_goes_to_the_first_of_two_who_read_it(paused: Run) -> None:
    lease = read_lease(paused.simulation_id)
    assert (lease.is_expired, lease.owner) == (True, "")
    assert take(paused, known_token=lease.token, owner="first") == lease.token + 1
    assert take(paused, known_token=lease.token, owner="second") is None
    held = read_lease(paused.simulation_id)
    assert (held.token, held.owner, held.is_expired) == (lease.token + 1, "first", False)


def test_driver_whose_lease_was_taken_ends_nothing(paused: Run) -> None:
    begun = resume(paused.simulation, max_calls=3)
    token = take(paused, known_token=begun.token, owner="elsewhere")
    stopped = Ending(reason=EndReason.STOPPED)
    assert not end(paused.pk, token=begun.token, ending=stopped, figures=None, at=timezone.now())
    mark_stopping(paused.pk, token=begun.token, n_turns=2)
    paused.refresh_from_db()
    assert (paused.status, paused.end_reason) == ("running", "")
    assert not read_lease(paused.simulation_id).is_expired
    assert token is not None
    mark_stopping(paused.pk, token=token, n_turns=2)
    paused.refresh_from_db()
    assert paused.status == "stopping"
    assert end(paused.pk, token=token, ending=stopped, figures=None, at=timezone.now())
    paused.refresh_from_db()
    assert (paused.status, paused.end_reason) == ("stopped", "stopped")
    assert read_lease(paused.simulation_id).is_expired


def test_ended_run_is_never_ended_again(paused: Run) -> None:
    begun = resume(paused.simulation, max_calls=3)
    Run.objects.update(status="failed", end_reason="failed", detail="No key.")
    stopped = Ending(reason=EndReason.STOPPED)
    assert end(paused.pk, token=begun.token, ending=stopped, figures=None, at=timezone.now())
    paused.refresh_from_db()
    assert (paused.status, paused.end_reason, paused.detail) == ("failed", "failed", "No key.")


def test_of_two_who_resume_one_drives(paused: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    late = read_lease(paused.simulation_id)
    resume(paused.simulation).liveness.release()  # the lease alone has to tell
    Run.objects.update(status="paused")
    monkeypatch.setattr(start, "read_lease", lambda _: late)
    with pytest.raises(RunIsLive, match="is paused"):
        resume(paused.simulation)
    monkeypatch.undo()
    monkeypatch.setattr(start, "_set_running", refuse)
    Run.objects.update(status="paused")
    with pytest.raises(RunIsLive):
        resume(paused.simulation)


def refuse(*_: object) -> None:
    raise start.TakenMeanwhile


def test_database_holds_one_live_run_of_a_simulation(paused: Run) -> None:
    for status in ("running", "paused", "stopping"):
        with pytest.raises(IntegrityError), transaction.atomic():
            Run.objects.create(simulation=paused.simulation, status=status)
    Run.objects.create(simulation=paused.simulation, status="queued")
    Run.objects.create(simulation=paused.simulation, status="stopped")
    assert Run.objects.count() == 3


def test_run_that_begins_at_the_same_moment_is_told_who_was_quicker(
    paused: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The way was clear when it looked, and is not when it writes."""
    lease = read_lease(paused.simulation_id)
    monkeypatch.setattr(start, "clear_the_way", lambda _: lease)
    with pytest.raises(RunIsLive, match=rf"Run {paused.pk} of main is paused \(call_cap\)"):
        begin(paused.simulation, RunConfig(), who="Ada")
    Run.objects.update(status="stopped", end_reason="stopped")
    assert take(paused, known_token=lease.token, owner="elsewhere")
    with pytest.raises(RunIsLive, match="began and ended at this moment: try again"):
        begin(paused.simulation, RunConfig(), who="Ada")
    assert Run.objects.count() == 1


def test_dead_run_that_somebody_else_marks_first_refuses(
    paused: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    Run.objects.update(status="running", end_reason="")
    late = read_lease(paused.simulation_id)
    assert end_undriven(paused, late)
    assert not end_undriven(paused, late)
    Run.objects.update(status="running", end_reason="")
    monkeypatch.setattr(start, "read_lease", lambda _: late)
    with pytest.raises(RunIsLive):
        begin(paused.simulation, RunConfig(), who="Ada")


def test_world_that_somebody_began_afresh_meanwhile_is_not_begun_again(paused: Run) -> None:
    Run.objects.update(status="stopped", end_reason="stopped")
    seen = Simulation.objects.get()
    fresh_world(Simulation.objects.get(), who="Ada")
    with pytest.raises(RunIsLive, match="Somebody began main afresh at this moment"):
        fresh_world(seen, who="Ada")
    assert sorted(Simulation.objects.values_list("name", flat=True)) == ["main", "main-1"]
