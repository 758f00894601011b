"""The page that finds agents and adds them to, or removes them from, a roster or a channel.

It holds for ten thousand agents: a search shows the first few, the list comes in pages.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import Q
from django.http import HttpResponseRedirect
from django.template.response import TemplateResponse

from cohorts.models import Agent
from engine.admin.pages import number_of
from engine.admin.topology.asking import ask

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from django.contrib.admin import ModelAdmin
    from django.db.models import QuerySet
    from django.http import HttpRequest, HttpResponse

    from engine.foresee import Edit

IN_A_PAGE: Final = 50
FOUND_AT_MOST: Final = 20
_PAGE: Final = "admin/engine/picking.html"


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A changeable set of agents: who is in it, and what adds and removes.

    Where who is in it decides who deals with whom, `edit` returns the change, which is asked
    about first; elsewhere `add` and `remove` make it, and return the ids of those concerned.
    """

    name: str
    agents: QuerySet[Agent]
    notes: tuple[str, ...]
    empty_hint: str
    add: Callable[[Sequence[Agent]], list[str]] | None = None
    remove: Callable[[Sequence[Agent]], list[str]] | None = None
    edit: Callable[..., Edit] | None = None


def show_group(request: HttpRequest, group: Group, context: dict[str, object]) -> HttpResponse:
    """Show who is in the group, a page of them, and the agents that the search finds."""
    sought = request.GET.get("q", "").replace("\0", "").strip()
    own = {
        "group": group,
        "members": Paginator(group.agents, IN_A_PAGE).get_page(request.GET.get("p")),
        "sought": sought,
        "found": _found(group, sought) if sought else [],
        "found_at_most": FOUND_AT_MOST,
    }
    return TemplateResponse(request, _PAGE, {**context, **own})


def change_group(model_admin: ModelAdmin[Any], request: HttpRequest, group: Group) -> HttpResponse:
    """Add or remove the ticked agents and say which, or ask before."""
    agents, adds = _ticked(request), "add" in request.POST
    verb = "Added to" if adds else "Removed from"
    if not agents:
        messages.error(request, "No agent was ticked, or it is not there any more.")
    elif group.edit is not None:
        edit = group.edit(agents, adds=adds)
        if edit:
            return ask(model_admin, request, edit, back=request.path)
        _tell(request, verb, group, [])
    else:
        act = group.add if adds else group.remove
        assert act is not None
        _tell(request, verb, group, act(agents))
    return HttpResponseRedirect(request.path)


def _tell(request: HttpRequest, verb: str, group: Group, slugs: list[str]) -> None:
    names = ", ".join(slugs) or "nobody, it was so already"
    messages.success(request, f"{verb} {group.name}: {names}.")


def _ticked(request: HttpRequest) -> list[Agent]:
    keys = [number_of(text) for text in request.POST.getlist("agent")]
    return list(Agent.objects.filter(pk__in=[key for key in keys if key is not None]))


def _found(group: Group, sought: str) -> list[Agent]:
    """Return the first agents outside the group whose id, bot name or owner holds the text."""
    matching = (
        Q(slug__icontains=sought) | Q(bot_name__icontains=sought) | Q(represents__icontains=sought)
    )
    outside = Agent.objects.filter(matching).exclude(pk__in=group.agents.order_by().values("pk"))
    return list(outside[:FOUND_AT_MOST])
