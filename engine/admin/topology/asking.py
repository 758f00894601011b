"""Asks before a change of who deals with whom: what it would do, then a yes.

A page hands its change to `ask`. The question carries it, signed, with the version of the topology
that it was weighed at; `apply_view` makes it only if that version is still the one, and only with
the ticks for everybody whom it would silence or free.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.contrib import messages
from django.core import signing
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpResponseNotAllowed, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse

from cohorts import operations
from cohorts.gate import read_version
from cohorts.models import Agent, Cohort, Membership
from engine import simulations
from engine.admin.pages import frame, person_of
from engine.foresee import Edit, foresee_edit
from engine.models import Simulation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.contrib.admin import ModelAdmin
    from django.http import HttpRequest, HttpResponse

    from engine.foresee import Outlook, Outlooks

SALT: Final = "engine.topology"
GOOD_FOR_SECONDS: Final = 24 * 3600
NAMED_AT_MOST: Final = 200
_MOVED: Final = (
    "Somebody changed who deals with whom meanwhile. Nothing of yours is made yet: look again."
)
_NEEDS: Final = {
    "add": "cohorts.change_cohort",
    "remove": "cohorts.change_cohort",
    "statuses": "cohorts.change_agent",
    "policies": "engine.change_simulation",
    "join": "engine.change_simulation",
    "leave": "engine.change_simulation",
}


def ask(
    model_admin: ModelAdmin[Any], request: HttpRequest, edit: Edit, *, back: str
) -> HttpResponse:
    """Show what a change would do, with a button that makes it; `back` is where it came from."""
    outlooks = foresee_edit(edit)
    kept = {"edit": edit.as_json(), "version": outlooks.version, "back": back}
    context = frame(
        model_admin,
        request,
        "What this change would do",
        asked=signing.dumps(kept, salt=SALT, compress=True),
        back=back,
        changes=_in_words(edit),
        outlooks=[_told(one, outlooks) for one in outlooks.each],
        n_more=outlooks.n_more,
        ticks=_ticks(outlooks),
    )
    return TemplateResponse(request, "admin/engine/topology_question.html", context)


def apply_view(model_admin: ModelAdmin[Any], request: HttpRequest) -> HttpResponse:
    """Make a change that was asked about, if it still is what was shown and everybody is ticked."""
    if request.method != "POST":
        return HttpResponseNotAllowed(["POST"])
    try:
        kept = signing.loads(request.POST.get("asked", ""), salt=SALT, max_age=GOOD_FOR_SECONDS)
    except signing.BadSignature:
        if not request.user.has_perm("cohorts.change_cohort"):
            raise PermissionDenied from None
        messages.error(request, "The question is too old or was cut off: make the change again.")
        return HttpResponseRedirect(reverse("admin:engine_matrix"))
    edit, back = Edit.from_json(kept["edit"]), kept["back"]
    if not may_make(request, edit):
        raise PermissionDenied
    if _lacks_ticks(request, edit):
        return ask(model_admin, request, edit, back=back)
    done = _make(edit, who=person_of(request), version=kept["version"])
    if done is None:
        messages.warning(request, _MOVED)
        return ask(model_admin, request, edit, back=back)
    messages.success(request, done)
    return HttpResponseRedirect(back)


def membership_edit(cohort: Cohort, agents: Sequence[Agent], *, adds: bool) -> Edit:
    """Return the change that adds agents to a cohort, or takes them out; those as they are, no."""
    present = set(
        Membership.objects.filter(cohort=cohort, agent__in=agents).values_list("agent", flat=True)
    )
    pairs = tuple((cohort.pk, agent.pk) for agent in agents if (agent.pk in present) is not adds)
    return Edit(add=pairs) if adds else Edit(remove=pairs)


def may_make(request: HttpRequest, edit: Edit) -> bool:
    """Tell whether somebody may make all parts of a change."""
    wanted = {right for part, right in _NEEDS.items() if getattr(edit, part)}
    return bool(wanted) and request.user.has_perms(wanted)


def _lacks_ticks(request: HttpRequest, edit: Edit) -> bool:
    """Tell, and say, that somebody has not ticked everybody whom a change silences or frees."""
    ticked = request.POST.getlist("yes")
    is_lacking = any(tick["value"] not in ticked for tick in _ticks(foresee_edit(edit)))
    if is_lacking:
        messages.error(request, "Nothing is made yet: tick below that you mean those agents.")
    return is_lacking


def _ticks(outlooks: Outlooks) -> list[dict[str, object]]:
    """Return what has to be ticked: a tick stands for exactly the agents that it names."""
    found = (
        ("will hear nobody", outlooks.silenced),
        ("will deal with everybody", outlooks.freed),
    )
    return [
        {
            "value": signing.Signer(salt=SALT).signature(f"{says}: {', '.join(slugs)}"),
            "says": says,
            "slugs": slugs[:NAMED_AT_MOST],
            "n_more": max(0, len(slugs) - NAMED_AT_MOST),
        }
        for says, slugs in found
        if slugs
    ]


def _make(edit: Edit, *, who: str, version: int) -> str | None:
    """Make a change in one transaction and return what was done; None if the version moved."""
    with transaction.atomic():
        if read_version() != version:
            return None
        told = []
        cohorts = Cohort.objects.in_bulk({cohort for cohort, _ in (*edit.add, *edit.remove)})
        agents = Agent.objects.in_bulk(
            {agent for _, agent in (*edit.add, *edit.remove, *edit.join, *edit.leave)}
            | {agent for agent, _ in edit.statuses}
        )
        add, remove = (
            [(cohorts[c], agents[a]) for c, a in pairs if c in cohorts and a in agents]
            for pairs in (edit.add, edit.remove)
        )
        if add or remove:
            diff = operations.change_memberships(add=add, remove=remove, who=who)
            told.append(f"{_count(len(diff.added), 'membership')} added")
            told.append(f"{len(diff.removed)} removed")
        told += _set_statuses(edit, agents, who)
        told += _set_simulations(edit, agents)
    return f"Done: {', '.join(told)}."


def _set_statuses(edit: Edit, agents: dict[int, Agent], who: str) -> list[str]:
    changed = []
    for pk, status in edit.statuses:
        if pk in agents:
            agents[pk].status = status
            changed.append(agents[pk])
    if not changed:
        return []
    saved = operations.save_agents(changed, who=who)
    n_changed = list(saved.values()).count(operations.Saved.CHANGED)
    return [f"{_count(n_changed, 'agent')} {dict(edit.statuses)[changed[0].pk]}"]


def _set_simulations(edit: Edit, agents: dict[int, Agent]) -> list[str]:
    touched = {pk for pairs in (edit.policies, edit.join, edit.leave) for pk, _ in pairs}
    told = []
    for simulation in Simulation.objects.filter(pk__in=touched).order_by("pk"):
        policy = dict(edit.policies).get(simulation.pk)
        if policy is not None:
            simulation.policy = policy
            simulations.save_simulation(simulation)
            told.append(f"policy of {simulation} is {policy}")
        joining = [agents[a] for pk, a in edit.join if pk == simulation.pk and a in agents]
        leaving = [agents[a] for pk, a in edit.leave if pk == simulation.pk and a in agents]
        joined = simulations.add_to_roster(simulation, joining)
        left = simulations.remove_from_roster(simulation, leaving)
        if joining or leaving:
            told.append(f"roster of {simulation}: {len(joined)} added, {len(left)} removed")
    return told


def _told(outlook: Outlook, outlooks: Outlooks) -> dict[str, object]:
    """Return an outlook as the page shows it: slugs for ids, shares in per cent."""
    slugs, foresight = outlooks.slugs, outlook.foresight
    return {
        "simulation": outlook.simulation,
        "foresight": foresight,
        "opened": [(slugs[one], slugs[other]) for one, other in foresight.opened.first],
        "closed": [(slugs[one], slugs[other]) for one, other in foresight.closed.first],
        "blocked_before": round(100 * foresight.blocked_before),
        "blocked_after": round(100 * foresight.blocked_after),
        "silenced": [slugs[agent] for agent in foresight.silenced],
        "freed": [slugs[agent] for agent in foresight.freed],
        "threads": [
            {"root": root, "seq": seq, "one": slugs[one], "other": slugs[other]}
            for root, seq, one, other in outlook.grandfathered
        ],
        "n_threads": outlook.n_grandfathered,
        "last_run": outlook.last_run,
    }


def _in_words(edit: Edit) -> list[str]:
    """Return what a change does by itself, a sentence for each kind."""
    named = {**edit.as_json()}
    told = {
        "add": "added to cohorts",
        "remove": "taken out of cohorts",
        "statuses": "with another status",
        "join": "added to a roster",
        "leave": "taken off a roster",
    }
    sentences = [
        f"{_count(len(named[part]), 'agent')} {words}"
        for part, words in told.items()
        if named[part]
    ]
    return sentences + [f"the policy becomes {policy}" for _, policy in edit.policies]


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}{'' if n == 1 else 's'}"
