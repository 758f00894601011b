"""A simulation whose drivers are killed one after the other, and what must hold after each kill."""

from __future__ import annotations

import json
import signal
import sys
import time
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from engine.core.effects import TakeIn
from engine.export.rows import Scope
from engine.export.writer import write_export
from engine.laws.checking import check_folder
from engine.loop.rebuild import same_world, world_from
from engine.management.commands.runsim import LIVE
from engine.models import RunControl, RunLease
from engine.store.database.loading import load
from engine.store.database.mail import read_mail
from tests.doors import Told, own_process
from tests.faults import last_words
from tests.faults.containment import unexported

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from engine.core.world import World
    from engine.models import Simulation
    from tests.exports import Files
    from tests.faults.last_words import LastWords
    from tests.faults.people import People

IN_COMMIT = ("fence", "messages", "turns", "commit")
UNAPPLIED = ("stored", "unapplied")
AT_START = ("takeover", "leased", "load")
AT_END = ("end", "concluded")
#: What only the driver changes: it is the same in world and database also while notes wait.
OF_DRIVERS = ("commit_no", "last_seq", "states", "subscriptions", "threads", "pairs")
#: A run comes by at any place within seconds; somebody else's process may hold both cores.
PATIENCE_SECONDS = 90.0
#: Half of a lease: whoever begins before that has not waited for its end.
AT_ONCE_SECONDS = 15.0
PAUSE_SECONDS = 0.02
#: People act once for so many commits, and after so many looks without them.
COMMITS_PER_ACT = 3
LOOKS_PER_ACT = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """Where a driver dies: the first time that it is there, at or after a commit."""

    place: str
    commit_no: int


def plan(places: Sequence[str], n_commits: int, seed: int) -> list[Kill]:
    """Return the kills in a drawn order, each at a drawn commit of its own equal part of the work.

    A start has no commit before it: its kill comes after that of the part before.
    """
    dice = Random(seed)
    stretch = n_commits / len(places)
    return [
        Kill(
            place=place,
            commit_no=0 if place in AT_START else 1 + int(stretch * (number + dice.random())),
        )
        for number, place in enumerate(dice.sample(places, len(places)))
    ]


