"""The transcript of a channel: its roots, newest first, and the form to write into it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.core.exceptions import PermissionDenied
from django.http import HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import reverse

from engine.admin.pages import frame, number_of
from engine.admin.talk.reading import ROOT_CHARACTERS, read_roots
from engine.admin.talk.writing import may_read, may_write, send_message
from engine.admin.text import render_text
from engine.models import Channel, Simulation

if TYPE_CHECKING:
    from typing import Any

    from django.contrib.admin import ModelAdmin
    from django.http import HttpRequest, HttpResponse

    from engine.models import Message


def first_channel_view(
    model_admin: ModelAdmin[Any], request: HttpRequest, simulation_id: int
) -> HttpResponse:
    """Lead to the first channel of a simulation, or say that it has none."""
    if not may_read(request):
        raise PermissionDenied
    simulation = get_object_or_404(Simulation, pk=simulation_id)
    channel = simulation.channels.order_by("visibility", "name").last()
    if channel is not None:
        url = reverse("admin:engine_channel_talk", args=[simulation_id, channel.pk])
        return HttpResponseRedirect(url)
    context = frame(model_admin, request, f"Transcript of {simulation}", simulation=simulation)
    return TemplateResponse(request, "admin/engine/channel.html", context)


def channel_view(
    model_admin: ModelAdmin[Any], request: HttpRequest, simulation_id: int, channel_id: int
) -> HttpResponse:
    """Show a page of a channel's roots; a POST is a new root by the person."""
    channel = get_object_or_404(
        Channel.objects.select_related("simulation"), pk=channel_id, simulation=simulation_id
    )
    if request.method == "POST":
        send_message(request, channel)
        return HttpResponseRedirect(request.path)
    if not may_read(request):
        raise PermissionDenied
    before = number_of(request.GET.get("before"))
    page = read_roots(channel, before=before)
    context = frame(
        model_admin,
        request,
        f"#{channel.name}",
        simulation=channel.simulation,
        channel=channel,
        channels=channel.simulation.channels.order_by("name"),
        waiting=[_shown(root) for root in page.waiting],
        roots=[_shown(root) for root in page.roots],
        older_than=page.older_than,
        is_newest=before is None,
        may_write=may_write(request),
    )
    return TemplateResponse(request, "admin/engine/channel.html", context)


def _shown(root: Message) -> dict[str, object]:
    places = getattr(root, "n_places", None)
    return {
        "message": root,
        "html": render_text(root.text, at_most=ROOT_CHARACTERS),
        "thread": getattr(root, "thread", None),
        "n_answers": places - 1 if places else 0,
    }
