"""`python -m tests.faults.killed_run PLACE COMMIT FILE WORDS`: `runsim` that kills itself.

It dies by SIGKILL at the first passage of PLACE at or after commit number COMMIT, and leaves its
last words in FILE. With `idle` as PLACE it lives, and speaks when its run has ended.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import django


def main(place: str, commit_no: int, file: Path, words: list[str]) -> None:
    """Run the command, with death in wait for it."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "simsite.settings")
    django.setup()
    # Only now can models be imported.
    from engine.management.commands.runsim import Command  # noqa: PLC0415
    from tests.faults.death import Death, lay_in_wait  # noqa: PLC0415

    lay_in_wait(Death(place, commit_no, file))
    Command().run_from_argv(["manage.py", "runsim", "--skip-checks", *words])


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), sys.argv[4:])
