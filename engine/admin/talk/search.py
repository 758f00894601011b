"""Finding what was said: by words, author, channel and run, among the newest messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.core.exceptions import PermissionDenied
from django.db.models import Q
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse

from engine.admin.pages import frame, number_of
from engine.admin.talk.writing import may_read
from engine.admin.text import show_unseen
from engine.models import Message, Simulation

if TYPE_CHECKING:
    from django.contrib.admin import ModelAdmin
    from django.http import HttpRequest, HttpResponse

#: A search looks through so many of the newest messages, however many there are.
LOOKED_THROUGH: Final = 20_000
FOUND_IN_A_PAGE: Final = 50
_AROUND: Final = 120


def search_view(
    model_admin: ModelAdmin[Any], request: HttpRequest, simulation_id: int
) -> HttpResponse:
    """Show the messages that have the words, newest first, each with the way to its thread."""
    if not may_read(request):
        raise PermissionDenied
    simulation = get_object_or_404(Simulation, pk=simulation_id)
    asked = {name: _asked(request, name) for name in ("q", "author", "channel", "run")}
    found: list[Message] = []
    if any(asked.values()):
        found = _found(simulation, asked, before=number_of(request.GET.get("before")))
    more = found[FOUND_IN_A_PAGE - 1].seq if len(found) > FOUND_IN_A_PAGE else None
    query = request.GET.copy()
    query.pop("before", None)
    context = frame(
        model_admin,
        request,
        f"Search in {simulation}",
        simulation=simulation,
        channels=simulation.channels.order_by("name"),
        asked=asked,
        is_asked=any(asked.values()),
        found=[_shown(row, asked["q"]) for row in found[:FOUND_IN_A_PAGE]],
        older_than=more,
        query=query.urlencode(),
        looked_through=LOOKED_THROUGH,
    )
    return TemplateResponse(request, "admin/engine/search.html", context)


def _asked(request: HttpRequest, name: str) -> str:
    return request.GET.get(name, "").replace("\0", "").strip()[:200]


def _found(simulation: Simulation, asked: dict[str, str], *, before: int | None) -> list[Message]:
    newest = Message.objects.filter(simulation=simulation, seq__isnull=False).order_by("-seq")
    looked = newest.values("pk")[:LOOKED_THROUGH]
    rows = Message.objects.filter(pk__in=looked).select_related("author", "channel")
    if asked["q"]:
        rows = rows.filter(text__icontains=asked["q"])
    if asked["author"]:
        rows = rows.filter(Q(author__slug=asked["author"]) | Q(person=asked["author"]))
    if asked["channel"]:
        rows = rows.filter(channel=number_of(asked["channel"]) or 0)
    if asked["run"]:
        rows = rows.filter(run=number_of(asked["run"]) or 0)
    if before is not None:
        rows = rows.filter(seq__lt=before)
    return list(rows.order_by("-seq")[: FOUND_IN_A_PAGE + 1])


def _shown(row: Message, words: str) -> dict[str, object]:
    """Return a message with the part of its text around the words."""
    at = max(row.text.casefold().find(words.casefold()), 0)
    begin = max(at - _AROUND, 0)
    part = row.text[begin : at + len(words) + _AROUND]
    dots = ("…" if begin else "", "…" if begin + len(part) < len(row.text) else "")
    return {
        "message": row,
        "text": f"{dots[0]}{show_unseen(part)}{dots[1]}",
        "root": row.root_id or row.pk,
        "after": max((row.ordinal or 1) - 1, 0),
    }
