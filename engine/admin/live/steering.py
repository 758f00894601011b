"""What a person asks of a run from its page; the functions of the engine carry it out.

They are those of `manage.py simctl`. What makes no sense any more, like the second of two clicks,
changes nothing, and the person is told how the run is.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from django import forms
from django.contrib import messages

from engine import runs
from engine.admin.live.steering_words import acts_in
from engine.admin.pages import person_of
from engine.core.prices import nano_usd
from engine.core.settings import RefusedSetting
from engine.models import Run, RunControl, Ticket
from engine.money import NotRaised, raise_caps
from engine.runs import RunRefused

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from django.http import HttpRequest

    from engine.admin.live.steering_words import Act
    from engine.runs import RunState

_ASKS: Final[Mapping[str, Callable[..., str]]] = {
    "stop": runs.stop,
    "drain": runs.drain,
    "pause": runs.pause,
    "resume": runs.resume_by_worker,
}
_CAPS: Final = {Run.EndReason.MONEY_CAP, Run.EndReason.CALL_CAP}


@dataclass(frozen=True, slots=True, kw_only=True)
class Steering:
    """How a run is, what was asked of it last and by whom, and what may be asked now."""

    state: RunState
    control: RunControl
    acts: tuple[Act, ...]


def may_steer(request: HttpRequest) -> bool:
    """Tell whether somebody may stop a run, let it go on, or let it spend more."""
    return request.user.has_perm("engine.change_runcontrol")


def steering_of(run: Run) -> Steering:
    """Return how a run is now; it has to be read with its simulation."""
    control = RunControl.objects.filter(run=run).first() or RunControl(run=run)
    state = runs.state_of(run)
    acts = acts_in(
        state.state,
        wish=control.wish,
        is_left_to_workers=Ticket.objects.filter(run=run).exists(),
        is_at_cap=run.end_reason in _CAPS and not _is_raised(run, control),
    )
    return Steering(state=state, control=control, acts=acts)


def _is_raised(run: Run, control: RunControl) -> bool:
    """Tell whether a cap was raised that the run has not gone on with yet."""
    return any(
        cap is not None and cap != run.configuration.get(name)
        for name, cap in (("max_nano_usd", control.max_nano_usd), ("max_calls", control.max_calls))
    )


def ask(request: HttpRequest, run: Run) -> str:
    """Ask of a run what the pressed button says, and tell what comes of it.

    Returns the sentence about what was done; "" if nothing was.
    """
    word, now = request.POST.get("word", ""), steering_of(run)
    if word not in {act.word for act in now.acts}:
        sentence = f"Nothing more was done: run {run.pk} is {now.state.state}. {now.state.sentence}"
        messages.info(request, sentence)
        return ""
    try:
        done = _ASKS[word](run, who=person_of(request))
    except (RunRefused, RefusedSetting) as refusal:
        messages.error(request, str(refusal))
        return ""
    messages.success(request, done)
    return done


def raise_run_caps(request: HttpRequest, run: Run) -> str:
    """Raise the caps of a run by what the person wrote, and say what follows.

    Returns the sentence about what was done; "" if nothing was.
    """
    form = RaiseForm(request.POST)
    if not form.is_valid():
        messages.error(request, "Give an amount of money above 0, like 2.50, or a number of calls.")
        return ""
    try:
        raise_caps(
            run,
            max_nano_usd=nano_usd(form.cleaned_data["max_usd"]),
            max_calls=form.cleaned_data["max_calls"],
            who=person_of(request),
        )
    except NotRaised as refusal:
        messages.error(request, str(refusal))
        return ""
    goes_on = "resume it, and it goes on" if run.status == Run.Status.PAUSED else "it goes on"
    done = f"The cap is raised: {goes_on}."
    messages.success(request, done)
    return done


class RaiseForm(forms.Form):
    """New caps of a run; blank leaves one as it is."""

    max_usd = forms.DecimalField(
        required=False, min_value=Decimal("0.0001"), max_value=Decimal(10**8), decimal_places=4
    )
    max_calls = forms.IntegerField(required=False, min_value=1)
