"""Who deals with whom in a simulation: a picture, and behind it each agent's pairs with the rule."""

from __future__ import annotations

from dataclasses import dataclass
from math import cos, pi, sin
from typing import TYPE_CHECKING, Any, Final

from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import Http404
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse

from cohorts.foresight import silent
from cohorts.models import Agent, Cohort
from engine.admin.pages import frame, number_of
from engine.models import Simulation
from engine.store.database.topology import load_gate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.contrib.admin import ModelAdmin
    from django.http import HttpRequest, HttpResponse

    from cohorts.rules import Topology

IN_A_PAGE: Final = 100
AGENTS_DRAWN: Final = 60
COHORTS_DRAWN: Final = 40
SIZE: Final = 720
_RADIUS: Final = 230


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A point of the picture, with its name outside the circle."""

    name: str
    x: float
    y: float
    text_x: float
    text_y: float
    anchor: str
    is_silent: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    x1: float
    y1: float
    x2: float
    y2: float


def pairs_view(model_admin: ModelAdmin[Any], request: HttpRequest) -> HttpResponse:
    """Show the picture of a simulation, and whom one agent deals with, by which rule."""
    _refuse_others(request)
    simulation = _simulation(request)
    context = frame(
        model_admin,
        request,
        "Who deals with whom",
        simulations=Simulation.objects.all()[:200],
        chosen=simulation,
        sought=request.GET.get("agent", ""),
    )
    if simulation is not None:
        topology = load_gate(simulation.pk, simulation.policy)
        slugs = dict(Agent.objects.values_list("pk", "slug"))
        ids = {slug: pk for pk, slug in slugs.items()}
        agent = ids.get(request.GET.get("agent", ""))
        context |= {
            "topology": topology,
            "names": [slugs[pk] for pk in sorted(topology.running, key=slugs.__getitem__)][:1000],
            "silent": sorted(slugs[pk] for pk in silent(topology)),
            "agent": None if agent is None else slugs[agent],
            "pairs": None if agent is None else _pairs(topology, agent, slugs, request),
        }
    return TemplateResponse(request, "admin/engine/pairs.html", context)


def picture_view(request: HttpRequest, simulation_id: int) -> HttpResponse:
    """Draw a simulation: its agents, or its cohorts if there are too many agents."""
    _refuse_others(request)
    simulation = get_object_or_404(Simulation, pk=simulation_id)
    topology = load_gate(simulation.pk, simulation.policy)
    slugs = dict(Agent.objects.values_list("pk", "slug"))
    few = len(topology.running) <= AGENTS_DRAWN
    nodes, lines = _agents(topology, slugs) if few else _cohorts(topology)
    context = {
        "simulation": simulation,
        "nodes": nodes,
        "lines": lines,
        "of_agents": few,
        "size": SIZE,
        "n_agents": len(topology.running),
    }
    return TemplateResponse(
        request, "admin/engine/pairs.svg", context, content_type="image/svg+xml"
    )


def _pairs(
    topology: Topology, agent: int, slugs: dict[int, str], request: HttpRequest
) -> dict[str, object]:
    others = sorted(topology.running - {agent}, key=slugs.__getitem__)
    page = Paginator(others, IN_A_PAGE).get_page(request.GET.get("p"))
    rows = [
        (slugs[other], topology.decide(agent, author=other, is_bot=True))
        for other in page.object_list
    ]
    return {"page": page, "rows": rows}


def _agents(topology: Topology, slugs: dict[int, str]) -> tuple[list[Node], list[Line]]:
    """Agents on a circle, neighbours in a cohort near each other, a line for each pair."""
    order = sorted(
        topology.running, key=lambda pk: (sorted(topology.cohorts(pk)) or [1 << 62], slugs[pk])
    )
    hearing = {
        pk: [one for one in order if one != pk and topology.permits(pk, one)] for pk in order
    }
    nodes = _circle([slugs[pk] for pk in order], [not hearing[pk] for pk in order])
    at = dict(zip(order, nodes, strict=True))
    lines = [_line(at[pk], at[one]) for pk in order for one in hearing[pk] if pk < one]
    return nodes, lines


def _cohorts(topology: Topology) -> tuple[list[Node], list[Line]]:
    """Cohorts on a circle with their number of running members, a line where they share some."""
    members: dict[int, set[int]] = {}
    for agent in topology.running:
        for cohort in topology.cohorts(agent):
            members.setdefault(cohort, set()).add(agent)
    names = dict(Cohort.objects.filter(pk__in=members).values_list("pk", "name"))
    order = sorted(members, key=lambda pk: (-len(members[pk]), names.get(pk, "")))[:COHORTS_DRAWN]
    labels = [f"{names.get(pk, '?')} ({len(members[pk])})" for pk in order]
    nodes = _circle(labels, [len(members[pk]) < 2 for pk in order])
    lines = [
        _line(nodes[i], nodes[j])
        for i, one in enumerate(order)
        for j, other in enumerate(order[:i])
        if not members[one].isdisjoint(members[other])
    ]
    return nodes, lines


def _circle(names: Sequence[str], is_silent: Sequence[bool]) -> list[Node]:
    """Put names on a circle, the first one at the top."""
    nodes = []
    for number, name in enumerate(names):
        angle = 2 * pi * number / max(len(names), 1) - pi / 2
        across, down = cos(angle), sin(angle)
        nodes.append(
            Node(
                name=name if len(name) <= 22 else f"{name[:21]}…",
                x=round(SIZE / 2 + _RADIUS * across, 1),
                y=round(SIZE / 2 + _RADIUS * down, 1),
                text_x=round(SIZE / 2 + (_RADIUS + 16) * across, 1),
                text_y=round(SIZE / 2 + (_RADIUS + 16) * down + 4, 1),
                anchor="middle" if abs(across) < 0.2 else "start" if across > 0 else "end",
                is_silent=is_silent[number],
            )
        )
    return nodes


def _line(one: Node, other: Node) -> Line:
    return Line(x1=one.x, y1=one.y, x2=other.x, y2=other.y)


def _simulation(request: HttpRequest) -> Simulation | None:
    """Return the simulation that was asked for, or the newest; None if there is none."""
    if "simulation" in request.GET:
        key = number_of(request.GET["simulation"])
        if key is None:
            raise Http404
        return get_object_or_404(Simulation, pk=key)
    return Simulation.objects.order_by("-pk").first()


def _refuse_others(request: HttpRequest) -> None:
    if not request.user.has_perms(["cohorts.view_cohort", "engine.view_simulation"]):
        raise PermissionDenied