class Drivers:
    """Drivers of one simulation, each of which begins as soon as the last is dead.

    `exports` are what was stored after each death. Every look at it checks the laws.
    """

    def __init__(self, simulation: Simulation, people: People, folder: Path) -> None:
        self.exports: list[Files] = []
        self._simulation = simulation
        self._people = people
        RunLease.objects.get_or_create(simulation=simulation)
        self._folder = folder

    def die(self, kill: Kill, *words: str) -> None:
        """Let a driver run until it is killed, with people beside it, and look at what it left."""
        left = self._drive(kill, *words)
        assert left.code == -signal.SIGKILL, f"{kill}: it ended by itself: {left.err}"
        self._see_the_dead(kill, last_words.read(self._words))
        self.look()
        *earlier, _ = self.exports[-1]["runs.jsonl"]
        statuses = [run["status"] for run in earlier]
        assert {*statuses} <= {"interrupted"}, f"{kill}: the runs before are {statuses}"

    def end(self, *words: str) -> Told:
        """Let a driver go on to the end, alone, and see that its world is that of the database."""
        left = self._drive(None, *words, "--until-idle")
        assert left.code == 0, left.err
        self.look()
        known = last_words.read(self._words).world
        assert known is not None
        assert self._is_quiet(known), "it ended with mail, or under an old topology"
        differing = same_world(known, self.world())
        assert not differing, f"its world differs from a loaded one in {differing}"
        return left

    def look(self) -> None:
        """Keep an export of now, and see that it keeps every law."""
        folder = self._folder / f"export-{len(self.exports)}"
        write_export(Scope(simulation=self._simulation), folder)
        broken = [str(violation) for violation in check_folder(folder).violations]
        assert not broken, f"{folder} breaks laws: {broken}"
        files = {
            path.name: [json.loads(line) for line in path.read_text().split("\n") if line]
            for path in folder.iterdir()
        }
        self.exports.append(files | unexported(self._simulation))

    def world(self) -> World:
        """Return the world as the database has it."""
        return world_from(load(self._simulation.pk, self._simulation.policy))

    @property
    def _words(self) -> Path:
        return self._folder / "last-words"

    def _drive(self, kill: Kill | None, *words: str) -> Told:
        """Return what a driver left that began at once: as soon as the death of the last is known."""
        give_up_at = time.monotonic() + AT_ONCE_SECONDS
        while True:
            with self._driver(kill or Kill(place="idle", commit_no=0), *words) as process:
                if kill is not None:
                    self._live_beside(process, kill)
                out, err = process.communicate(timeout=PATIENCE_SECONDS)
            if process.returncode != LIVE or time.monotonic() > give_up_at:
                return Told(code=process.returncode, out=out, err=err)

    def _driver(self, kill: Kill, *words: str) -> AbstractContextManager[subprocess.Popen[str]]:
        """Start a driver; what is left of it at the end is killed."""
        self._words.unlink(missing_ok=True)
        return own_process(
            *(sys.executable, "-m", "tests.faults.killed_run"),
            *(kill.place, str(kill.commit_no), str(self._words)),
            *("--simulation", self._simulation.name, "--quiet", "--json", *words),
            SIM_LEASE_RENEW_SECONDS="1",
        )

    def _live_beside(self, process: subprocess.Popen[str], kill: Kill) -> None:
        """Act as people do, whenever the driver has got on or found nothing to do, until it is
        gone; one that is to die at its end is asked to stop when its commit has come."""
        give_up_at = time.monotonic() + PATIENCE_SECONDS
        acted_at, n_looks = 0, 0
        while process.poll() is None:
            assert time.monotonic() < give_up_at, f"{kill} did not come"
            commit_no = self._n_commits()
            n_looks += 1
            if commit_no >= acted_at + COMMITS_PER_ACT or n_looks > LOOKS_PER_ACT:
                acted_at, n_looks = commit_no, 0
                self._people.act()
            if kill.place in AT_END and commit_no >= kill.commit_no:
                RunControl.objects.filter(run__status="running").update(wish="stop")
            time.sleep(PAUSE_SECONDS)

    def _n_commits(self) -> int:
        return RunLease.objects.get(simulation=self._simulation).commit_no

    def _see_the_dead(self, kill: Kill, words: LastWords) -> None:
        """See that it died where it should, with nothing stored but whole groups, each of which it
        had stored before it went by it."""
        stored = self._n_commits()
        if kill.place in (*IN_COMMIT, *UNAPPLIED):
            n_whole = words.commit_no - (kill.place in IN_COMMIT)
            assert stored == n_whole, f"{kill}: {stored} groups are stored instead of {n_whole}"
            known = None if words.world is None else words.world.commit_no
            assert known == words.commit_no - 1, f"{kill}: it knew {known} of {words.commit_no}"
        if kill.place == "calls":
            assert words.n_calls >= 2, f"{kill}: {words.n_calls} calls were awaited"
        if words.world is not None:
            self._compare(words.world)

    def _compare(self, known: World) -> None:
        """See that a world is that of the database; a server may still end a commit of the dead."""
        quiet = self._is_quiet(known)
        world = self.world()
        if known.commit_no == world.commit_no:
            differing = [name for name in same_world(known, world) if quiet or name in OF_DRIVERS]
            assert not differing, f"the dead one's world differs in {differing}"

    def _is_quiet(self, known: World) -> bool:
        """Tell whether nothing waits that a world does not know yet."""
        mail = read_mail(self._simulation.pk)
        news = [effect for effect in mail if not isinstance(effect, TakeIn)]
        return not news and known.gate.version == self.world().gate.version
