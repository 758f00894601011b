"""What a person may ask of a run in the state that it is in, and what comes of it, in words.

Pure: the page that shows the buttons and the view that answers them go by the same list.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """A button: its word for the engine, its label, and what will happen."""

    word: str
    label: str
    says: str


def _stop(says: str) -> Act:
    return Act(word="stop", label="Stop", says=says)


_PAUSE: Final = Act(
    word="pause",
    label="Pause",
    says="Turns that go on are finished, then it waits until somebody resumes it. Nothing is lost.",
)
_STAY: Final = Act(
    word="pause",
    label="Stay paused",
    says="It was to go on as soon as a worker has it: it waits again until somebody resumes it.",
)
_DRAIN: Final = Act(
    word="drain",
    label="Finish open threads",
    says="Nothing new is started. Open threads come to their conclusion, then it stops.",
)
_RESUME: Final = Act(
    word="resume",
    label="Resume",
    says="A worker goes on with it from where it is, as soon as one is free.",
)
_RESUME_AT_CAP: Final = Act(
    word="resume",
    label="Resume",
    says="It paused at a cap: raise that first, or it pauses again at once.",
)
_STOP_RUNNING: Final = _stop(
    "No turn begins any more; those that go on may finish, then it ends. It cannot be resumed."
)
_STOP_QUEUED: Final = _stop("It ends before it begins.")
_STOP_PAUSED: Final = _stop("It ends now and cannot be resumed. What was said stays.")
_STOP_STALLED: Final = _stop(
    "It stops when its driver answers again. If that stays silent until its lease is over, "
    "stop it once more: then it ends at once, as interrupted."
)
_STOP_DEAD: Final = _stop(
    "Nobody drives it: it ends now, as interrupted. What was said stays; no worker goes on with it."
)
_WHILE_RUNNING: Final = {
    "run": (_PAUSE, _DRAIN, _STOP_RUNNING),
    "drain": (_PAUSE, _STOP_RUNNING),
    "pause": (_STOP_RUNNING,),
    "stop": (),
}
_IN_STATE: Final = {
    "queued": (_STOP_QUEUED,),
    "stalled": (_STOP_STALLED,),
    "dead": (_STOP_DEAD,),
}


def acts_in(state: str, *, wish: str, is_left_to_workers: bool, is_at_cap: bool) -> tuple[Act, ...]:
    """Return the buttons that make sense: none for a run that is stopping, or over.

    `state` is that of `RunState`, `wish` what was asked for last; of a paused run that is left to
    workers somebody has asked already that it goes on.
    """
    if state == "running":
        return _WHILE_RUNNING[wish]
    if state == "paused":
        resume = _RESUME_AT_CAP if is_at_cap else _RESUME
        return (_STAY if is_left_to_workers else resume, _STOP_PAUSED)
    return _IN_STATE.get(state, ())
