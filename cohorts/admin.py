"""Agents, cohorts and their audit in the admin; every write is one of `cohorts.operations`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Count
from django.http import HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.template.defaultfilters import truncatechars
from django.urls import path, reverse
from django.utils.html import format_html, format_html_join

from cohorts import operations
from cohorts.audit import record_outside_changes
from cohorts.forms import AgentForm
from cohorts.members import change_members, show_members
from cohorts.models import Agent, AgentVersion, Cohort, TopologyChange
from cohorts.operations import RefusedChangeError, Saved

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.db import models
    from django.db.models import QuerySet
    from django.forms import ModelForm
    from django.http import HttpRequest, HttpResponse
    from django.urls import URLPattern

    DeletedObjects = tuple[list[str], dict[str, int], set[str], list[str]]


class ReadOnly:
    """What is history can be looked at, and neither made, changed nor deleted."""

    def has_add_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        return False


class OneByOne(admin.ModelAdmin):  # type: ignore[type-arg]
    """Deletes one row at a time, on its own page, where a refusal is told in a sentence."""

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        actions = super().get_actions(request)
        actions.pop("delete_selected", None)
        return actions

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, object] | None = None
    ) -> HttpResponse:
        try:
            page: HttpResponse = super().delete_view(request, object_id, extra_context)
        except RefusedChangeError as refusal:
            messages.error(request, str(refusal))
            name = f"admin:cohorts_{self.opts.model_name}_change"
            return HttpResponseRedirect(reverse(name, args=[object_id]))
        return page


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
    actions = ("activate", "pause", "retire")
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
        operations.save_agent(obj, who=request.user.get_username())
        if obj.status == Agent.Status.ACTIVE and not obj.memberships.exists():
            text = f"{obj} is in no cohort: under the policy isolated it deals with nobody."
            messages.warning(request, text)

    def delete_model(self, request: HttpRequest, obj: Agent) -> None:
        operations.delete_agent(obj, who=request.user.get_username())

    def get_deleted_objects(self, objs: Iterable[Agent], request: HttpRequest) -> DeletedObjects:
        """Refuse in a sentence; the versions go with an agent that nothing else refers to."""
        for agent in objs:
            operations.refuse_agent_with_history(agent)
        return [str(agent) for agent in objs], {}, set(), []

    @admin.action(description="Activate selected agents", permissions=["change"])
    def activate(self, request: HttpRequest, agents: QuerySet[Agent]) -> None:
        self._set_status(request, agents, Agent.Status.ACTIVE)

    @admin.action(description="Pause selected agents", permissions=["change"])
    def pause(self, request: HttpRequest, agents: QuerySet[Agent]) -> None:
        self._set_status(request, agents, Agent.Status.PAUSED)

    @admin.action(description="Retire selected agents", permissions=["change"])
    def retire(self, request: HttpRequest, agents: QuerySet[Agent]) -> None:
        self._set_status(request, agents, Agent.Status.RETIRED)

    def _set_status(
        self, request: HttpRequest, chosen: QuerySet[Agent], status: Agent.Status
    ) -> None:
        agents = list(chosen)
        for agent in agents:
            agent.status = status
        saved = operations.save_agents(agents, who=request.user.get_username())
        n_changed = list(saved.values()).count(Saved.CHANGED)
        messages.success(request, f"{n_changed} of {len(agents)} agents are now {status.label}.")


@admin.register(Cohort)
class CohortAdmin(OneByOne):
    list_display = ("name", "short_description", "members_link", "created_by", "created_at")
    search_fields = ("name", "description")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Cohort]:
        rows: QuerySet[Cohort] = super().get_queryset(request)
        return rows.annotate(n_memberships=Count("memberships"))

    @admin.display(description="description")
    def short_description(self, cohort: Cohort) -> str:
        return truncatechars(cohort.description, 80)

    @admin.display(description="members", ordering="n_memberships")
    def members_link(self, cohort: Cohort) -> str:
        url = reverse("admin:cohorts_cohort_members", args=[cohort.pk])
        n_members = cohort.n_memberships  # type: ignore[attr-defined]
        return format_html('<a href="{}">{} (add, remove)</a>', url, n_members)

    def get_readonly_fields(
        self, request: HttpRequest, obj: Cohort | None = None
    ) -> tuple[str, ...]:
        return ("name", "members_link", "created_by", "created_at") if obj else ()

    def get_fields(self, request: HttpRequest, obj: Cohort | None = None) -> tuple[str, ...]:
        facts = ("members_link", "created_by", "created_at") if obj else ()
        return ("name", "description", *facts)

    def save_model(
        self,
        request: HttpRequest,
        obj: Cohort,
        form: ModelForm[Cohort],
        change: bool,  # noqa: FBT001 (called by Django)
    ) -> None:
        if change:
            operations.describe_cohort(obj, form.cleaned_data["description"])
            return
        who = request.user.get_username()
        obj.pk = operations.create_cohort(obj.name, description=obj.description, who=who).pk

    def delete_model(self, request: HttpRequest, obj: Cohort) -> None:
        operations.delete_cohort(obj, who=request.user.get_username())

    def get_deleted_objects(self, objs: Iterable[Cohort], request: HttpRequest) -> DeletedObjects:
        """Refuse in a sentence, with the number of members and not a list of thousands."""
        for cohort in objs:
            operations.refuse_cohort_with_members(cohort)
        return [str(cohort) for cohort in objs], {}, set(), []

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.members_view)
        own = path("<int:cohort_id>/members/", view, name="cohorts_cohort_members")
        return [own, *super().get_urls()]

    def members_view(self, request: HttpRequest, cohort_id: int) -> HttpResponse:
        """Show the members to who may view cohorts, change them for who may change those."""
        cohort = get_object_or_404(Cohort, pk=cohort_id)
        may_change = self.has_change_permission(request, cohort)
        if not (may_change if request.method == "POST" else self.has_view_permission(request)):
            raise PermissionDenied
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "cohort": cohort,
            "may_change": may_change,
        }
        act = change_members if request.method == "POST" else show_members
        return act(request, cohort, context)


@admin.register(TopologyChange)
class TopologyChangeAdmin(ReadOnly, admin.ModelAdmin):  # type: ignore[type-arg]
    list_display = ("at", "version", "who", "action", "cohort", "agent", "detail")
    list_filter = ("action",)
    search_fields = ("who", "cohort", "agent", "detail")

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, object] | None = None
    ) -> HttpResponse:
        """Record first what came from outside, so that who looks sees it."""
        record_outside_changes()
        page: HttpResponse = super().changelist_view(request, extra_context)
        return page
