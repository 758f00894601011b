"""What the first page says: what goes on, what waits for whoever looks, what is next, today's money."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.contrib import messages
from django.contrib.admin.models import ADDITION, LogEntry
from django.core.exceptions import PermissionDenied
from django.http import HttpResponseNotAllowed, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone

from engine import runs
from engine.admin.pages import person_of
from engine.core.days import local_day
from engine.core.prices import in_usd
from engine.core.settings import RefusedSetting
from engine.models import Alert, Proposal, Run, RunSchedule, Simulation, TopologySnapshot
from engine.roster import DEMO, load_demo
from engine.store.database import day_money

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.http import HttpRequest, HttpResponse

SHOWN: Final = 8
COUNTED_AT_MOST: Final = 1_000


def home_of(request: HttpRequest) -> dict[str, object]:
    """Return what the first page shows to somebody; a few queries, whatever there is."""
    may = request.user.has_perm
    if not may("engine.view_run"):
        return {}
    rows = Run.objects.select_related("simulation").order_by("-pk")
    live = list(rows.filter(status__in=("running", "stopping"))[:SHOWN])
    paused = list(rows.filter(status="paused")[:SHOWN])
    queued = list(rows.filter(status="queued")[:SHOWN])
    return {
        "live": [(run, runs.state_of(run)) for run in live],
        "queued": [(run, runs.state_of(run)) for run in queued],
        "last": rows.filter(finished_at__isnull=False)[:3],
        "waits": list(_waits(request, paused)),
        "schedules": RunSchedule.objects.filter(enabled=True, next_at__isnull=False)
        .select_related("simulation")
        .order_by("next_at")[:SHOWN],
        "money": _money(),
        "refused": _refused(live),
        "simulations": Simulation.objects.order_by("name")[:SHOWN],
        "may_start": may("engine.add_run"),
        "may_try": may("engine.add_run") and may("cohorts.add_agent"),
        "has_demo": Simulation.objects.filter(name=DEMO).exists(),
        "is_worker_there": runs.is_worker_there(),
    }


def try_view(request: HttpRequest) -> HttpResponse:
    """Load the demo roster if it is not there, and ask for a rehearsal of it."""
    may = request.user.has_perm
    if not (may("engine.add_run") and may("cohorts.add_agent")):
        raise PermissionDenied
    if request.method != "POST":
        return HttpResponseNotAllowed(["POST"])
    is_there = Simulation.objects.filter(name=DEMO).exists()
    problems = [] if is_there else load_demo(who=person_of(request))
    if problems:
        messages.error(request, f"The demo was not loaded: {problems[0]}")
        return HttpResponseRedirect(reverse("admin:index"))
    simulation = Simulation.objects.get(name=DEMO)
    try:
        config = runs.configured(simulation, {"llm": "offline", "until_idle": True})
        run = runs.request_alone(simulation, config, who=person_of(request))
    except (runs.RunRefused, RefusedSetting) as refusal:
        messages.error(request, str(refusal))
        return HttpResponseRedirect(reverse("admin:index"))
    LogEntry.objects.log_actions(
        user_id=request.user.pk or 0,
        queryset=[run],
        action_flag=ADDITION,
        change_message="Started.",
    )
    messages.success(
        request, f"Run {run.pk} is asked for. A worker takes it within a second or two."
    )
    return HttpResponseRedirect(reverse("admin:engine_run_change", args=[run.pk]))


def _waits(request: HttpRequest, paused: list[Run]) -> Iterator[tuple[str, str]]:
    """Yield a sentence and an address for all that waits for a person."""
    may = request.user.has_perm
    pending = Proposal.objects.filter(state="pending").order_by()[:COUNTED_AT_MOST].count()
    if pending and may("engine.view_proposal"):
        n = f"{pending}{' or more' if pending == COUNTED_AT_MOST else ''}"
        noun = "proposal waits" if pending == 1 else "proposals wait"
        address = f"{reverse('admin:engine_proposal_changelist')}?state__exact=pending"
        yield f"{n} {noun} for review.", address
    for run in paused:
        sentence = f"{run.simulation}: run {run.pk} is paused. {runs.state_of(run).sentence}"
        yield sentence, reverse("admin:engine_run_change", args=[run.pk])
    since = timezone.now() - timedelta(days=7)
    for alert in Alert.objects.filter(at__gte=since).order_by("-pk")[:SHOWN]:
        yield alert.sentence, reverse("admin:engine_alert_changelist")


def _money() -> dict[str, object]:
    day = day_money(local_day(timezone.now(), settings.TIME_ZONE))
    spent = day.spent + day.reserved
    return {
        "spent": in_usd(spent),
        "cap": None if day.cap is None else in_usd(day.cap),
        "share": None if not day.cap else min(spent / day.cap, 1.0),
        "is_reached": day.cap is not None and spent >= day.cap,
    }


def _refused(live: list[Run]) -> list[Run]:
    """Return the live runs whose cohorts are ignored, since they would silence everybody."""
    rows = TopologySnapshot.objects.filter(run__in=live).order_by("run", "version")
    newest = dict(rows.values_list("run_id", "verdict"))
    return [run for run in live if newest.get(run.pk) == "refused"]
