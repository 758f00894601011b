"""`/metrics`: for whoever has the token, and for people who may view runs."""

from __future__ import annotations

from secrets import compare_digest
from typing import TYPE_CHECKING

from django.conf import settings
from django.http import HttpResponse, HttpResponseNotAllowed
from django.utils import timezone

from engine.metrics import read, render
from engine.metrics.families import CONTENT_TYPE

if TYPE_CHECKING:
    from django.http import HttpRequest


def metrics(request: HttpRequest) -> HttpResponse:
    """Return the metrics as they are now."""
    if request.method not in {"GET", "HEAD"}:
        return HttpResponseNotAllowed(["GET", "HEAD"])
    if not (has_token(request) or request.user.has_perm("engine.view_run")):
        return HttpResponse(
            "Send the token of SIM_METRICS_TOKEN, or log in.\n",
            status=401,
            content_type="text/plain",
            headers={"WWW-Authenticate": "Bearer"},
        )
    return HttpResponse(
        render(read(timezone.now())),
        content_type=CONTENT_TYPE,
        headers={"Cache-Control": "no-store"},
    )


def has_token(request: HttpRequest) -> bool:
    """Tell whether a request brings the token; without one in the settings nothing does."""
    wanted = settings.SIM_METRICS_TOKEN
    given = request.headers.get("Authorization", "").removeprefix("Bearer ")
    return bool(wanted) and compare_digest(given.encode(), wanted.encode())
