"""Agents and their versions; every write is one of `cohorts.operations`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ActionForm
from django.core.exceptions import PermissionDenied
from django.db.models import Count
from django.urls import path, reverse
from django.utils.html import format_html_join

from cohorts import operations
from cohorts.models import Agent, AgentVersion, Cohort
from engine.admin.agent.forms import AgentForm
from engine.admin.agent.hints import hints_of
from engine.admin.agent.loading import export_view, load_view
from engine.admin.agent.quiet import quiet_view
from engine.admin.agent.versions import copy_view, differences_view
from engine.admin.pages import OneByOne, ReadOnly, number_of
from engine.admin.topology.asking import ask, membership_edit
from engine.foresee import Edit

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.db.models import QuerySet
    from django.forms import ModelForm
    from django.http import HttpRequest, HttpResponse
    from django.urls import URLPattern

    from engine.admin.pages import DeletedObjects


class CohortChoice(ActionForm):
    """The cohort that the ticked agents come into, or leave."""

    cohort = forms.ModelChoiceField(
        Cohort.objects.order_by("name"), required=False, empty_label="a cohort, if it is about one"
    )


class AgentVersionInline(ReadOnly, admin.TabularInline):  # type: ignore[type-arg]
    model = AgentVersion
    fields = readonly_fields = ("number", "saved_at", "saved_by")
    show_change_link = True
    ordering = ("-number",)


@admin.register(AgentVersion)
class AgentVersionAdmin(ReadOnly, admin.ModelAdmin):  # type: ignore[type-arg]
    list_display = ("agent", "number", "saved_at", "saved_by")
    list_select_related = ("agent",)
    search_fields = ("agent__slug",)


@admin.register(Agent)
class AgentAdmin(OneByOne):
    form = AgentForm
    list_display = ("slug", "bot_name", "represents", "status", "n_cohorts")
    list_filter = ("status",)
    search_fields = ("slug", "bot_name", "represents")
    inlines = (AgentVersionInline,)
    actions = ("activate", "pause", "retire", "add_to_cohort", "take_out_of_cohort")
    action_form = CohortChoice
    change_form_template = "admin/engine/agent_form.html"
    change_list_template = "admin/engine/agent_list.html"
    fieldsets = (
        (None, {"fields": ("slug", "bot_name", "represents", "status", "in_cohorts")}),
        ("Texts", {"fields": ("public_profile", "private_instructions", "interests")}),
        ("Own limits", {"fields": ("max_calls", "max_usd", "daily_posts", "calls_per_window")}),
        ("Own models", {"fields": ("small_model", "large_model")}),
        (
            "Slack",
            {
                "fields": (
                    "bot_user_id",
                    "token_state",
                    "new_slack_token",
                    "remove_slack_token",
                    "slack_token_env",
                )
            },
        ),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Agent]:
        rows: QuerySet[Agent] = super().get_queryset(request)
        return rows.annotate(n_memberships=Count("memberships"))

    @admin.display(description="cohorts", ordering="n_memberships")
    def n_cohorts(self, agent: Agent) -> str:
        return str(agent.n_memberships)  # type: ignore[attr-defined]

    @admin.display(description="cohorts")
    def in_cohorts(self, agent: Agent) -> str:
        links = [
            (reverse("admin:cohorts_cohort_members", args=[pk]), name)
            for pk, name in agent.cohorts.values_list("pk", "name")
        ]
        none = "none: under the policy open it deals with everyone, under isolated with nobody"
        return format_html_join(", ", '<a href="{}">{}</a>', links) or none

    @admin.display(description="stored token")
    def token_state(self, agent: Agent) -> str:
        return str(agent.slack_token) or "none"

    def get_urls(self) -> list[URLPattern]:
        wrap = self.admin_site.admin_view
        own = [
            path(f"<int:agent_id>/{name}/", wrap(partial(view, self)), name=f"cohorts_agent_{name}")
            for name, view in (
                ("quiet", quiet_view),
                ("differences", differences_view),
                ("copy", copy_view),
            )
        ]
        own += [
            path("load/", wrap(partial(load_view, self)), name="cohorts_agent_load"),
            path(
                "export.<str:kind>", wrap(partial(export_view, self)), name="cohorts_agent_export"
            ),
        ]
        return [*own, *super().get_urls()]

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Show the form with hints about what is stored."""
        agent = context.get("original")
        context["hints"] = hints_of(agent) if isinstance(agent, Agent) else []
        page: HttpResponse = super().render_change_form(request, context, *args, **kwargs)
        return page

    def get_readonly_fields(
        self, request: HttpRequest, obj: Agent | None = None
    ) -> tuple[str, ...]:
        return ("in_cohorts", "token_state", *(("slug",) if obj else ()))

    def save_model(
        self,
        request: HttpRequest,
        obj: Agent,
        form: ModelForm[Agent],
        change: bool,  # noqa: FBT001 (called by Django)
    ) -> None:
        """Save all but another status, which waits for a yes to what it would do."""
        if change:
            stored = Agent.objects.values_list("status", flat=True).get(pk=obj.pk)
            asked, obj.status = obj.status, stored
            if asked != stored:
                request.topology_edit = Edit(statuses=((obj.pk, asked),))  # type: ignore[attr-defined]
        operations.save_agent(obj, who=request.user.get_username())
        if obj.status == Agent.Status.ACTIVE and not obj.memberships.exists():
            text = f"{obj} is in no cohort: under the policy isolated it deals with nobody."
            messages.warning(request, text)

    def response_change(self, request: HttpRequest, obj: Agent) -> HttpResponse:
        """Ask about another status, with the rest saved."""
        edit: Edit | None = getattr(request, "topology_edit", None)
        if edit is None:
            page: HttpResponse = super().response_change(request, obj)
            return page
        messages.info(request, f"The rest of {obj} is saved; its status waits for your yes.")
        return ask(self, request, edit, back=request.path)

    def delete_model(self, request: HttpRequest, obj: Agent) -> None:
        operations.delete_agent(obj, who=request.user.get_username())

    def get_deleted_objects(self, objs: Iterable[Agent], request: HttpRequest) -> DeletedObjects:
        """Refuse in a sentence; the versions go with an agent that nothing else refers to."""
        for agent in objs:
            operations.refuse_agent_with_history(agent)
        return [str(agent) for agent in objs], {}, set(), []

    @admin.action(description="Activate selected agents", permissions=["change"])
    def activate(self, request: HttpRequest, agents: QuerySet[Agent]) -> HttpResponse | None:
        return self._ask_about(request, agents, Agent.Status.ACTIVE)

    @admin.action(description="Pause selected agents", permissions=["change"])
    def pause(self, request: HttpRequest, agents: QuerySet[Agent]) -> HttpResponse | None:
        return self._ask_about(request, agents, Agent.Status.PAUSED)

    @admin.action(description="Retire selected agents", permissions=["change"])
    def retire(self, request: HttpRequest, agents: QuerySet[Agent]) -> HttpResponse | None:
        return self._ask_about(request, agents, Agent.Status.RETIRED)

    @admin.action(description="Add selected agents to the cohort", permissions=["change"])
    def add_to_cohort(self, request: HttpRequest, agents: QuerySet[Agent]) -> HttpResponse | None:
        return self._ask_to_move(request, agents, adds=True)

    @admin.action(description="Take selected agents out of the cohort", permissions=["change"])
    def take_out_of_cohort(
        self, request: HttpRequest, agents: QuerySet[Agent]
    ) -> HttpResponse | None:
        return self._ask_to_move(request, agents, adds=False)

    def _ask_to_move(
        self, request: HttpRequest, agents: QuerySet[Agent], *, adds: bool
    ) -> HttpResponse | None:
        cohort = Cohort.objects.filter(pk=number_of(request.POST.get("cohort")) or 0).first()
        if cohort is None:
            messages.error(request, "Nothing is changed: choose a cohort beside the action.")
            return None
        if not request.user.has_perm("cohorts.change_cohort"):
            raise PermissionDenied
        edit = membership_edit(cohort, list(agents.order_by("pk")), adds=adds)
        if not edit:
            messages.info(request, "Nothing is left to change: it is so already.")
            return None
        return ask(self, request, edit, back=request.get_full_path())

    def _ask_about(
        self, request: HttpRequest, chosen: QuerySet[Agent], status: Agent.Status
    ) -> HttpResponse | None:
        """Ask before the chosen agents get another status; back to the list if all have it."""
        others = chosen.exclude(status=status).order_by("pk").values_list("pk", flat=True)
        edit = Edit(statuses=tuple((pk, status.value) for pk in others))
        if not edit:
            messages.info(request, f"Nothing is left to change: they are {status.label} already.")
            return None
        return ask(self, request, edit, back=request.get_full_path())
