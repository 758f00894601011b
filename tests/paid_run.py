"""`python -m tests.paid_run BILL SECONDS WORDS`: `runsim` with a model that costs money.

What reaches the model stands in the file BILL; an answer takes SECONDS, times one to three.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import django

if TYPE_CHECKING:
    from engine.ports.clock import Clock
    from tests.paid_llm import PaidLlm


def main(bill: Path, seconds: float, words: list[str]) -> None:
    """Run the command with the paid model in the place of the offline one."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "simsite.settings")
    django.setup()
    # Only now can models be imported.
    from engine import build  # noqa: PLC0415
    from engine.core.door import notices  # noqa: PLC0415
    from engine.loop import watch  # noqa: PLC0415
    from engine.management.commands.runsim import Command  # noqa: PLC0415
    from engine.money import price_table  # noqa: PLC0415
    from tests.eager_run import keep_the_newest  # noqa: PLC0415
    from tests.paid_llm import PaidLlm  # noqa: PLC0415
    from tests.runtime.scripted_llm import by_phase, eager  # noqa: PLC0415

    prices = price_table()

    def paid_llm(_seed: int, clock: Clock, *, latency_seconds: float) -> PaidLlm:
        return PaidLlm(
            clock=clock,
            prices=prices,
            script=by_phase(eager, prune=keep_the_newest),
            seconds=lambda request: seconds * (1 + len(request.agent) % 3),
            bill=bill,
        )

    # Who was refused money would otherwise rest for longer than the test lasts.
    vars(watch)["EMPTY_REST_SECONDS"] = (0.05, 0.1, 0.2)
    vars(notices)["SKIP_SECONDS"] = seconds
    vars(build)["OfflineLlm"] = paid_llm
    Command().run_from_argv(["manage.py", "runsim", "--skip-checks", *words])


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]), sys.argv[3:])
