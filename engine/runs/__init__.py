"""The only way to a run: start, drive, end, resume; every door goes through here."""

from __future__ import annotations

from engine.runs.drive import Driven, Observer, drive
from engine.runs.report import report
from engine.runs.start import Begun, RunIsLive, RunRefused, begin, resume
from engine.runs.world import fresh_world, simulation_named

__all__ = [
    "Begun",
    "Driven",
    "Observer",
    "RunIsLive",
    "RunRefused",
    "begin",
    "drive",
    "fresh_world",
    "report",
    "resume",
    "simulation_named",
]
