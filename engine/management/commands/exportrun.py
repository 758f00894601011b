"""`manage.py exportrun (RUN | --simulation NAME) --to DIR`: a run or a simulation as JSON Lines."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from django.core.management.base import BaseCommand, CommandError

from engine.export.rows import Scope
from engine.export.writer import RefusedFolderError, write_export
from engine.models import Run, Simulation

if TYPE_CHECKING:
    from argparse import ArgumentParser

WRONG_USE = 2


class Command(BaseCommand):
    help = "Write a run, or a simulation with all its runs, as JSON Lines into an empty folder."

    def add_arguments(self, parser: ArgumentParser) -> None:
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument("run", nargs="?", type=int, metavar="RUN", help="the number of a run")
        what.add_argument("--simulation", metavar="NAME", help="all runs of this simulation")
        parser.add_argument("--to", required=True, type=Path, metavar="DIR", dest="folder")

    def handle(self, *, run: int | None, simulation: str | None, folder: Path, **_: object) -> None:
        scope = _simulation_scope(simulation) if run is None else _run_scope(run)
        try:
            n_lines = write_export(scope, folder.resolve())
        except RefusedFolderError as exc:
            raise CommandError(str(exc), returncode=WRONG_USE) from exc
        for name, number in n_lines.items():
            self.stdout.write(f"{name}: {number} {'line' if number == 1 else 'lines'}")


def _run_scope(number: int) -> Scope:
    run = Run.objects.select_related("simulation").filter(pk=number).first()
    if run is None:
        raise CommandError(f"There is no run {number}.", returncode=WRONG_USE)
    return Scope(simulation=run.simulation, run=run)


def _simulation_scope(name: str | None) -> Scope:
    simulation = Simulation.objects.filter(name=name or "").first()
    if simulation is None:
        raise CommandError(f"There is no simulation {name}.", returncode=WRONG_USE)
    return Scope(simulation=simulation)
