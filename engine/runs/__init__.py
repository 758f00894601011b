"""The only way to a run: start, drive, end, resume; every door goes through here."""

from __future__ import annotations

from engine.runs.asked import check_asked, configured
from engine.runs.drive import Driven, EndUnwritten, Observer, drive
from engine.runs.firing import fire_due
from engine.runs.forecasts import Forecast, forecast
from engine.runs.pruning import prune_texts
from engine.runs.refusals import RunIsLive, RunRefused
from engine.runs.replays import replayed
from engine.runs.report import report
from engine.runs.start import Begun, begin, resume
from engine.runs.stops import Stops
from engine.runs.world import begin_named, fresh_world

__all__ = [
    "Begun",
    "Driven",
    "EndUnwritten",
    "Forecast",
    "Observer",
    "RunIsLive",
    "RunRefused",
    "Stops",
    "begin",
    "begin_named",
    "check_asked",
    "configured",
    "drive",
    "fire_due",
    "forecast",
    "fresh_world",
    "prune_texts",
    "replayed",
    "report",
    "resume",
]
