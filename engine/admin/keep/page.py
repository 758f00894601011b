"""The page that says what takes space, what is safe to prune, and prunes exactly what was shown."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.contrib import messages
from django.core import signing
from django.core.exceptions import PermissionDenied
from django.db import connection
from django.db.models import Count
from django.http import HttpResponseRedirect
from django.template.response import TemplateResponse
from django.utils import timezone

from engine import runs
from engine.admin.pages import frame
from engine.models import CallText, LlmCall, Message, Run, Simulation, Turn

if TYPE_CHECKING:
    from django.contrib.admin import ModelAdmin
    from django.http import HttpRequest, HttpResponse

SALT: Final = "engine.keep"
GOOD_FOR_SECONDS: Final = 3600
RUNS_SHOWN: Final = 30
#: So many texts go at one click: a page must answer.
AT_ONE_CLICK: Final = 20_000
_TABLES: Final = (
    ("Words of model calls", CallText),
    ("Model calls", LlmCall),
    ("Turns", Turn),
    ("Messages", Message),
)


class KeepForm(forms.Form):
    """What is old enough to go."""

    simulation = forms.ModelChoiceField(
        Simulation.objects.order_by("name"), required=False, empty_label="all simulations"
    )
    days = forms.IntegerField(label="older than (days)", min_value=0, max_value=36_500, initial=30)


def keep_view(model_admin: ModelAdmin[Any], request: HttpRequest) -> HttpResponse:
    """Show space and what would go; a yes to exactly that lets it go."""
    if not request.user.has_perm("engine.view_run"):
        raise PermissionDenied
    may_prune = request.user.has_perm("engine.delete_simulation")
    if request.method == "POST":
        if not may_prune:
            raise PermissionDenied
        return _prune(model_admin, request)
    form = KeepForm(request.GET) if request.GET else KeepForm(initial={"days": 30})
    told: dict[str, object] = {}
    if request.GET and form.is_valid():
        told = _shown(form.cleaned_data["simulation"], form.cleaned_data["days"])
    context = frame(
        model_admin,
        request,
        "Keep and prune",
        form=form,
        may_prune=may_prune,
        tables=[(words, _bytes_of(model)) for words, model in _TABLES],
        whole=_bytes_of(None),
        runs=_runs(),
        **told,
    )
    return TemplateResponse(request, "admin/engine/keep.html", context)


def _shown(simulation: Simulation | None, days: int) -> dict[str, object]:
    """Return how much would go, and what stands for a yes to just that."""
    before = timezone.now() - timedelta(days=days)
    n = runs.prune_texts(simulation, before=before, is_trial=True)
    kept = [None if simulation is None else simulation.pk, before.isoformat(), n]
    return {"n_texts": n, "before": before, "asked": signing.dumps(kept, salt=SALT)}


def _prune(model_admin: ModelAdmin[Any], request: HttpRequest) -> HttpResponse:
    try:
        kept = signing.loads(request.POST.get("asked", ""), salt=SALT, max_age=GOOD_FOR_SECONDS)
    except signing.BadSignature:
        messages.error(request, "What you saw is too old: look again before anything goes.")
        return HttpResponseRedirect(request.path)
    key, moment, _ = kept
    simulation = None if key is None else Simulation.objects.filter(pk=key).first()
    if key is not None and simulation is None:
        messages.error(request, "The simulation is gone: nothing was deleted.")
        return HttpResponseRedirect(request.path)
    before = datetime.fromisoformat(moment)
    n = runs.prune_texts(simulation, before=before, is_trial=False, at_most=AT_ONE_CLICK)
    left = runs.prune_texts(simulation, before=before, is_trial=True)
    where = "all simulations" if simulation is None else str(simulation)
    done = f"The words of {n:,} calls of {where} before {before:%Y-%m-%d %H:%M} are deleted."
    for one in Simulation.objects.all()[:1] if simulation is None else [simulation]:
        model_admin.log_change(request, one, done)
    messages.success(request, f"{done} {f'{left:,} more are left: look again.' if left else ''}")
    return HttpResponseRedirect(request.path)


def _runs() -> list[dict[str, object]]:
    """Return the newest runs with what is kept of each, in one query for each kind of row."""
    rows = list(Run.objects.select_related("simulation").order_by("-pk")[:RUNS_SHOWN])
    keys = [run.pk for run in rows]
    texts = CallText.objects.filter(call__run__in=keys).order_by().values_list("call__run")
    counts = dict(texts.annotate(n=Count("pk")))
    return [
        {
            "run": run,
            "turns": (run.summary or {}).get("turns", "–"),
            "messages": (run.summary or {}).get("messages", "–"),
            "texts": counts.get(run.pk, 0),
        }
        for run in rows
    ]


def _bytes_of(model: Any) -> str:
    """Return how much a table takes, or the whole database, in words; "–" where nobody can tell."""
    table = None if model is None else model._meta.db_table
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            if table is None:
                cursor.execute("SELECT pg_database_size(current_database())")
            else:
                cursor.execute("SELECT pg_total_relation_size(%s::regclass)", [table])
        elif table is None:
            cursor.execute(
                "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
            )
        else:
            return "–"
        (n_bytes,) = cursor.fetchone()
    return f"{n_bytes / 2**20:,.1f} MiB"
