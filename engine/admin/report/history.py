"""Turns, LLM calls and messages: what happened, to look at and never to change."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import admin
from django.urls import reverse
from django.utils.html import format_html

from engine.admin.pages import HistoryAdmin, badge, seconds_in_words
from engine.admin.text import render_text, show_unseen
from engine.core.effects import TurnOutcome
from engine.core.prices import in_usd
from engine.models import LlmCall, Message, Turn
from engine.ports.llm import LlmPhase

if TYPE_CHECKING:
    from enum import StrEnum

    from django.db.models import QuerySet
    from django.http import HttpRequest
    from django.utils.safestring import SafeString

_START_A_RUN = "Start a run: manage.py runsim --simulation NAME."


class WordFilter(admin.SimpleListFilter):
    """Filters by words known beforehand: to ask the table for them would read all of it."""

    words: ClassVar[type[StrEnum]]

    def lookups(
        self, request: HttpRequest, model_admin: admin.ModelAdmin[Any]
    ) -> list[tuple[str, str]]:
        return [(word, word) for word in self.words]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        word = self.value()
        return queryset.filter(**{str(self.parameter_name): word}) if word else queryset


class OutcomeFilter(WordFilter):
    title = parameter_name = "outcome"
    words = TurnOutcome


class PhaseFilter(WordFilter):
    title = parameter_name = "phase"
    words = LlmPhase


@admin.register(Turn)
class TurnAdmin(HistoryAdmin):
    list_display = (
        "number",
        "agent",
        "outcome_word",
        "selected_at",
        "waited",
        "llm_calls",
        "committed",
        "run",
    )
    list_filter = (OutcomeFilter,)
    list_select_related = ("agent", "run__simulation")
    search_fields = ("=agent__slug",)
    search_help_text = "The id of an agent."
    empty_hint = f"No turn yet. {_START_A_RUN}"

    @admin.display(description="outcome")
    def outcome_word(self, turn: Turn) -> SafeString:
        return badge(turn.outcome, turn.outcome)

    @admin.display(description="waited")
    def waited(self, turn: Turn) -> str:
        return seconds_in_words(turn.waited_seconds)


@admin.register(LlmCall)
class LlmCallAdmin(HistoryAdmin):
    list_display = (
        "started_at",
        "agent",
        "phase",
        "model",
        "input_tokens",
        "output_tokens",
        "cost",
        "latency",
        "finish_reason",
        "run",
    )
    list_filter = (PhaseFilter,)
    list_select_related = ("agent", "run__simulation")
    search_fields = ("=agent__slug",)
    search_help_text = "The id of an agent."
    empty_hint = f"No model was asked yet. {_START_A_RUN}"

    def get_fields(self, request: HttpRequest, obj: LlmCall | None = None) -> list[Any]:
        """Return the columns, and for whoever may read texts what was asked and answered."""
        fields = [*super().get_fields(request, obj)]
        may_read = request.user.has_perm("engine.view_calltext")
        return [*fields, "asked", "answered"] if may_read else fields

    @admin.display(description="asked, word for word")
    def asked(self, call: LlmCall) -> SafeString | str:
        text = getattr(call, "text", None)
        return _verbatim("\n".join(json.loads(text.asked)) if text else "")

    @admin.display(description="answered, as it came")
    def answered(self, call: LlmCall) -> SafeString | str:
        text = getattr(call, "text", None)
        return _verbatim(text.said if text else "")

    @admin.display(description="cost")
    def cost(self, call: LlmCall) -> str:
        return cost_in_words(call)

    @admin.display(description="took")
    def latency(self, call: LlmCall) -> str:
        return seconds_in_words(call.latency_seconds)


def _verbatim(text: str) -> SafeString | str:
    """Return a text that nothing is made of; it may be long, and is not kept for ever."""
    if not text:
        return "not kept"
    return format_html(
        '<pre class="sim-verbatim" dir="auto" tabindex="0">{}</pre>', show_unseen(text)
    )


def cost_in_words(call: LlmCall) -> str:
    """Return what a call cost, what is promised for one on its way, or that nobody knows."""
    if call.state == LlmCall.State.RESERVED:
        return f"at most {in_usd(call.reserved_nano_usd)}, on its way"
    return "unpriced" if call.cost_nano_usd is None else in_usd(call.cost_nano_usd)


@admin.register(Message)
class MessageAdmin(HistoryAdmin):
    list_display = ("place", "who", "channel", "beginning", "written_at", "thread_link")
    list_filter = ("visibility", "simulation")
    list_select_related = ("author", "channel", "simulation")
    search_fields = ("=author__slug", "=person")
    search_help_text = "The id of an agent, or the log-in name of a person."
    empty_hint = f"Nothing was said yet. {_START_A_RUN}"
    exclude = ("text",)
    readonly_fields = ("said",)

    @admin.display(description="number")
    def place(self, message: Message) -> str:
        return str(message.seq) if message.seq else "waits"

    @admin.display(description="who")
    def who(self, message: Message) -> str:
        return message.author.slug if message.author else f"{message.person} (person)"

    @admin.display(description="text")
    def beginning(self, message: Message) -> str:
        return show_unseen(message.text[:80])

    @admin.display(description="thread")
    def thread_link(self, message: Message) -> SafeString:
        keys = [message.simulation_id, message.root_id or message.pk]
        return format_html('<a href="{}">read</a>', reverse("admin:engine_thread", args=keys))

    @admin.display(description="text")
    def said(self, message: Message) -> SafeString:
        return render_text(message.text)
