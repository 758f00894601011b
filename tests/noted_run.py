"""`python -m tests.noted_run FILE WORDS`: `runsim` that notes in a file when a call arrives."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import django

if TYPE_CHECKING:
    from engine.ports.llm import LlmAnswer, LlmRequest


def main(file: Path, words: list[str]) -> None:
    """Run the command with the offline LLM, which adds a byte to the file for each call."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "simsite.settings")
    django.setup()
    # Only now can models be imported.
    from engine import build  # noqa: PLC0415
    from engine.backends.llm.offline import OfflineLlm  # noqa: PLC0415
    from engine.management.commands.runsim import Command  # noqa: PLC0415

    class NotingLlm(OfflineLlm):
        async def complete(self, request: LlmRequest) -> LlmAnswer:
            with file.open("ab", buffering=0) as notes:
                notes.write(b".")
            return await super().complete(request)

    vars(build)["OfflineLlm"] = NotingLlm
    Command().run_from_argv(["manage.py", "runsim", "--skip-checks", *words])


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
