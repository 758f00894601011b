"""`python -m tests.eager_run WORDS`: `runsim` with a model that never tires of talking."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import django

from engine.ports.llm import Chosen, PruneContext

if TYPE_CHECKING:
    from engine.ports.clock import Clock
    from engine.ports.llm import Decision, LlmRequest
    from tests.runtime.scripted_llm import ScriptedLlm

ANSWER_SECONDS = 0.05


def keep_the_newest(request: LlmRequest) -> Decision:
    """A pair talks again only on a root that is newer than its last talk."""
    assert isinstance(request.context, PruneContext)
    return Chosen(seqs=tuple(post.seq for post in request.context.posts[-request.context.n_keep :]))


def set_up() -> None:
    """Set Django up, with the scripted model in the place of the offline one."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "simsite.settings")
    django.setup()
    # Only now can models be imported.
    from engine import build  # noqa: PLC0415
    from engine.core.door import notices  # noqa: PLC0415
    from tests.runtime.scripted_llm import ScriptedLlm, by_phase, eager  # noqa: PLC0415

    def eager_llm(_seed: int, clock: Clock, *, latency_seconds: float) -> ScriptedLlm:
        script = by_phase(eager, prune=keep_the_newest)
        return ScriptedLlm(clock=clock, script=script, latency=lambda _: ANSWER_SECONDS)

    # One refused draft would keep an agent quiet for longer than the test lasts.
    vars(notices)["SKIP_SECONDS"] = ANSWER_SECONDS
    vars(build)["OfflineLlm"] = eager_llm


def main(words: list[str]) -> None:
    """Run the command."""
    set_up()
    from engine.management.commands.runsim import Command  # noqa: PLC0415

    Command().run_from_argv(["manage.py", "runsim", "--skip-checks", *words])


if __name__ == "__main__":
    main(sys.argv[1:])
