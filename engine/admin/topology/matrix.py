"""The matrix: agents down, cohorts across, a tick for each membership.

The page says, signed, which cells it showed and how. What comes back are the cells that the
person changed and no others, so two people who work at once undo nothing of each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.contrib import messages
from django.core import signing
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.db.models import Count, Q
from django.http import HttpResponseRedirect
from django.template.response import TemplateResponse

from cohorts.models import Agent, Cohort, Membership
from engine.admin.pages import frame, number_of
from engine.admin.topology.asking import GOOD_FOR_SECONDS, ask
from engine.admin.topology.use import in_use
from engine.foresee import Edit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.contrib.admin import ModelAdmin
    from django.http import HttpRequest, HttpResponse

SALT: Final = "engine.matrix"
AGENTS_IN_A_PAGE: Final = 500
COHORTS_IN_A_PAGE: Final = 60
#: A browser without script sends a field for each tick, and the site takes a thousand.
CELLS_WITHOUT_SCRIPT: Final = 900
#: What the form says while its script has not spoken: the ticks themselves count.
TICKS: Final = "ticks"
Cell = tuple[int, int]


def matrix_view(model_admin: ModelAdmin[Any], request: HttpRequest) -> HttpResponse:
    """Show the matrix to who may view cohorts; a POST leads who may change them to the question."""
    right = "change" if request.method == "POST" else "view"
    if not request.user.has_perm(f"cohorts.{right}_cohort"):
        raise PermissionDenied
    if request.method == "POST":
        return _asked(model_admin, request)
    agents, cohorts = _agents(request), _cohorts(request)
    shown = _shown(agents.object_list, cohorts.object_list)
    n_cells = len(agents.object_list) * len(cohorts.object_list)
    context = frame(
        model_admin,
        request,
        "Cohorts and agents",
        agents=agents,
        cohorts=cohorts,
        rows=[
            (agent, [(cohort, (cohort.pk, agent.pk) in shown) for cohort in cohorts.object_list])
            for agent in agents.object_list
        ],
        shown=_signed(agents.object_list, cohorts.object_list, shown),
        sought_agents=request.GET.get("agents", ""),
        sought_cohorts=request.GET.get("cohorts", ""),
        only=request.GET.get("only", ""),
        needs_script=n_cells > CELLS_WITHOUT_SCRIPT,
        may_change=request.user.has_perm("cohorts.change_cohort"),
        in_use=in_use(),
        **_links(request),
    )
    return TemplateResponse(request, "admin/engine/matrix.html", context)


def _asked(model_admin: ModelAdmin[Any], request: HttpRequest) -> HttpResponse:
    """Lead on with the cells that somebody changed, and say what others did meanwhile."""
    try:
        kept = signing.loads(request.POST.get("shown", ""), salt=SALT, max_age=GOOD_FOR_SECONDS)
    except signing.BadSignature:
        messages.error(request, "The page was too old or cut off. Nothing is changed: try again.")
        return HttpResponseRedirect(request.get_full_path())
    was = {(cohort, agent) for cohort, agent in kept["on"]}
    place = {(cohort, agent) for cohort in kept["cohorts"] for agent in kept["agents"]}
    toggled = request.POST.get("toggled", TICKS)
    if toggled == TICKS and len(place) > CELLS_WITHOUT_SCRIPT:
        messages.error(request, "So many cells at once need the page's script: filter first.")
        return HttpResponseRedirect(request.get_full_path())
    wanted = (
        _cells(request.POST.getlist("on")) if toggled == TICKS else was ^ _cells(toggled.split())
    )
    changed = (wanted ^ was) & place
    now = _stored(kept["agents"], kept["cohorts"])
    _tell_meanwhile(request, was, now, changed)
    edit = Edit(
        add=tuple(sorted(changed & wanted - now)), remove=tuple(sorted(changed - wanted & now))
    )
    if not edit:
        messages.info(request, "Nothing is left to change: it is so already.")
        return HttpResponseRedirect(request.get_full_path())
    return ask(model_admin, request, edit, back=request.get_full_path())


def _tell_meanwhile(
    request: HttpRequest, was: set[Cell], now: set[Cell], changed: set[Cell]
) -> None:
    others = (was ^ now) - changed
    if others:
        n = len(others)
        said = f"Meanwhile somebody else changed {n} of the cells that you saw. They stay as they are now."
        messages.warning(request, said)


def _agents(request: HttpRequest) -> Any:
    sought = request.GET.get("agents", "").replace("\0", "").strip()
    rows = Agent.objects.exclude(status=Agent.Status.RETIRED).order_by("slug")
    if sought:
        rows = rows.filter(Q(slug__icontains=sought) | Q(represents__icontains=sought))
    match request.GET.get("only"):
        case "none":
            rows = rows.filter(memberships__isnull=True)
        case "several":
            rows = rows.annotate(n_cohorts=Count("memberships")).filter(n_cohorts__gt=1)
    return Paginator(rows, AGENTS_IN_A_PAGE).get_page(request.GET.get("p"))


def _cohorts(request: HttpRequest) -> Any:
    sought = request.GET.get("cohorts", "").replace("\0", "").strip()
    rows = Cohort.objects.order_by("name")
    if sought:
        rows = rows.filter(name__icontains=sought)
    return Paginator(rows, COHORTS_IN_A_PAGE).get_page(request.GET.get("c"))


def _shown(agents: Sequence[Agent], cohorts: Sequence[Cohort]) -> set[Cell]:
    return _stored([agent.pk for agent in agents], [cohort.pk for cohort in cohorts])


def _stored(agents: Sequence[int], cohorts: Sequence[int]) -> set[Cell]:
    """Return the memberships among these, as (cohort, agent)."""
    rows = Membership.objects.filter(cohort__in=cohorts, agent__in=agents)
    return set(rows.values_list("cohort_id", "agent_id"))


def _signed(agents: Sequence[Agent], cohorts: Sequence[Cohort], shown: set[Cell]) -> str:
    kept = {
        "agents": [agent.pk for agent in agents],
        "cohorts": [cohort.pk for cohort in cohorts],
        "on": sorted(shown),
    }
    return signing.dumps(kept, salt=SALT, compress=True)


def _cells(texts: Sequence[str]) -> set[Cell]:
    """Return the cells that a form names as `cohort-agent`; what is no cell is left out."""
    found = set()
    for text in texts:
        cohort, _, agent = text.partition("-")
        one, other = number_of(cohort), number_of(agent)
        if one is not None and other is not None:
            found.add((one, other))
    return found


def _links(request: HttpRequest) -> dict[str, str]:
    """Return the beginning of the links to other pages of agents and of cohorts."""
    query = request.GET.copy()
    kept = {name: query.pop(name, None) for name in ("p", "c")}
    base = query.urlencode()
    other = {name: f"{name}={value[-1]}" for name, value in kept.items() if value}
    return {
        "agents_link": "&".join(filter(None, (base, other.get("c"), "p="))),
        "cohorts_link": "&".join(filter(None, (base, other.get("p"), "c="))),
    }
