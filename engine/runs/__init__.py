"""The only way to a run: start, drive, end, resume; every door goes through here."""

from __future__ import annotations

from engine.runs.asked import check_asked, configured
from engine.runs.controls import drain, pause, resume_by_worker, stop
from engine.runs.drive import Driven, EndUnwritten, Observer, drive
from engine.runs.firing import fire_due, fire_now
from engine.runs.forecasts import Forecast, forecast
from engine.runs.pick_up import pick_up
from engine.runs.pruning import prune_texts
from engine.runs.queue import request
from engine.runs.quiet import Quiet, why_quiet
from engine.runs.readiness import Readiness, is_worker_there, readiness, request_alone
from engine.runs.reaper import send_overdue
from engine.runs.refusals import RunIsLive, RunRefused
from engine.runs.replays import replayed
from engine.runs.report import report
from engine.runs.start import Begun, begin, resume
from engine.runs.states import RunState, State, state_of
from engine.runs.stops import Stops
from engine.runs.trial import chosen_for_trial, trial_asked, trial_world
from engine.runs.world import begin_named, fresh_world

__all__ = [
    "Begun",
    "Driven",
    "EndUnwritten",
    "Forecast",
    "Observer",
    "Quiet",
    "Readiness",
    "RunIsLive",
    "RunRefused",
    "RunState",
    "State",
    "Stops",
    "begin",
    "begin_named",
    "check_asked",
    "chosen_for_trial",
    "configured",
    "drain",
    "drive",
    "fire_due",
    "fire_now",
    "forecast",
    "fresh_world",
    "is_worker_there",
    "pause",
    "pick_up",
    "prune_texts",
    "readiness",
    "replayed",
    "report",
    "request",
    "request_alone",
    "resume",
    "resume_by_worker",
    "send_overdue",
    "state_of",
    "stop",
    "trial_asked",
    "trial_world",
    "why_quiet",
]
