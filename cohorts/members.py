"""The page of a cohort's members: find agents and add them, tick members and remove them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import Q
from django.http import HttpResponseRedirect
from django.template.response import TemplateResponse

from cohorts.models import Agent, Membership
from cohorts.operations import add_members, freed_by, remove_members

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import HttpRequest, HttpResponse

    from cohorts.models import Cohort

MEMBERS_A_PAGE: Final = 100
FOUND_AT_MOST: Final = 20
KEY_DIGITS: Final = 18
PAGE: Final = "admin/cohorts/cohort/members.html"
QUESTION: Final = "admin/cohorts/cohort/confirm_removal.html"


def show_members(request: HttpRequest, cohort: Cohort, context: dict[str, object]) -> HttpResponse:
    """Show the members, a page of them, and the agents that the search finds."""
    # PostgreSQL refuses a NUL, also in a question.
    sought = request.GET.get("q", "").replace("\0", "").strip()
    rows = Membership.objects.filter(cohort=cohort).select_related("agent")
    members = Paginator(rows.order_by("agent__slug"), MEMBERS_A_PAGE)
    own = {
        "members": members.get_page(request.GET.get("p")),
        "sought": sought,
        "found": _found(cohort, sought) if sought else [],
        "found_at_most": FOUND_AT_MOST,
        "title": f"Members of {cohort}",
    }
    return TemplateResponse(request, PAGE, {**context, **own})


def change_members(
    request: HttpRequest, cohort: Cohort, context: dict[str, object]
) -> HttpResponse:
    """Add or remove the ticked agents; ask first where a removal frees one of all cohorts."""
    agents = _ticked(request)
    if not agents:
        messages.error(request, "No agent was ticked, or it is not there any more.")
    elif "add" in request.POST:
        _add(request, cohort, agents)
    else:
        freed = freed_by((cohort.pk, agent.pk) for agent in agents)
        if freed and "confirmed" not in request.POST:
            own = {"agents": agents, "freed": freed, "title": f"Remove from {cohort}?"}
            return TemplateResponse(request, QUESTION, {**context, **own})
        removed = remove_members(cohort, agents, who=request.user.get_username()).removed
        messages.success(request, f"Removed from {cohort}: {_listed(removed)}.")
    return HttpResponseRedirect(request.path)


def _add(request: HttpRequest, cohort: Cohort, agents: list[Agent]) -> None:
    added = add_members(cohort, agents, who=request.user.get_username()).added
    messages.success(request, f"Added to {cohort}: {_listed(added)}.")
    out = [agent.slug for agent in agents if agent.status != Agent.Status.ACTIVE]
    if out:
        messages.warning(request, f"Not active, and in no run: {', '.join(out)}.")


def _ticked(request: HttpRequest) -> list[Agent]:
    keys = [
        key for key in request.POST.getlist("agent") if key.isdecimal() and len(key) <= KEY_DIGITS
    ]
    return list(Agent.objects.filter(pk__in=keys))


def _found(cohort: Cohort, sought: str) -> QuerySet[Agent]:
    """Return the first agents outside the cohort whose id, bot name or owner holds the text."""
    matching = (
        Q(slug__icontains=sought) | Q(bot_name__icontains=sought) | Q(represents__icontains=sought)
    )
    return Agent.objects.filter(matching).exclude(memberships__cohort=cohort)[:FOUND_AT_MOST]


def _listed(pairs: tuple[tuple[str, str], ...]) -> str:
    return ", ".join(agent for _, agent in pairs) or "nobody, it was so already"
