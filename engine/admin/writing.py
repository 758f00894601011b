"""What a person says and decides from the pages; the engine's inbox carries it out."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models.functions import Lower

from cohorts.models import Agent
from engine.admin.pages import number_of, person_of, text_of
from engine.core.mentions import find_mentions
from engine.core.prices import nano_usd
from engine.inbox import (
    MESSAGE_CHARACTERS,
    NOTE_CHARACTERS,
    RefusedChangeError,
    review_proposal,
    write_message,
)
from engine.money import NotRaised, raise_caps

if TYPE_CHECKING:
    from django.http import HttpRequest

    from engine.models import Channel, Message, Proposal, Run


def may_read(request: HttpRequest) -> bool:
    """Tell whether somebody may read what was said; the gate hides nothing from people."""
    return request.user.has_perm("engine.view_message")


def may_write(request: HttpRequest) -> bool:
    """Tell whether somebody may speak in the channels."""
    return may_read(request) and request.user.has_perm("engine.add_message")


def may_review(request: HttpRequest) -> bool:
    """Tell whether somebody may decide about proposals."""
    return request.user.has_perm("engine.change_proposal")


def send_message(request: HttpRequest, channel: Channel, root: Message | None = None) -> None:
    """Store what the person wrote, and say whom it calls."""
    if not may_write(request):
        raise PermissionDenied
    try:
        text = text_of(request, "text", at_most=MESSAGE_CHARACTERS)
        write_message(channel=channel, person=person_of(request), text=text, root=root)
    except RefusedChangeError as refusal:
        messages.error(request, str(refusal))
    else:
        messages.success(request, f"Your message is stored. {_whom_it_calls(text)}")


def review(request: HttpRequest, proposal: Proposal) -> None:
    """Decide about a proposal as the person has seen it, and say what stands."""
    if not may_review(request):
        raise PermissionDenied
    try:
        reviewed = review_proposal(
            proposal,
            version=number_of(request.POST.get("version")) or 0,
            state=request.POST.get("state", ""),
            person=person_of(request),
            note=text_of(request, "note", at_most=NOTE_CHARACTERS).strip(),
        )
    except RefusedChangeError as refusal:
        messages.error(request, str(refusal))
    else:
        messages.success(request, f"The proposal is {reviewed.get_state_display().lower()}.")


def may_raise(request: HttpRequest) -> bool:
    """Tell whether somebody may let a run spend more."""
    return request.user.has_perm("engine.change_runcontrol")


def raise_run_caps(request: HttpRequest, run: Run) -> None:
    """Raise the caps of a run by what the person wrote, and say what follows."""
    if not may_raise(request):
        raise PermissionDenied
    form = RaiseForm(request.POST)
    if not form.is_valid():
        messages.error(request, "Give an amount of money above 0, like 2.50, or a number of calls.")
        return
    try:
        raise_caps(
            run,
            max_nano_usd=nano_usd(form.cleaned_data["max_usd"]),
            max_calls=form.cleaned_data["max_calls"],
            who=person_of(request),
        )
    except NotRaised as refusal:
        messages.error(request, str(refusal))
    else:
        goes_on = "runsim --resume goes on with it" if run.status == "paused" else "it goes on"
        messages.success(request, f"The cap is raised: {goes_on}.")


class RaiseForm(forms.Form):
    """New caps of a run; blank leaves one as it is."""

    max_usd = forms.DecimalField(
        required=False, min_value=Decimal("0.0001"), max_value=Decimal(10**8), decimal_places=4
    )
    max_calls = forms.IntegerField(required=False, min_value=1)


def _whom_it_calls(text: str) -> str:
    if "@" not in text:
        return "It names no agent: whoever reads the channel may answer."
    handles = dict(Agent.objects.values_list(Lower("bot_name"), "pk"))
    called = find_mentions(text, handles)
    if not called:
        return "No agent has the name that it mentions with an @: check the bot name."
    names = Agent.objects.in_bulk(called)
    return f"It calls {', '.join(f'@{names[pk].bot_name}' for pk in called)}."
