"""Two runs side by side: the same figures, what was set differently, and what cannot be compared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.exceptions import PermissionDenied
from django.template.response import TemplateResponse

from engine.admin.pages import frame, number_of, seconds_in_words
from engine.admin.setup.settings import setting_in_words
from engine.export.summary import summarise
from engine.models import Run, TopologySnapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from django.http import HttpRequest, HttpResponse


def compare_view(model_admin: Any, request: HttpRequest) -> HttpResponse:
    """Show two runs beside each other, or the form that chooses them."""
    runs = [_chosen(model_admin, request, name) for name in ("a", "b")]
    context = frame(model_admin, request, "Two runs side by side", a=runs[0], b=runs[1])
    context["choice"] = Run.objects.select_related("simulation").order_by("-pk")[:100]
    if runs[0] is not None and runs[1] is not None:
        context |= _compared(runs[0], runs[1])
    return TemplateResponse(request, "admin/engine/compare.html", context)


def _chosen(model_admin: Any, request: HttpRequest, name: str) -> Run | None:
    key = number_of(request.GET.get(name))
    if key is None:
        if not model_admin.has_view_permission(request):
            raise PermissionDenied
        return None
    found: Run = model_admin.find(request, str(key))
    return found


def _compared(one: Run, other: Run) -> dict[str, object]:
    summaries = [run.summary or summarise(run.pk) for run in (one, other)]
    return {
        "figures": list(_figures(*summaries)),
        "settings": _settings(one, other),
        "cautions": list(_cautions(one, other)),
    }


def _figures(one: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[dict[str, object]]:
    """Yield each figure of both, with the difference where it is a number."""
    names: dict[str, Callable[[Mapping[str, Any]], float]] = {
        "Turns": lambda s: s["turns"],
        "Messages of agents": lambda s: s["messages"],
        "Proposals": lambda s: s["proposals"],
        "Threads without a proposal": lambda s: s["threads"].get("no_proposal", 0),
        "Threads without a conclusion": lambda s: s["threads"].get("timeout", 0),
        "Model calls": lambda s: sum(s["llm_calls"].values()),
        "Tokens read": lambda s: s["input_tokens"],
        "Tokens written": lambda s: s["output_tokens"],
        "Cost in US dollars": lambda s: s["cost_usd"],
        "Refused when storing": lambda s: sum(s["rejected"].values()),
        "Kept back by the cohorts": lambda s: s["gate_filtered"],
    }
    for name, figure in names.items():
        a, b = figure(one), figure(other)
        yield {"name": name, "a": _number(a), "b": _number(b), "difference": f"{b - a:+,.6g}"}
    for name, key in (
        ("Longest wait", "longest_wait_seconds"),
        ("Its bound", "wait_bound_seconds"),
    ):
        yield {"name": name, "a": seconds_in_words(one[key]), "b": seconds_in_words(other[key])}


def _number(value: float) -> str:
    return f"{value:,.6g}" if isinstance(value, float) else f"{value:,}"


def _settings(one: Run, other: Run) -> list[dict[str, object]]:
    """Return what the two were asked for, the differences first."""
    names = [*one.configuration, *(n for n in other.configuration if n not in one.configuration)]
    rows = []
    for name in names:
        label, a = setting_in_words(name, one.configuration.get(name))
        _, b = setting_in_words(name, other.configuration.get(name))
        rows.append({"name": label, "a": a, "b": b, "differs": a != b})
    return sorted(rows, key=lambda row: not row["differs"])


def _cautions(one: Run, other: Run) -> Iterator[str]:
    """Yield why figures may not be comparable."""
    if one.simulation_id != other.simulation_id:
        yield "They are of different simulations: other agents, other channels, another past."
    if one.code_version != other.code_version:
        yield (
            f"They were made by different versions of the program ({one.code_version or 'unknown'} "
            f"and {other.code_version or 'unknown'}): a figure may have been counted otherwise."
        )
    if _llm(one) != _llm(other):
        yield "One was a rehearsal and the other asked a model: tokens and money are not comparable."
    if _cohorts(one) != _cohorts(other):
        yield "Their cohorts were not the same."
    if "running" in {one.status, other.status}:
        yield "One of them is not over yet."


def _llm(run: Run) -> str:
    return str(run.configuration.get("llm", ""))


def _cohorts(run: Run) -> object:
    rows = TopologySnapshot.objects.filter(run=run).order_by("-version")
    return rows.values_list("cohorts", flat=True).first()
