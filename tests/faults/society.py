"""A society that talks without end, for faults to strike, and what must hold after each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.db import connection

from engine.laws.checking import check_folder
from engine.models import Message, Run, RunControl, RunLease, Turn
from engine.store.database import read_lease
from tests.doors import faulty_run, make_world, manage, runsim, told, wait_until

if TYPE_CHECKING:
    import subprocess

    from engine.models import Simulation
    from tests.doors import Told

CORE = ("ash", "elm", "fir")
EAST = ("oak", "yew", "bay")
#: Threads are short, follow each other, and never make an agent wait for a person.
SETTINGS: dict[str, Any] = {
    "daily_posts": 1000,
    "unreviewed_proposals": 1000,
    "thread_messages": 4,
    "concurrent_turns": 4,
}
#: How a run ends on a full disk.
NO_SPACE = "The disk of the database is full: make space there, then start the next run."
#: Lets a lease end soon: of 2 s, renewed four times in it.
SHORT_LEASE = {
    "SIM_LEASE_SECONDS": "2",
    "SIM_LEASE_RENEW_SECONDS": "0.5",
    "SIM_PULSE_SECONDS": "0.1",
}


def talkative_world() -> Simulation:
    """Make six agents in two cohorts, whose talk never ends with a model that never tires."""
    return make_world(
        agents=(*CORE, *EAST), cohorts={"core": CORE, "east": EAST}, policy="isolated", **SETTINGS
    )


def wait_for_messages(n_more: int, of: subprocess.Popen[str] | None = None) -> None:
    """Wait until so many more messages are stored than there are now, and see that `of` lives."""
    wanted = Message.objects.count() + n_more

    def is_over() -> bool:
        return of is not None and of.poll() is not None

    wait_until(lambda: Message.objects.count() >= wanted or is_over())
    assert not is_over()


def stopped(process: subprocess.Popen[str]) -> Told:
    """Ask a live run to stop as a person does, and wait for its end."""
    RunControl.objects.update(wish="stop")
    return told(process)


def see_it_stopped(left: Told) -> None:
    """See that a run ended as it was asked to, and that none of its rows says otherwise."""
    assert (left.code, left.summary["status"], left.summary["end_reason"]) == (
        0,
        "stopped",
        "stopped",
    ), left.err
    assert "storage" not in left.summary["rejected"], left.err
    assert not Turn.objects.filter(outcome__in=["running", "interrupted", "failed"]).exists()


def see_laws_kept(folder: Path) -> None:
    """See that every law holds on the export of everything, and that nothing is there twice."""
    name = Run.objects.values_list("simulation__name", flat=True)[0]
    exported = manage("exportrun", "--simulation", name, "--to", str(folder))
    assert exported.code == 0, exported.err
    assert [str(violation) for violation in check_folder(folder).violations] == []
    texts = list(Message.objects.values_list("text", flat=True))
    assert len(texts) == len(set(texts))
    seqs = list(Message.objects.order_by("seq").values_list("seq", flat=True))
    assert seqs == list(range(1, len(seqs) + 1))


def lease_has_ended() -> bool:
    """Tell whether the lease of the simulation, which a driver has taken before, is over."""
    return read_lease(RunLease.objects.get().simulation_id).is_expired


def is_stopped(process: subprocess.Popen[str]) -> bool:
    """Tell whether a process was stopped by a signal, as the kernel says."""
    status = Path(f"/proc/{process.pid}/stat").read_text(encoding="ascii")
    return status.rpartition(")")[2].split()[0] == "T"


def n_groups() -> int:
    """Return how many groups the simulation has committed."""
    return RunLease.objects.get().commit_no


def see_it_find_no_space(fault: str) -> None:
    """See a run fail for want of space, in one sentence, with everything whole that it stored."""
    with faulty_run(fault, "--seed", "3", "--json") as process:
        left = told(process)
    assert left.code == 1
    assert NO_SPACE in left.err.splitlines()[-1], left.err
    assert "Traceback" not in left.err, left.err


def see_the_next_go_on() -> None:
    n_messages = Message.objects.count()
    assert runsim("--seed", "1", "--max-turns", "6", "--json").code == 0
    assert Message.objects.count() > n_messages


def run_sql(*statements: str) -> None:
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
