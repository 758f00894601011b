"""Runs: what was asked for, how it went, and why it ended."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpResponseNotAllowed, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import path, re_path, reverse
from django.utils import timezone
from django.utils.formats import date_format

from engine.admin.live.now import NOT_OVER, live_page, part_view
from engine.admin.live.steering import ask, may_steer, raise_run_caps
from engine.admin.pages import HistoryAdmin, badge, frame, seconds_in_words
from engine.admin.report.charts import chart_view
from engine.admin.report.compare import compare_view
from engine.admin.report.costs import costs
from engine.admin.report.download import download_view
from engine.admin.report.figures import list_figures, page_figures, turns_per_agent, with_counts
from engine.admin.report.story import story
from engine.admin.setup.settings import setting_in_words
from engine.build import REPLAY
from engine.models import Run, TopologySnapshot

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.db.models import QuerySet
    from django.http import HttpRequest, HttpResponse
    from django.urls import URLPattern
    from django.utils.safestring import SafeString

NAMES_SHOWN = 50
SNAPSHOTS_SHOWN = 20
END_WORDS = {
    "idle": "nothing was left to do",
    "stopped": "somebody stopped it",
    "time_limit": "its time was over",
    "turn_limit": "it had taken all its turns",
    "money_cap": "its money cap is reached",
    "call_cap": "its cap of model calls is reached",
    "circuit_open": "the model failed too often in a row",
    "pause_requested": "somebody paused it",
    "nobody_left": "no agent was left that could take a turn",
    "failed": "it failed",
    "interrupted": "its process died",
}
VERDICT_WORDS = {
    "in_force": "cohorts in force",
    "off": "cohorts switched off by the policy",
    "refused": "cohorts ignored: under this policy nobody could have dealt with anybody",
}


@admin.register(Run)
class RunAdmin(HistoryAdmin):
    list_display = (
        "number",
        "simulation",
        "kind",
        "status_word",
        "why_ended",
        "started",
        "duration",
        "turns",
        "llm_calls",
        "threads",
        "proposals",
        "started_by",
    )
    list_filter = ("status", "simulation")
    list_select_related = ("simulation",)
    empty_hint = (
        "No run yet. Start one: manage.py runsim --simulation NAME --llm offline --until-idle, "
        "or let a schedule begin it."
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Run]:
        rows: QuerySet[Run] = super().get_queryset(request)
        return with_counts(rows)

    @admin.display(description="run")
    def number(self, run: Run) -> str:
        return f"Run {run.pk}"

    @admin.display(description="kind")
    def kind(self, run: Run) -> str:
        return kind_of(run)

    @admin.display(description="status")
    def status_word(self, run: Run) -> SafeString:
        return badge(run.status, run.get_status_display().lower())

    @admin.display(description="why it ended")
    def why_ended(self, run: Run) -> str:
        return END_WORDS.get(run.end_reason, "–")

    @admin.display(description="started")
    def started(self, run: Run) -> str:
        return (
            date_format(timezone.localtime(run.started_at), "j M Y H:i") if run.started_at else "–"
        )

    @admin.display(description="duration")
    def duration(self, run: Run) -> str:
        return duration_of(run)

    @admin.display(description="turns")
    def turns(self, run: Run) -> int:
        return list_figures(run).turns

    @admin.display(description="LLM calls")
    def llm_calls(self, run: Run) -> int:
        return list_figures(run).llm_calls

    @admin.display(description="threads ended")
    def threads(self, run: Run) -> int:
        return list_figures(run).threads

    @admin.display(description="proposals")
    def proposals(self, run: Run) -> int:
        return list_figures(run).proposals

    def get_urls(self) -> list[URLPattern]:
        wrap = self.admin_site.admin_view
        own = [
            path("<int:run_id>/ask/", wrap(partial(self.act_view, ask)), name="engine_run_ask"),
            path(
                "<int:run_id>/raise/",
                wrap(partial(self.act_view, raise_run_caps)),
                name="engine_run_raise",
            ),
            path("compare/", wrap(partial(compare_view, self)), name="engine_run_compare"),
            re_path(
                r"^(?P<run_id>\d{1,18})/(?P<chart>[a-z]+)\.svg$",
                wrap(partial(chart_view, self)),
                name="engine_run_chart",
            ),
            re_path(
                r"^(?P<run_id>\d{1,18})/export-(?P<kind>[a-z]+)\.zip$",
                wrap(partial(download_view, self)),
                name="engine_run_export",
            ),
            re_path(
                r"^(?P<run_id>\d{1,18})/(?P<part>now|acts)/$",
                wrap(partial(part_view, self)),
                name="engine_run_part",
            ),
        ]
        return [*own, *super().get_urls()]

    def act_view(
        self, act: Callable[[HttpRequest, Run], str], request: HttpRequest, run_id: int
    ) -> HttpResponse:
        """Do what somebody asks of a run, note who did, and lead back to its page."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not may_steer(request):
            raise PermissionDenied
        run = self.find(request, str(run_id))
        done = act(request, run)
        if done:
            self.log_change(request, run, done)
        return HttpResponseRedirect(reverse("admin:engine_run_change", args=[run_id]))

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, object] | None = None,
    ) -> HttpResponse:
        """Show a run: one that is not over as it goes on, another with all that is known of it."""
        run = self.find(request, object_id)
        if run.status in NOT_OVER:
            return live_page(self, request, run)
        agents, is_cut = turns_per_agent(run)
        context = frame(
            self,
            request,
            f"Run {run.pk} of {run.simulation}",
            run=run,
            is_rehearsal=is_rehearsal(run),
            status=self.status_word(run),
            why_ended=self.why_ended(run),
            duration=duration_of(run),
            figures=page_figures(run),
            costs=costs(run),
            configuration=_configuration(run),
            snapshots=_snapshots(run),
            agents=agents,
            is_cut=is_cut,
            **story(run, agents, is_cut=is_cut),
        )
        return TemplateResponse(request, "admin/engine/run.html", context)


def is_rehearsal(run: Run) -> bool:
    """Tell whether a run was answered by the offline model."""
    return bool(run.configuration.get("llm") == "offline")


def kind_of(run: Run) -> str:
    """Return whether a run asked a model, in words."""
    llm = str(run.configuration.get("llm", ""))
    if llm.startswith(REPLAY):
        return f"replay of run {llm.removeprefix(REPLAY)}"
    return "rehearsal (simulated)" if is_rehearsal(run) else "real"


def duration_of(run: Run) -> str:
    """Return how long a run took, or takes so far, in words."""
    if run.started_at is None:
        return "–"
    return seconds_in_words(((run.finished_at or timezone.now()) - run.started_at).total_seconds())


def _configuration(run: Run) -> list[tuple[str, str]]:
    """Return what was asked for, in plain words."""
    return [setting_in_words(name, value) for name, value in run.configuration.items()]


def _snapshots(run: Run) -> list[dict[str, object]]:
    """Return the cohorts that a run went by, newest first, long ones cut."""
    rows = TopologySnapshot.objects.filter(run=run).order_by("-version")[:SNAPSHOTS_SHOWN]
    return [
        {
            "version": row.version,
            "at": row.at,
            "policy": row.policy,
            "verdict": VERDICT_WORDS.get(row.verdict, row.verdict),
            "cohorts": [
                {
                    "name": name,
                    "n_members": len(members),
                    "members": members[:NAMES_SHOWN],
                    "n_more": max(0, len(members) - NAMES_SHOWN),
                }
                for name, members in sorted(row.cohorts.items())
            ],
        }
        for row in rows
    ]
