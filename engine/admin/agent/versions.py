"""Two versions of an agent beside each other, line by line, and an agent made like another."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import reverse

from cohorts import operations
from cohorts.models import Agent, AgentVersion
from cohorts.operations import VERSIONED_FIELDS
from engine.admin.pages import frame, number_of, person_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.contrib.admin import ModelAdmin
    from django.http import HttpRequest, HttpResponse

LINES_AT_MOST: Final = 2_000
_SIGNS: Final = {"- ": "removed", "+ ": "added", "  ": "same"}


def differences_view(
    model_admin: ModelAdmin[Any], request: HttpRequest, agent_id: int
) -> HttpResponse:
    """Show what two versions of an agent differ in: without a choice the last two."""
    if not request.user.has_perm("cohorts.view_agentversion"):
        raise PermissionDenied
    agent = get_object_or_404(Agent, pk=agent_id)
    if request.method == "POST":
        return _restored(request, agent)
    rows = {row.number: row for row in AgentVersion.objects.filter(agent=agent)[:200]}
    numbers = sorted(rows)
    old = rows.get(number_of(request.GET.get("old")) or (numbers[-2:] or [0])[0])
    new = rows.get(number_of(request.GET.get("new")) or (numbers or [0])[-1])
    context = frame(
        model_admin,
        request,
        f"Versions of {agent}",
        agent=agent,
        versions=[rows[number] for number in reversed(numbers)],
        old=old,
        new=new,
        parts=[] if old is None or new is None else list(_parts(old, new)),
        may_change=request.user.has_perm("cohorts.change_agent"),
    )
    return TemplateResponse(request, "admin/engine/differences.html", context)


def _restored(request: HttpRequest, agent: Agent) -> HttpResponse:
    """Make the texts and limits of an older version the newest one again."""
    if not request.user.has_perm("cohorts.change_agent"):
        raise PermissionDenied
    number = number_of(request.POST.get("version")) or 0
    version = get_object_or_404(AgentVersion, agent=agent, number=number)
    for name in VERSIONED_FIELDS:
        setattr(agent, name, getattr(version, name))
    try:
        saved = operations.save_agent(agent, who=person_of(request))
    except ValidationError as refusal:
        messages.error(request, f"Nothing was changed: {' '.join(refusal.messages)}")
    else:
        same = saved is operations.Saved.SAME
        told = "It is so already." if same else f"Version {number} is the newest again."
        messages.success(request, told)
    return HttpResponseRedirect(request.path)


def _parts(old: AgentVersion, new: AgentVersion) -> Iterator[dict[str, object]]:
    """Yield each text or limit that differs, with its lines signed."""
    for name in VERSIONED_FIELDS:
        before, after = (_lines(getattr(row, name)) for row in (old, new))
        if before == after:
            continue
        compared = difflib.ndiff(before, after)
        lines = [(_SIGNS[line[:2]], line[2:]) for line in compared if line[:2] in _SIGNS]
        field = Agent._meta.get_field(name)
        yield {
            "name": str(getattr(field, "verbose_name", name)),
            "lines": lines[:LINES_AT_MOST],
            "is_cut": len(lines) > LINES_AT_MOST,
        }


def _lines(value: object) -> list[str]:
    return [] if value in (None, "") else str(value).splitlines()


class CopyForm(forms.Form):
    """The names of an agent that is made like another."""

    slug = forms.SlugField(
        label="Id", max_length=48, help_text="Lower-case letters, digits, hyphens."
    )
    bot_name = forms.CharField(label="Bot name", max_length=48, help_text="How posts mention it.")
    with_cohorts = forms.BooleanField(label="In the same cohorts", required=False, initial=True)


def copy_view(model_admin: ModelAdmin[Any], request: HttpRequest, agent_id: int) -> HttpResponse:
    """Make an agent like another: its texts, limits and models; no history, and no token."""
    if not request.user.has_perm("cohorts.add_agent"):
        raise PermissionDenied
    agent = get_object_or_404(Agent, pk=agent_id)
    form = CopyForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        made = _copied(request, agent, form)
        if made is not None:
            model_admin.log_addition(request, made, f"Made like {agent}.")
            address = reverse("admin:cohorts_agent_change", args=[made.pk])
            return HttpResponseRedirect(address)
    context = frame(model_admin, request, f"Make an agent like {agent}", agent=agent, form=form)
    return TemplateResponse(request, "admin/engine/copy_agent.html", context)


def _copied(request: HttpRequest, agent: Agent, form: CopyForm) -> Agent | None:
    """Return the new agent; None if its names cannot be taken, which the form then says."""
    given = form.cleaned_data
    made = Agent(slug=given["slug"], status=agent.status)
    for name in VERSIONED_FIELDS:
        setattr(made, name, getattr(agent, name))
    made.bot_name = given["bot_name"]
    try:
        operations.save_agent(made, who=person_of(request))
    except ValidationError as refusal:
        for name, errors in refusal.message_dict.items():
            form.add_error(name if name in form.fields else None, errors)
        return None
    if given["with_cohorts"] and request.user.has_perm("cohorts.change_cohort"):
        pairs = [(cohort, made) for cohort in agent.cohorts.all()]
        operations.change_memberships(add=pairs, who=person_of(request))
    messages.success(request, f"{made} is made like {agent}.")
    return made
