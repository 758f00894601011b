"""The inbox of proposals: who looks after which, what is put off, and reviews in batches.

Assigning and putting off change the inbox alone: an agent's block is lifted by a review, and waiting is
never a no.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ActionForm
from django.db.models import Q
from django.utils import timezone

from engine.admin.pages import person_of
from engine.inbox import NOTE_CHARACTERS, RefusedChangeError, review_proposal
from engine.models import Proposal

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import HttpRequest

BATCH: Final = 100


class BatchForm(ActionForm):
    """What is done with the ticked proposals, with one note for all."""

    note = forms.CharField(
        required=False,
        max_length=NOTE_CHARACTERS,
        label="Note for the agents",
        widget=forms.TextInput(attrs={"placeholder": "only for a review"}),
    )


class BoxFilter(admin.SimpleListFilter):
    """Which proposals are shown: without a choice those that wait and are not put off."""

    title = "inbox"
    parameter_name = "box"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [
            ("mine", "wait for me"),
            ("free", "wait, nobody looks after them"),
            ("snoozed", "put off"),
            ("all", "all"),
        ]

    def choices(self, changelist: Any) -> Any:
        """Name what is shown without a choice, which is not all."""
        first, *others = super().choices(changelist)
        yield first | {"display": "wait"}
        yield from others

    def queryset(self, request: HttpRequest, queryset: QuerySet[Proposal]) -> QuerySet[Proposal]:
        is_put_off = Q(snoozed_until__gt=timezone.now())
        waiting = queryset.filter(state="pending")
        match self.value():
            case "mine":
                return waiting.filter(assigned_to=person_of(request))
            case "free":
                return waiting.filter(~is_put_off, assigned_to="")
            case "snoozed":
                return waiting.filter(is_put_off)
            case "all":
                return queryset
        if "state__exact" in request.GET:  # a link that asks for a state means it
            return queryset
        return waiting.exclude(is_put_off)


def review_batch(
    model_admin: Any, request: HttpRequest, chosen: QuerySet[Proposal], state: str
) -> None:
    """Review the ticked proposals one by one; what somebody else has decided meanwhile stays."""
    note = request.POST.get("note", "").replace("\0", "").strip()[:NOTE_CHARACTERS]
    done = 0
    for proposal in chosen.order_by("pk")[:BATCH]:
        try:
            review_proposal(
                proposal,
                version=proposal.version,
                state=state,
                person=person_of(request),
                note=note,
            )
        except RefusedChangeError as refusal:
            messages.error(request, f"{model_admin.title(proposal)}: {refusal}")
        else:
            model_admin.log_change(request, proposal, f"Reviewed: {state}.")
            done += 1
    noun = "proposal is" if done == 1 else "proposals are"
    messages.success(request, f"{done} {noun} {state}.")


def put_off(request: HttpRequest, chosen: QuerySet[Proposal], *, days: int) -> None:
    """Put the ticked proposals off for so many days, 0 to take them back into the inbox."""
    until = timezone.now() + timedelta(days=days) if days else None
    n = chosen.filter(state="pending").update(snoozed_until=until)
    messages.success(request, f"{n} put off." if days else f"{n} back in the inbox.")


def assign(request: HttpRequest, chosen: QuerySet[Proposal], *, person: str) -> None:
    """Say who looks after the ticked proposals; "" for nobody."""
    n = chosen.filter(state="pending").update(assigned_to=person)
    messages.success(request, f"{n} now for {person or 'anybody'}.")
