"""Schedules in the admin: written, said back with their next times, and what came of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from django.conf import settings
from django.contrib import admin, messages
from django.contrib.admin.helpers import AdminErrorList, AdminForm
from django.contrib.admin.utils import unquote
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db.models import Exists, OuterRef, Subquery
from django.http import HttpResponseNotAllowed, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.urls import path, reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join

from engine.admin.pages import badge, person_of
from engine.admin.schedule.form import ScheduleForm
from engine.admin.schedule.money import month_forecast
from engine.admin.setup.settings import GROUPS
from engine.core.days import local_day
from engine.core.settings import RefusedSetting
from engine.core.timetable_texts import due_in_words
from engine.models import Occasion, Run, RunSchedule
from engine.models.runs import LIVE
from engine.runs.firing import fire_now
from engine.runs.refusals import RunRefused
from engine.runs.schedules import delete_schedule, next_due, save_schedule, told, told_times

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.models import QuerySet
    from django.forms import ModelForm
    from django.http import HttpRequest, HttpResponse
    from django.urls import URLPattern
    from django.utils.safestring import SafeString

#: So many of the last occasions are shown.
SHOWN: Final = 20
_WHEN: Final = (
    "kind",
    ("every_number", "every_unit"),
    "weekdays",
    "month_day",
    "times",
    "cron",
    "time_zone",
    ("first_date", "last_date"),
)
_RUN: Final = (
    "llm",
    ("small_model", "large_model"),
    "until_idle",
    ("max_minutes", "max_turns", "max_calls"),
    "policy",
)


@admin.register(RunSchedule)
class RunScheduleAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    form = ScheduleForm
    change_form_template = "admin/engine/schedule.html"
    actions = ("switch_on", "switch_off", "take_over")
    list_display = ("name", "simulation", "said", "next_time", "last_time", "state", "owned_by")
    list_select_related = ("simulation",)
    list_filter = ("enabled", "simulation")
    search_fields = ("name", "simulation__name", "owner")
    show_facets = admin.ShowFacets.NEVER
    empty_hint = "No schedule yet. Add one, and runs begin by the clock."
    fieldsets: ClassVar[Any] = (
        (None, {"fields": ("name", "simulation", "enabled", "owner")}),
        ("When", {"fields": _WHEN, "classes": ("sim-when",)}),
        ("If it cannot begin at its time", {"fields": ("missed", "overlap")}),
        ("What a run is asked for", {"fields": _RUN}),
        ("Money", {"fields": (("max_usd", "month_usd"),)}),
        *((title, {"fields": names, "classes": ("collapse",)}) for title, names in GROUPS),
    )
    _only_looked_at: ClassVar[Any] = (
        (None, {"fields": ("name", "simulation", "said", "next_times", "state", "owner")}),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[RunSchedule]:
        rows: QuerySet[RunSchedule] = super().get_queryset(request)
        newest = Occasion.objects.filter(schedule=OuterRef("pk")).order_by("-intended_at")[:1]
        return rows.annotate(
            last_outcome=Subquery(newest.values("outcome")),
            last_run=Subquery(newest.values("run")),
            owner_is_there=Exists(User.objects.filter(username=OuterRef("owner"), is_active=True)),
        )

    @admin.display(description="when")
    def said(self, schedule: RunSchedule) -> str:
        return _said(schedule)

    @admin.display(description="next time", ordering="next_at")
    def next_time(self, schedule: RunSchedule) -> str:
        due = None
        try:
            if schedule.enabled and schedule.next_at is not None:
                due = next_due(schedule, after=schedule.settled_until)
        except RefusedSetting:
            return "–"
        return "–" if due is None else due_in_words(due, schedule.time_zone)

    @admin.display(description="next times")
    def next_times(self, schedule: RunSchedule) -> SafeString:
        lines = ((line,) for line in _times_told(schedule))
        return format_html_join("", "<div>{}</div>", lines)

    @admin.display(description="last time")
    def last_time(self, schedule: RunSchedule) -> str | SafeString:
        run = schedule.last_run  # type: ignore[attr-defined]
        if run is not None:
            return format_html('<a href="{}">run {}</a>', _run_url(run), run)
        return schedule.last_outcome or "–"  # type: ignore[attr-defined]

    @admin.display(description="state", ordering="enabled")
    def state(self, schedule: RunSchedule) -> SafeString:
        if schedule.problem:
            return format_html("{} {}", badge("failed", "problem"), schedule.problem)
        return badge("running", "on") if schedule.enabled else badge("stopped", "off")

    @admin.display(description="owner", ordering="owner")
    def owned_by(self, schedule: RunSchedule) -> str:
        if schedule.owner_is_there:  # type: ignore[attr-defined]
            return schedule.owner
        return f"{schedule.owner}, who has left: somebody else should take it over"

    @admin.action(description="Switch on", permissions=["change"])
    def switch_on(self, request: HttpRequest, chosen: QuerySet[RunSchedule]) -> None:
        self._change_each(request, chosen, "switched on", enabled=True)

    @admin.action(description="Switch off", permissions=["change"])
    def switch_off(self, request: HttpRequest, chosen: QuerySet[RunSchedule]) -> None:
        self._change_each(request, chosen, "switched off", enabled=False)

    @admin.action(description="Take over: I answer for them", permissions=["change"])
    def take_over(self, request: HttpRequest, chosen: QuerySet[RunSchedule]) -> None:
        self._change_each(request, chosen, "yours", owner=person_of(request))

    def _change_each(
        self, request: HttpRequest, chosen: QuerySet[RunSchedule], said: str, **values: object
    ) -> None:
        """Save each as if by its form; one that cannot be followed says so and holds up no other."""
        for schedule in RunSchedule.objects.filter(pk__in=chosen.values("pk")).order_by("name"):
            for name, value in values.items():
                setattr(schedule, name, value)
            try:
                save_schedule(schedule, who=person_of(request), now=timezone.now())
            except RefusedSetting as refusal:
                messages.error(request, f"{schedule}: {refusal}")
            else:
                self.log_change(request, schedule, f"Now {said}.")
                messages.success(request, f"{schedule} is {said}.")

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.now_view)
        own = path("<int:schedule_id>/now/", view, name="engine_runschedule_now")
        return [own, *super().get_urls()]

    def now_view(self, request: HttpRequest, schedule_id: int) -> HttpResponse:
        """Ask for its run now, by its own rules."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        schedule = get_object_or_404(RunSchedule, pk=schedule_id)
        if not self.has_change_permission(request, schedule):
            raise PermissionDenied
        occasion = fire_now(schedule, who=person_of(request), now=timezone.now())
        if occasion.run is None:
            messages.error(request, f"No run was begun. {occasion.reason}")
            address = reverse("admin:engine_runschedule_change", args=[schedule.pk])
        else:
            self.log_change(request, schedule, f"Run {occasion.run_id} asked for.")
            messages.success(request, f"Run {occasion.run_id} is asked for.")
            address = _run_url(occasion.run_id or 0)
        return HttpResponseRedirect(address)

    def get_fieldsets(self, request: HttpRequest, obj: RunSchedule | None = None) -> Any:
        may_edit = self.has_change_permission(request, obj) if obj else True
        return super().get_fieldsets(request, obj) if may_edit else self._only_looked_at

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        now = timezone.now()
        return {
            "owner": person_of(request),
            "time_zone": settings.TIME_ZONE,
            "first_date": local_day(now, settings.TIME_ZONE),
            "until_idle": True,
            **super().get_changeform_initial_data(request),
        }

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show a schedule with what is known of it; asked for a preview, save nothing."""
        schedule = self.get_object(request, unquote(object_id)) if object_id else None
        if request.method == "POST" and "_preview" in request.POST:
            return self._preview(request, schedule, form_url)
        known = {} if schedule is None else _known_of(schedule)
        return super().changeform_view(request, object_id, form_url, known | (extra_context or {}))

    def _preview(
        self, request: HttpRequest, schedule: RunSchedule | None, form_url: str
    ) -> HttpResponse:
        """Show the form as it was filled in, with when it would be due."""
        is_new = schedule is None
        may = (
            self.has_add_permission(request)
            if schedule is None
            else self.has_change_permission(request, schedule)
        )
        if not may:
            raise PermissionDenied
        form = self.get_form(request, schedule, change=not is_new)(request.POST, instance=schedule)
        preview = _known_of(form.instance) if form.is_valid() else {}
        shown = AdminForm(form, list(self.get_fieldsets(request, schedule)), {}, (), self)
        context = {
            **self.admin_site.each_context(request),
            **preview,
            "title": "Preview: nothing is saved yet",
            "is_preview": True,
            "adminform": shown,
            "object_id": schedule and schedule.pk,
            "original": schedule,
            "is_popup": False,
            "to_field": None,
            "media": self.media + shown.media,
            "inline_admin_formsets": [],
            "errors": AdminErrorList(form, []),
            "preserved_filters": self.get_preserved_filters(request),
        }
        return self.render_change_form(
            request, context, add=is_new, change=not is_new, obj=schedule, form_url=form_url
        )

    def save_model(
        self,
        request: HttpRequest,
        obj: RunSchedule,
        form: ModelForm[RunSchedule],
        change: bool,  # noqa: FBT001 - Django's signature
    ) -> None:
        assert isinstance(form, ScheduleForm)
        save_schedule(obj, who=person_of(request), now=form.now)
        messages.info(request, f"{obj}: {told(obj)}")

    def delete_model(self, request: HttpRequest, obj: RunSchedule) -> None:
        delete_schedule(obj, who=person_of(request))

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Delete a schedule, or say which live run forbids it."""
        try:
            return super().delete_view(request, object_id, extra_context)
        except RunRefused as refusal:
            messages.error(request, str(refusal))
            url = reverse("admin:engine_runschedule_change", args=[object_id])
            return HttpResponseRedirect(url)

    def get_deleted_objects(
        self, objs: Sequence[RunSchedule] | QuerySet[RunSchedule], request: HttpRequest
    ) -> tuple[list[Any], dict[str, int], set[str], list[str]]:
        """Count what goes with a schedule: its occasions may be many."""
        n_occasions = Occasion.objects.filter(schedule__in=objs).count()
        names = [f"Schedule: {schedule}" for schedule in objs]
        return names, {"schedules": len(names), "times that it had": n_occasions}, set(), []


def _known_of(schedule: RunSchedule) -> dict[str, Any]:
    """Return what the page says of a schedule beside its fields."""
    live = None
    occasions: list[Occasion] = []
    if schedule.pk:
        rows = Occasion.objects.filter(schedule=schedule).select_related("run")
        occasions = list(rows.order_by("-intended_at")[:SHOWN])
        live = Run.objects.filter(occasion__schedule=schedule, status__in=LIVE).first()
    return {
        "said": _said(schedule),
        "times_told": _times_told(schedule),
        "problem": schedule.problem,
        "zone": schedule.time_zone,
        "is_off": not schedule.enabled,
        "occasions": occasions,
        "month_forecast": month_forecast(schedule) if schedule.pk else "",
        "live": live,
    }


def _said(schedule: RunSchedule) -> str:
    """Return when a schedule is due, in words, or why nobody can tell."""
    try:
        return told(schedule)
    except RefusedSetting as refusal:
        return f"It cannot be followed: {refusal}"


def _times_told(schedule: RunSchedule) -> list[str]:
    try:
        return told_times(schedule, after=timezone.now())
    except RefusedSetting:
        return []


def _run_url(run: int) -> str:
    return reverse("admin:engine_run_change", args=[run])
