"""The page that starts a run: defaults that work, reasons why not, and the price before a yes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.contrib import messages
from django.core import signing
from django.core.exceptions import PermissionDenied
from django.http import HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import reverse

from cohorts.models import Agent
from engine import runs
from engine.admin.pages import frame, person_of
from engine.admin.start.form import TRIAL, StartForm
from engine.core.prices import in_usd
from engine.core.settings import RefusedSetting
from engine.models import Simulation

if TYPE_CHECKING:
    from django.contrib.admin import ModelAdmin
    from django.http import HttpRequest, HttpResponse

    from engine.core.config import RunConfig
    from engine.models import Run

SALT: Final = "engine.start"
#: A forecast plays the run in memory several times; for more agents that takes too long for a page.
FORECAST_AGENTS: Final = 200


def may_start(request: HttpRequest) -> bool:
    """Tell whether somebody may start runs."""
    return request.user.has_perm("engine.add_run")


def start_view(
    model_admin: ModelAdmin[Any], request: HttpRequest, simulation_id: int
) -> HttpResponse:
    """Show what a run would be, or start it; what costs money only after a yes to its price."""
    if not may_start(request):
        raise PermissionDenied
    simulation = get_object_or_404(Simulation, pk=simulation_id)
    form = StartForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        return _chosen(model_admin, request, simulation, form)
    shown = form if request.method == "POST" else StartForm()
    config = runs.configured(simulation, {"llm": "offline"})
    found = runs.readiness(simulation, config)
    return _page(model_admin, request, simulation, form=shown, found=found)


def _chosen(
    model_admin: ModelAdmin[Any], request: HttpRequest, simulation: Simulation, form: StartForm
) -> HttpResponse:
    """Start what was chosen if it is free or its price was accepted; show the price otherwise."""
    try:
        config = runs.configured(simulation, form.asked())
        found = runs.readiness(simulation, config)
    except (runs.RunRefused, RefusedSetting) as refusal:
        messages.error(request, str(refusal))
        return HttpResponseRedirect(request.path)
    is_accepted = form.is_free or request.POST.get("accepted") == _price_of(form)
    if found.refusals or not is_accepted:
        price = None if found.refusals else _price(simulation, form, config)
        return _page(model_admin, request, simulation, form=form, found=found, price=price)
    try:
        run = _start(simulation, form, config, who=person_of(request))
    except (runs.RunRefused, RefusedSetting) as refusal:
        messages.error(request, str(refusal))
        return HttpResponseRedirect(request.path)
    model_admin.log_addition(request, run, "Started.")
    messages.success(
        request, f"Run {run.pk} is asked for. A worker takes it within a second or two."
    )
    return HttpResponseRedirect(reverse("admin:engine_run_change", args=[run.pk]))


def _start(simulation: Simulation, form: StartForm, config: RunConfig, *, who: str) -> Run:
    if form.cleaned_data["kind"] == TRIAL:
        simulation = runs.trial_world(simulation, who=who)
        config = runs.configured(simulation, form.asked())
    return runs.request_alone(simulation, config, who=who)


def _price(simulation: Simulation, form: StartForm, config: RunConfig) -> dict[str, object]:
    """Return what a run would cost, and what the yes to it says."""
    cap = config.max_nano_usd
    told: dict[str, object] = {
        "accepted": _price_of(form),
        "cap": None if cap is None else in_usd(cap),
        "agents": runs.chosen_for_trial(simulation) if form.cleaned_data["kind"] == TRIAL else [],
    }
    if form.cleaned_data["kind"] == TRIAL:
        return told
    if _n_agents(simulation) > FORECAST_AGENTS:
        return told | {"too_many": FORECAST_AGENTS}
    forecast = runs.forecast(simulation, config)
    if forecast.cost is not None:
        cost = forecast.cost
        told |= {"low": in_usd(cost.low), "likely": in_usd(cost.likely), "high": in_usd(cost.high)}
    return told | {"forecast": forecast}


def _n_agents(simulation: Simulation) -> int:
    if simulation.roster_chosen:
        return simulation.roster.filter(status="active").count()
    return Agent.objects.filter(status="active").count()


def _price_of(form: StartForm) -> str:
    """Return what stands for a yes to exactly this choice."""
    chosen = "; ".join(f"{name} {value}" for name, value in sorted(form.cleaned_data.items()))
    return signing.Signer(salt=SALT).signature(chosen)


def _page(
    model_admin: ModelAdmin[Any],
    request: HttpRequest,
    simulation: Simulation,
    *,
    form: StartForm,
    found: runs.Readiness,
    price: dict[str, object] | None = None,
) -> HttpResponse:
    context = frame(
        model_admin,
        request,
        f"Start a run of {simulation}",
        simulation=simulation,
        form=form,
        found=found,
        price=price,
    )
    return TemplateResponse(request, "admin/engine/start.html", context)
