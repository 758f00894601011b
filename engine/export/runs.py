"""The row of a run in an export: its summary object, and what it was asked for."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from engine.core.config import RunConfig
from engine.export.schema import Configuration, NanoUsd, RunRow
from engine.export.summary import NANO, summarise
from engine.models import RunControl
from engine.models.runs import LIVE

if TYPE_CHECKING:
    from engine.models import Run


def run_row(run: Run) -> RunRow:
    """Return the row of a run; one that has ended is told as it ended."""
    as_ended = None if run.status in LIVE else run.summary
    summary: dict[str, Any] = as_ended or summarise(run.pk)
    summary = {**summary, "cost_usd": NanoUsd(round(summary["cost_usd"] * NANO))}
    return RunRow(
        **summary,
        configuration=_configuration(run),
        code_version=run.code_version,
        started_at=run.started_at,
        finished_at=run.finished_at,
        takeovers=run.takeovers,
    )


def _configuration(run: Run) -> Configuration:
    """Return the effective settings: what is not stored has its default, caps are as raised."""
    control = RunControl.objects.filter(run=run).first() or RunControl(run=run)
    defaults = RunConfig()
    asked: dict[str, Any] = {
        item.name: run.configuration.get(item.name, getattr(defaults, item.name))
        for item in fields(RunConfig)
    }
    asked["max_usd"] = _raised(asked["max_nano_usd"], control.max_nano_usd)
    asked["max_calls"] = _raised(asked["max_calls"], control.max_calls)
    return Configuration(**{item.name: asked[item.name] for item in fields(Configuration)})


def _raised(asked: int | None, raised: int | None) -> int | None:
    return asked if raised is None else raised
