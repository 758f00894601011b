"""The page that loads agents from a file: first what would change, then a yes, whole or not at all."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import Http404, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse

from cohorts.importer import find_conflicts, import_roster
from cohorts.roster import Roster, RosterAgent, RosterChannel, RosterCohort
from engine.admin.agent.files import EXPORTS, pack_agents, read_upload
from engine.admin.pages import frame, person_of

if TYPE_CHECKING:
    from django.contrib.admin import ModelAdmin
    from django.http import FileResponse, HttpRequest, HttpResponse

    from cohorts.importer import Imported
    from cohorts.tables import Problem

KEPT: Final = "roster_to_load"
PROBLEMS_SHOWN: Final = 200


class UploadForm(forms.Form):
    """The file with the agents."""

    file = forms.FileField(label="File")


def load_view(model_admin: ModelAdmin[Any], request: HttpRequest) -> HttpResponse:
    """Take a file and show what it would change; a yes to exactly that loads it."""
    may = request.user.has_perms
    if not may(["cohorts.add_agent", "cohorts.change_agent", "cohorts.change_cohort"]):
        raise PermissionDenied
    if request.method == "POST" and "yes" in request.POST:
        return _loaded(model_admin, request)
    form = UploadForm(request.POST, request.FILES) if request.method == "POST" else UploadForm()
    told: dict[str, object] = {}
    if request.method == "POST" and form.is_valid():
        roster, problems = read_upload(form.cleaned_data["file"])
        problems = problems or find_conflicts(roster)
        told = _problems(problems) if problems else _preview(request, roster)
    return _page(model_admin, request, form=form, **told)


def _loaded(model_admin: ModelAdmin[Any], request: HttpRequest) -> HttpResponse:
    """Load what was shown, if it still does what was shown."""
    kept = request.session.get(KEPT)
    if kept is None or request.POST["yes"] != kept["asked"]:
        messages.error(request, "What you saw is not kept any more: choose the file again.")
        return HttpResponseRedirect(request.path)
    roster = _from_kept(kept["roster"])
    if problems := find_conflicts(roster):
        return _page(model_admin, request, form=UploadForm(), **_problems(problems))
    with transaction.atomic():
        imported = import_roster(roster, who=person_of(request))
        if _counts(imported) != kept["counts"]:
            transaction.set_rollback(True)
            messages.warning(request, "Something changed meanwhile. Nothing is loaded: look again.")
            told = None
        else:
            told = imported
    if told is None:
        return _page(model_admin, request, form=UploadForm(), **_preview(request, roster))
    del request.session[KEPT]
    messages.success(request, f"Loaded: {'; '.join(_in_words(imported))}.")
    return HttpResponseRedirect(reverse("admin:cohorts_agent_changelist"))


def _preview(request: HttpRequest, roster: Roster) -> dict[str, object]:
    """Play the load, and keep the roster with what it did until somebody says yes."""
    with transaction.atomic():
        imported = import_roster(roster, who=person_of(request))
        transaction.set_rollback(True)
    counts = _counts(imported)
    asked = f"{len(roster.agents)}-{hash_of(counts)}"
    request.session[KEPT] = {"roster": asdict(roster), "counts": counts, "asked": asked}
    return {"counts": _in_words(imported), "asked": asked, "changes": imported.has_changed}


def hash_of(counts: dict[str, int]) -> str:
    return "-".join(f"{name}.{n}" for name, n in sorted(counts.items())).replace(" ", ".")


def _counts(imported: Imported) -> dict[str, int]:
    return {f"{kind} {happened}": n for (kind, happened), n in imported.counts.items() if n}


def _in_words(imported: Imported) -> list[str]:
    return [f"{n} {kind} {happened}" for (kind, happened), n in imported.counts.items() if n]


def _problems(problems: list[Problem]) -> dict[str, object]:
    return {"problems": problems[:PROBLEMS_SHOWN], "n_problems": len(problems)}


def _from_kept(kept: dict[str, Any]) -> Roster:
    return Roster(
        agents=tuple(RosterAgent(**one) for one in kept["agents"]),
        cohorts=tuple(
            RosterCohort(**{**one, "members": tuple(one["members"])}) for one in kept["cohorts"]
        ),
        channels=tuple(
            RosterChannel(**{**one, "members": tuple(one["members"])}) for one in kept["channels"]
        ),
    )


def _page(model_admin: ModelAdmin[Any], request: HttpRequest, **told: object) -> HttpResponse:
    context = frame(model_admin, request, "Load agents from a file", **told)
    return TemplateResponse(request, "admin/engine/load_agents.html", context)


def export_view(model_admin: ModelAdmin[Any], request: HttpRequest, kind: str) -> FileResponse:
    """Send all agents as a file."""
    if not request.user.has_perms(["cohorts.view_agent", "cohorts.change_agent"]):
        raise PermissionDenied
    if kind not in EXPORTS:
        raise Http404
    return pack_agents(kind)
