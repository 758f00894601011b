"""Since when the engine uses the cohorts as they are: what each live run goes by now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.core.exceptions import PermissionDenied
from django.db.models import OuterRef, Subquery
from django.template.response import TemplateResponse

from cohorts.gate import read_version
from engine.models import Run, TopologySnapshot

if TYPE_CHECKING:
    from datetime import datetime

    from django.http import HttpRequest, HttpResponse


@dataclass(frozen=True, slots=True, kw_only=True)
class InUse:
    """A live run and the version that it goes by; `is_current` if nothing newer is stored."""

    run: Run
    version: int | None
    since: datetime | None
    is_current: bool


def in_use() -> list[InUse]:
    """Return what each run that is being driven goes by."""
    newest = TopologySnapshot.objects.filter(run=OuterRef("pk")).order_by("-version")
    runs = Run.objects.filter(status__in=("running", "stopping")).select_related("simulation")
    stored = read_version()
    rows = runs.annotate(
        version=Subquery(newest.values("version")[:1]), since=Subquery(newest.values("at")[:1])
    )
    return [
        InUse(
            run=run,
            version=run.version,
            since=run.since,
            is_current=run.version is not None and run.version >= stored,
        )
        for run in rows.order_by("-pk")[:20]
    ]


def in_use_view(request: HttpRequest) -> HttpResponse:
    """Show that alone, for a page that looks again by itself."""
    if not request.user.has_perm("cohorts.view_cohort"):
        raise PermissionDenied
    return TemplateResponse(request, "admin/engine/in_use.html", {"in_use": in_use()})
