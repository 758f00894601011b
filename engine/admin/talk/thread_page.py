"""The transcript of a thread: everything said in order, how it ended, and what came of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.core.exceptions import PermissionDenied
from django.http import HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse

from engine.admin.pages import frame, number_of
from engine.admin.talk.reading import Entry, Talk, read_talk
from engine.admin.talk.writing import (
    forget,
    may_forget,
    may_read,
    may_review,
    may_write,
    send_message,
)
from engine.admin.text import render_text
from engine.models import Message

if TYPE_CHECKING:
    from typing import Any

    from django.contrib.admin import ModelAdmin
    from django.http import HttpRequest, HttpResponse


def thread_view(
    model_admin: ModelAdmin[Any], request: HttpRequest, simulation_id: int, root_id: int
) -> HttpResponse:
    """Show a page of a thread; a POST is an answer by the person."""
    root = get_object_or_404(
        Message.objects.select_related("author", "addressed", "channel", "simulation"),
        pk=root_id,
        simulation=simulation_id,
        root__isnull=True,
    )
    if request.method == "POST" and "forget" in request.POST:
        told = forget(request, root)
        if told:
            model_admin.log_change(request, root.simulation, told)
        return HttpResponseRedirect(request.path)
    if request.method == "POST":
        send_message(request, root.channel, root)
        return HttpResponseRedirect(request.path)
    if not may_read(request):
        raise PermissionDenied
    talk = read_talk(root, after=number_of(request.GET.get("after")))
    context = frame(
        model_admin,
        request,
        f"Thread {root.seq}" if root.seq else "A message that waits",
        simulation=root.simulation,
        channel=root.channel,
        root=root,
        thread=talk.thread,
        entries=_entries(talk),
        waiting=[{"message": row, "html": render_text(row.text)} for row in talk.waiting],
        proposals=talk.proposals,
        after=talk.after,
        may_write=may_write(request),
        may_review=may_review(request),
        may_forget=may_forget(request),
    )
    return TemplateResponse(request, "admin/engine/thread.html", context)


def _entries(talk: Talk) -> list[Entry]:
    """Return what was said with the ends of the cycles between, in the order of the log."""
    said = [
        Entry(
            seq=message.seq or 0,
            message=message,
            html=render_text(message.text),
            mark=_mark(talk, message),
        )
        for message in talk.messages
    ]
    first = said[0].seq if said else 0
    ended = [
        Entry(seq=decision.seq, decision=decision)
        for decision in talk.decisions
        if first <= decision.seq and (talk.until is None or decision.seq < talk.until)
    ]
    return sorted([*said, *ended], key=lambda entry: (entry.seq, entry.decision is not None))


def _mark(talk: Talk, message: Message) -> str:
    if any(proposal.summary_id == message.pk for proposal in talk.proposals):
        return "summary, became a proposal"
    if talk.thread is not None and talk.thread.summary_seq == message.seq is not None:
        return "summary, waits for the other side"
    return ""
