"""A run once more, with the answers that it got: its configuration is that of the recorded one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from engine.build import make_ready, replayed_run
from engine.core.config import RunConfig
from engine.models import Run, Turn
from engine.runs.refusals import RunRefused

if TYPE_CHECKING:
    from collections.abc import Mapping


def replayed(llm: str, asked: Mapping[str, Any]) -> RunConfig:
    """Return the configuration of the run that an LLM called `replay:RUN` names, on the virtual
    clock and for as many turns as it took, but for what is `asked`.

    Raises `RunRefused` and `RefusedSetting`, in one sentence, if it cannot be replayed.
    """
    number = replayed_run(llm)
    run = Run.objects.filter(pk=number).first()
    if run is None:
        raise RunRefused(f"There is no run {number} to replay.")
    again: dict[str, Any] = {
        "llm": llm,
        "clock": "virtual",
        "record_calls": False,
        "max_turns": Turn.objects.filter(run=run).count() or None,
        "max_minutes": None,
        "max_calls": None,
        "max_nano_usd": None,
        **asked,
    }
    config = replace(RunConfig(**run.configuration), **again)
    make_ready(config)
    return config
