"""What a person says and decides from the pages; the engine's inbox carries it out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models.functions import Lower

from cohorts.models import Agent
from engine.admin.pages import number_of, person_of, text_of
from engine.core.mentions import find_mentions
from engine.inbox import (
    MESSAGE_CHARACTERS,
    NOTE_CHARACTERS,
    RefusedChangeError,
    forget_statement,
    review_proposal,
    write_message,
)
from engine.models import Thread

if TYPE_CHECKING:
    from django.http import HttpRequest

    from engine.models import Channel, Message, Proposal


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


def review(request: HttpRequest, proposal: Proposal) -> bool:
    """Decide about a proposal as the person has seen it, say what stands, and tell if it was done."""
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
        return False
    messages.success(request, f"The proposal is {reviewed.get_state_display().lower()}.")
    return True


def may_forget(request: HttpRequest) -> bool:
    """Tell whether somebody may change what agents remember."""
    return request.user.has_perm("engine.change_memory")


def forget(request: HttpRequest, root: Message) -> str:
    """Let both sides of a thread forget a statement; return what was done, "" for nothing."""
    if not may_forget(request):
        raise PermissionDenied
    thread = Thread.objects.filter(root=root).first()
    sides = [] if thread is None else [thread.low, thread.high, thread.opener_id]
    agents = list(Agent.objects.filter(pk__in={side for side in sides if side}).order_by("slug"))
    try:
        changed = forget_statement(
            simulation=root.simulation,
            agents=agents,
            channel=root.channel,
            text=text_of(request, "forget", at_most=NOTE_CHARACTERS),
            person=person_of(request),
        )
    except RefusedChangeError as refusal:
        messages.error(request, str(refusal))
        return ""
    if not changed:
        messages.info(request, "Neither side remembers these words: nothing was changed.")
        return ""
    names = " and ".join(agent.slug for agent in changed)
    messages.success(request, f"Forgotten by {names}; older versions of the memory keep the trace.")
    return f"A statement of thread {root.seq} was taken out of the memory of {names}."


def _whom_it_calls(text: str) -> str:
    if "@" not in text:
        return "It names no agent: whoever reads the channel may answer."
    handles = dict(Agent.objects.values_list(Lower("bot_name"), "pk"))
    called = find_mentions(text, handles)
    if not called:
        return "No agent has the name that it mentions with an @: check the bot name."
    names = Agent.objects.in_bulk(called)
    return f"It calls {', '.join(f'@{names[pk].bot_name}' for pk in called)}."
