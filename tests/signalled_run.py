"""`python -m tests.signalled_run SIGTERM MOMENT WORDS`: `runsim` that gets a signal at a moment.

MOMENT is `begin` (its row is being written), `begun`, `build`, `load` or `end`.
"""

from __future__ import annotations

import os
import signal
import sys
from importlib import import_module
from typing import Any

import django


def main(number: signal.Signals, moment: str, words: list[str]) -> None:
    """Run the command, with a signal right before or after one of its steps."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "simsite.settings")
    django.setup()
    # Only now can models be imported.
    from engine import runs  # noqa: PLC0415
    from engine.management.commands.runsim import Command  # noqa: PLC0415
    from engine.store.database import DjangoStore  # noqa: PLC0415

    places = {
        "begin": (import_module("engine.runs.start"), "take"),
        "begun": (runs, "begin_named"),
        "build": (import_module("engine.runs.drive"), "build"),
        "load": (DjangoStore, "load"),
        "end": (import_module("engine.runs.drive"), "end"),
    }
    owner, name = places[moment]
    step = getattr(owner, name)

    def signalled(*args: Any, **options: Any) -> Any:
        if moment != "begun":
            os.kill(os.getpid(), number)
        done = step(*args, **options)
        if moment == "begun":
            os.kill(os.getpid(), number)
        return done

    setattr(owner, name, signalled)
    Command().run_from_argv(["manage.py", "runsim", "--skip-checks", *words])


if __name__ == "__main__":
    main(signal.Signals[sys.argv[1]], sys.argv[2], sys.argv[3:])
