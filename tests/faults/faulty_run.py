"""`python -m tests.faults.faulty_run FAULTS WORDS`: `runsim` that never tires, with faults inside.

FAULTS are names of `tests.faults.inside` with a number each: `apply=3,answers=2`; or `none`.
"""

from __future__ import annotations

import os
import sys

import django

from tests import eager_run


def main(faults: str, words: list[str]) -> None:
    """Install the faults, then run the command with the model that never tires."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "simsite.settings")
    django.setup()
    # Only now can models be imported.
    from tests.faults.inside import FAULTS  # noqa: PLC0415

    for fault in faults.split(",") if faults != "none" else ():
        name, _, number = fault.partition("=")
        FAULTS[name](float(number))
    eager_run.main(words)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
