"""What agents remember: the newest version of each memory, to read, edit or clear."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Exists, OuterRef, Q
from django.http import HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import reverse

from engine.admin.pages import HistoryAdmin, frame, number_of, person_of, text_of
from engine.admin.text import render_text, show_unseen
from engine.inbox import RefusedChangeError, edit_memory
from engine.models import Memory

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import HttpRequest, HttpResponse

VERSIONS_SHOWN = 20
MEMORY_CHARACTERS = 100_000


@admin.register(Memory)
class MemoryAdmin(HistoryAdmin):
    list_display = ("agent", "simulation", "segment", "beginning", "version", "written_at")
    list_filter = ("simulation",)
    list_select_related = ("agent", "simulation", "channel")
    search_fields = ("=agent__slug",)
    search_help_text = "The id of an agent."
    empty_hint = "No agent remembers anything yet: memories are written after a thread has ended."

    def get_queryset(self, request: HttpRequest) -> QuerySet[Memory]:
        """Return the newest version of each memory; older ones stand on its page."""
        rows: QuerySet[Memory] = super().get_queryset(request)
        newer = Memory.objects.filter(
            simulation=OuterRef("simulation"),
            agent=OuterRef("agent"),
            version__gt=OuterRef("version"),
        )
        public = Q(channel__isnull=True) & ~Exists(newer.filter(channel__isnull=True))
        private = Q(channel__isnull=False) & ~Exists(newer.filter(channel=OuterRef("channel")))
        return rows.filter(public | private)

    @admin.display(description="of")
    def segment(self, memory: Memory) -> str:
        return f"private talks in {memory.channel}" if memory.channel else "public talks"

    @admin.display(description="text")
    def beginning(self, memory: Memory) -> str:
        return show_unseen(memory.text[:80]) or "(empty)"

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, object] | None = None,
    ) -> HttpResponse:
        """Show a memory and its older versions; a POST stores a new version."""
        may_change = request.user.has_perm("engine.change_memory")
        if not (may_change if request.method == "POST" else self.has_view_permission(request)):
            raise PermissionDenied
        # Any version leads to its memory: a page opened before an edit is still told of it.
        rows = Memory.objects.select_related("agent", "simulation", "channel")
        memory = get_object_or_404(rows, pk=number_of(object_id) or 0)
        if request.method == "POST":
            return _edit(request, memory)
        versions = list(_segment(memory).order_by("-version")[:VERSIONS_SHOWN])
        context = frame(
            self,
            request,
            f"What {memory.agent} remembers of {self.segment(memory)}",
            memory=versions[0],
            agent=memory.agent,
            simulation=memory.simulation,
            versions=[(row, render_text(row.text)) for row in versions],
            may_change=may_change,
        )
        return TemplateResponse(request, "admin/engine/memory.html", context)


def _edit(request: HttpRequest, memory: Memory) -> HttpResponse:
    try:
        text = ""
        if "clear" not in request.POST:
            text = text_of(request, "text", at_most=MEMORY_CHARACTERS).strip()
        newest = edit_memory(
            simulation=memory.simulation,
            agent=memory.agent,
            channel=memory.channel,
            version=number_of(request.POST.get("version")) or 0,
            text=text,
            person=person_of(request),
        )
    except RefusedChangeError as refusal:
        messages.error(request, str(refusal))
        return HttpResponseRedirect(request.path)
    word = "stored" if text else "cleared"
    messages.success(request, f"The memory is {word}; the agent uses it from its next turn on.")
    return HttpResponseRedirect(reverse("admin:engine_memory_change", args=[newest.pk]))


def _segment(memory: Memory) -> QuerySet[Memory]:
    rows = Memory.objects.filter(simulation=memory.simulation_id, agent=memory.agent_id)
    return rows.filter(channel=memory.channel_id)
