"""Cohorts, their members, and the record of their changes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import Count
from django.shortcuts import get_object_or_404
from django.template.defaultfilters import truncatechars
from django.urls import path, reverse
from django.utils.html import format_html

from cohorts import operations
from cohorts.audit import record_outside_changes
from cohorts.models import Agent, Cohort, TopologyChange
from engine.admin.pages import OneByOne, ReadOnly, frame
from engine.admin.setup.picking import Group, change_group, show_group
from engine.admin.topology.asking import membership_edit

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.db.models import QuerySet
    from django.forms import ModelForm
    from django.http import HttpRequest, HttpResponse
    from django.urls import URLPattern

    from engine.admin.pages import DeletedObjects

_NOTES = (
    "A new membership works forward only: it does not bring back posts that an agent has passed.",
    (
        "Private channels come before cohorts: their members deal with each other whatever is set "
        "here."
    ),
    "A change is obeyed within a second, also by a run that is going on.",
)


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
        group = Group(
            name=str(cohort),
            agents=Agent.objects.filter(memberships__cohort=cohort),
            edit=partial(membership_edit, cohort),
            notes=_NOTES,
            empty_hint="This cohort has no members yet. Search for agents above and add them.",
        )
        if request.method == "POST":
            return change_group(self, request, group)
        context = frame(self, request, f"Members of {cohort}", may_change=may_change)
        return show_group(request, group, context)


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
