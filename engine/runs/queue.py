"""The queue of runs: a row first."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import transaction

from engine.models import Run, RunControl
from engine.runs.refusals import check_priced

if TYPE_CHECKING:
    from engine.core.config import RunConfig
    from engine.models import Simulation


def request(simulation: Simulation, config: RunConfig, *, who: str) -> Run:
    """Ask for a run; return its row, which is queued.

    Raises `RunRefused` or `RefusedSetting` for one that could not begin whatever it waited for.
    """
    check_priced(simulation, config)
    with transaction.atomic():
        run = Run.objects.create(
            simulation=simulation,
            configuration=asdict(config),
            started_by=who,
            code_version=settings.CODE_VERSION,
            seed=config.seed,
        )
        RunControl.objects.create(run=run)
    return run
