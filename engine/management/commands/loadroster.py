"""`manage.py loadroster DIR`: a folder of agents and cohorts becomes rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from django.core.management import BaseCommand, CommandError
from django.db import transaction

from cohorts.importer import Imported, find_conflicts, import_roster
from cohorts.names import SLUG_LIKE, is_slug
from cohorts.roster import read_roster
from engine.models import Simulation
from engine.roster import find_channel_conflicts, import_simulation

if TYPE_CHECKING:
    from argparse import ArgumentParser

    from cohorts.roster import Roster

WHO: Final = "loadroster"
WRONG_USE: Final = 2


class Command(BaseCommand):
    """Reads the whole folder first, then writes all of it in one transaction, or nothing."""

    help = "Load agents, profiles and cohorts from a folder; loading it twice changes nothing."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("folder", type=Path, metavar="DIR")
        parser.add_argument(
            "--simulation",
            metavar="NAME",
            help="also make this simulation, of these agents and channels",
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="say what would change, and write nothing"
        )
        parser.add_argument(
            "--prune",
            action="store_true",
            help="remove memberships and retire agents that the folder lacks",
        )

    def handle(
        self,
        *,
        folder: Path,
        simulation: str | None,
        dry_run: bool,
        prune: bool,
        **_: object,
    ) -> None:
        roster = self._read(folder, simulation)
        with transaction.atomic():
            imported = import_roster(roster, who=WHO, prune=prune)
            if simulation is not None:
                import_simulation(roster, simulation, imported, who=WHO, prune=prune)
            transaction.set_rollback(dry_run)
        if _policy(simulation) == Simulation.Policy.OPEN:
            self._warn(imported.freed, dry_run=dry_run)
        self._summarise(imported, dry_run=dry_run)

    def _read(self, folder: Path, simulation: str | None) -> Roster:
        """Return a roster that can be written, or refuse the folder with all its errors."""
        if simulation is not None and not is_slug(simulation):
            text = f'The simulation "{simulation}" must be {SLUG_LIKE}.'
            raise CommandError(text, returncode=WRONG_USE)
        roster, problems = read_roster(folder)
        if not problems:
            problems = find_conflicts(roster)
            if simulation is not None:
                problems += find_channel_conflicts(roster, simulation)
        if problems:
            listed = "\n".join(str(problem) for problem in problems)
            text = f"{listed}\nNothing was loaded: correct the folder and load it again."
            raise CommandError(text, returncode=WRONG_USE)
        return roster

    def _warn(self, freed: tuple[str, ...], *, dry_run: bool) -> None:
        now = "would be" if dry_run else "is now"
        for slug in freed:
            self.stderr.write(
                f"{slug} {now} in no cohort: under the policy open it may deal with everyone."
            )

    def _summarise(self, imported: Imported, *, dry_run: bool) -> None:
        kinds = dict.fromkeys(kind for kind, _ in imported.counts)
        for kind in kinds:
            parts = [
                f"{n} {happened}"
                for (of, happened), n in imported.counts.items()
                if of == kind and n
            ]
            self.stdout.write(f"{kind}: {', '.join(parts) or 'none'}")
        if not imported.has_changed:
            self.stdout.write("Everything was loaded already: nothing was changed.")
        elif dry_run:
            self.stdout.write("This was a dry run: nothing was written.")


def _policy(simulation: str | None) -> str:
    """Return the policy that the warning is about: the simulation's, else the default."""
    chosen = Simulation.objects.filter(name=simulation or "").values_list("policy", flat=True)
    return chosen.first() or Simulation.Policy.OPEN
