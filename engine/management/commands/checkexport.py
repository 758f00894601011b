"""`manage.py checkexport DIR`: check the laws on an export folder."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from django.core.management.base import BaseCommand, CommandError

from engine.laws.checking import LAW_SAYS, check_folder

if TYPE_CHECKING:
    from argparse import ArgumentParser


class Command(BaseCommand):
    """Exit 0 if every law is kept, 1 with one line a violation on stdout, 2 for wrong use."""

    help = "Check an export folder: every law that its data can show to be kept or broken."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("folder", metavar="DIR", type=Path, help="a folder made by exportrun")

    def handle(self, *_args: object, folder: Path, **_options: object) -> None:
        if not folder.is_dir():
            raise CommandError(
                f"There is no folder {folder}; name one that exportrun has made.", returncode=2
            )
        verdict = check_folder(folder)
        for violation in verdict.violations:
            self.stdout.write(str(violation))
        if verdict.violations:
            broken = {violation.law: None for violation in verdict.violations}
            for name in broken:
                self.stderr.write(f"{name}: {LAW_SAYS[name]}.")
            self.stderr.write(f"violations: {len(verdict.violations)}, laws broken: {len(broken)}")
            sys.exit(1)
        self.stdout.write(f"every law kept ({len(LAW_SAYS)} laws, {verdict.n_records} records)")
