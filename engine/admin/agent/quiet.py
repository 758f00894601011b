"""The page that says in one sentence why an agent is quiet, and leads to the switch that changes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.core.exceptions import PermissionDenied
from django.http import Http404
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format

from cohorts.models import Agent
from engine import runs
from engine.admin.pages import frame, number_of
from engine.models import Simulation

if TYPE_CHECKING:
    from django.contrib.admin import ModelAdmin
    from django.http import HttpRequest, HttpResponse

    from engine.runs.quiet import Quiet

_AGENT, _SIMULATION, _RUN, _PROPOSALS, _MATRIX, _MONEY, _PRICES = range(7)
#: What each reason of the judge means, and where the switch is that changes it.
_WHY: Final[dict[str, tuple[str, int | None]]] = {
    "paused": ("It is paused.", _AGENT),
    "retired": ("It is retired.", _AGENT),
    "cooling": ("It rests after its last turn.", _SIMULATION),
    "call_cap": ("The model calls of the run are used up.", _RUN),
    "money_cap": ("The money of the run is spent, or promised to calls on their way.", _RUN),
    "day_cap": ("The money of the day, which all runs share, is spent.", _MONEY),
    "month_cap": ("The money of the month, which the runs of its schedule share, is spent.", _RUN),
    "own_call_cap": ("Its own limit of model calls a run is used up.", _AGENT),
    "own_money_cap": ("Its own limit of money a run is used up.", _AGENT),
    "unpriced": ("Its model has no price, so its limit of money could not hold.", _PRICES),
    "window": ("It has asked the model as often in ten minutes as it may.", _AGENT),
    "scan_delay": ("New posts wait until they are old enough, or enough of them.", _SIMULATION),
    "post_timer": ("Its next chance to post has not come yet.", _SIMULATION),
    "daily_posts": (
        (
            "It may write no new post: the day's posts are used up, its proposals wait for review, or "
            "it is in no channel."
        ),
        _PROPOSALS,
    ),
    "seats_full": ("It is in as many open threads as it may be.", _SIMULATION),
    "partner_full": ("Whom it would answer is in as many open threads as it may be.", _SIMULATION),
    "partner_out": ("Whom it would answer is paused.", None),
    "partner_gone": ("Whom it would answer is retired or has left.", None),
    "pair_resting": ("The two have closed a thread a short while ago, and rest.", _SIMULATION),
    "pair_taken": ("The two have an open thread with each other already.", None),
    "older_than_close": ("What it would answer is older than their last thread's end.", None),
    "not_permitted": ("The cohorts do not let the two deal with each other.", _MATRIX),
    "not_entitled": ("What it would answer is for somebody else, or was answered.", None),
    "in_thread": ("It has a side in that thread already.", None),
    "root_gone": ("What it would answer is not held any more.", None),
    "nothing_new": (
        "Nothing waits for it: nobody that it may deal with has written anything new.",
        _MATRIX,
    ),
}
_WORK: Final = {
    "remember": "update what it remembers",
    "discover": "look at channels that are new to it",
    "scan": "read new posts",
    "invitation": "answer a post that calls it or interests it",
    "debt": "answer in a thread",
    "post": "write a post, if it has something to say",
}


def quiet_view(model_admin: ModelAdmin[Any], request: HttpRequest, agent_id: int) -> HttpResponse:
    """Say where an agent stands in a simulation."""
    if not request.user.has_perms(["cohorts.view_agent", "engine.view_simulation"]):
        raise PermissionDenied
    agent = get_object_or_404(Agent, pk=agent_id)
    simulation = _simulation(request)
    context = frame(model_admin, request, f"Why is {agent} quiet?", agent=agent, chosen=simulation)
    context["simulations"] = Simulation.objects.all()[:200]
    if simulation is not None:
        context |= _answer(agent, simulation, runs.why_quiet(simulation, agent.pk))
    return TemplateResponse(request, "admin/engine/quiet.html", context)


def _answer(agent: Agent, simulation: Simulation, quiet: Quiet) -> dict[str, object]:
    found = quiet.standing
    due = found.due_at or found.calendar_at
    if not quiet.takes_part:
        sentence = (
            f"It does not take part in {simulation}: it is {agent.status}."
            if agent.status != Agent.Status.ACTIVE
            else f"It is not in the roster of {simulation}."
        )
        where: int | None = _AGENT if agent.status != Agent.Status.ACTIVE else _SIMULATION
        due = None
    elif found.work:
        tasks = ", ".join(_WORK[work] for work in found.work)
        sentence, where = f"It is not quiet: it is to {tasks}, and waits for its turn.", None
        if quiet.run is None:
            sentence = f"It has something to do ({tasks}), but no run of {simulation} is live."
        due = None
    else:
        sentence, where = _WHY.get(found.why, (found.why.replace("_", " "), None))
    return {
        "run": quiet.run,
        "sentence": sentence,
        "switch": None if where is None else _switch(where, agent, simulation, quiet),
        "due": date_format(timezone.localtime(due), "j M Y, H:i:s") if due else "",
    }


def _switch(where: int, agent: Agent, simulation: Simulation, quiet: Quiet) -> tuple[str, str]:
    """Return the address of the page with the switch, and what it is called."""
    if where == _RUN and quiet.run is not None:
        return reverse("admin:engine_run_change", args=[quiet.run.pk]), f"run {quiet.run.pk}"
    pages = {
        _AGENT: (reverse("admin:cohorts_agent_change", args=[agent.pk]), f"the page of {agent}"),
        _PROPOSALS: (reverse("admin:engine_proposal_changelist"), "the proposals that wait"),
        _MATRIX: (reverse("admin:engine_matrix"), "the matrix of cohorts"),
        _MONEY: (reverse("admin:engine_daycap_changelist"), "the money of a day"),
        _PRICES: (reverse("admin:engine_modelprice_changelist"), "the prices of models"),
    }
    own = reverse("admin:engine_simulation_change", args=[simulation.pk])
    return pages.get(where, (own, f"the settings of {simulation}"))


def _simulation(request: HttpRequest) -> Simulation | None:
    """Return the simulation that was asked for, or the newest; None if there is none."""
    if "simulation" in request.GET:
        key = number_of(request.GET["simulation"])
        if key is None:
            raise Http404
        return get_object_or_404(Simulation, pk=key)
    return Simulation.objects.order_by("-pk").first()
