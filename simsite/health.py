"""`/healthz`: whether this process lives, and whether it can serve; nothing else is told.

It stands before all other middleware: a probe calls by address and without HTTPS, has no session,
and must not count as a visitor.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from django.db import Error, connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.http import HttpResponse, HttpResponseNotAllowed

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest, HttpResponseBase

LIVE: Final = "/healthz/live"
READY: Final = ("/healthz", "/healthz/ready")


class HealthMiddleware:
    """Answers probes, and hands on everything else."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if request.path_info != LIVE and request.path_info not in READY:
            return self._get_response(request)
        if request.method not in {"GET", "HEAD"}:
            return HttpResponseNotAllowed(["GET", "HEAD"])
        trouble = "" if request.path_info == LIVE else why_not_ready()
        told = HttpResponse(
            f"not ready: {trouble}\n" if trouble else "ok\n",
            status=503 if trouble else 200,
            content_type="text/plain",
        )
        told["Cache-Control"] = "no-store"
        return told


def why_not_ready() -> str:
    """Return why this process cannot serve, or nothing when it can; two small queries."""
    try:
        applied = MigrationRecorder(connection).applied_migrations()
    except Error:
        return "the database does not answer"
    is_behind = any(last not in applied for last in _last_migrations())
    return "migrations are missing, run `manage.py migrate`" if is_behind else ""


@cache
def _last_migrations() -> tuple[tuple[str, str], ...]:
    """Return the app and name of each last migration that this code has."""
    return tuple(MigrationLoader(None).graph.leaf_nodes())
