"""The pictures of a report, each a file of its own: the policy lets no drawing into a page.

Each has a title, named axes with units, and a legend where there is more than one kind; the page has
the table behind it.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from django.db.models import Count, Max, Sum
from django.http import Http404, HttpResponse
from django.template.response import TemplateResponse

from engine.core.prices import NANO
from engine.models import Decision, LlmCall, Turn

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from django.http import HttpRequest

    from engine.models import Run

BARS: Final = 30
TURNS_DRAWN: Final = 1_500
_WIDTH: Final = 900
_ROW: Final = 26
_COLOURS: Final = {
    "worked": "#205067",
    "nothing": "#c9d4da",
    "skipped": "#9fb4bf",
    "backoff": "#c77d11",
    "failed": "#9b1c1c",
    "cancelled": "#8a5a83",
    "interrupted": "#6b6b6b",
    "running": "#3f8f5b",
}


def chart_view(model_admin: Any, request: HttpRequest, run_id: int, chart: str) -> HttpResponse:
    """Draw one picture of a run."""
    run = model_admin.find(request, str(run_id))
    if chart == "timeline":
        return TemplateResponse(
            request, "admin/engine/timeline.svg", timeline(run), content_type="image/svg+xml"
        )
    if chart not in CHARTS:
        raise Http404
    return HttpResponse(CHARTS[chart](run), content_type="image/svg+xml")


def _turns(run: Run) -> bytes:
    rows = _of_agents(Turn.objects.filter(run=run)).annotate(n=Count("pk"), said=Sum("committed"))
    top = list(rows.order_by("-n", "agent__slug")[:BARS])
    return _bars(
        f"Turns of agents in run {run.pk}" + _first(len(top)),
        [row["agent__slug"] for row in top],
        {"turns": [row["n"] for row in top], "stored effects": [row["said"] for row in top]},
        across="turns and stored effects (number)",
    )


def _waits(run: Run) -> bytes:
    rows = _of_agents(Turn.objects.filter(run=run)).annotate(longest=Max("waited_seconds"))
    top = list(rows.order_by("-longest", "agent__slug")[:BARS])
    return _bars(
        f"Longest waits for a turn in run {run.pk}" + _first(len(top)),
        [row["agent__slug"] for row in top],
        {"longest wait": [round(row["longest"], 3) for row in top]},
        across="seconds",
    )


def _threads(run: Run) -> bytes:
    rows = Decision.objects.filter(run=run).order_by("outcome").values("outcome")
    found = {row["outcome"]: row["n"] for row in rows.annotate(n=Count("pk"))}
    return _bars(
        f"Threads that run {run.pk} brought to an end",
        [name.replace("_", " ") for name in found],
        {"threads": list(found.values())},
        across="threads (number)",
    )


def _calls(run: Run) -> bytes:
    rows = LlmCall.objects.filter(run=run).order_by("phase").values("phase")
    found = list(
        rows.annotate(n=Count("pk"), read=Sum("input_tokens"), written=Sum("output_tokens"))
    )
    return _bars(
        f"Model calls of run {run.pk} by purpose",
        [row["phase"] for row in found],
        {"calls": [row["n"] for row in found]},
        across="calls (number)",
    )


def _money(run: Run) -> bytes:
    rows = _of_agents(LlmCall.objects.filter(run=run)).annotate(cost=Sum("cost_nano_usd"))
    top = list(rows.order_by("-cost", "agent__slug")[:BARS])
    return _bars(
        f"Money spent by agents in run {run.pk}" + _first(len(top)),
        [row["agent__slug"] for row in top],
        {"US dollars": [round((row["cost"] or 0) / NANO, 6) for row in top]},
        across="US dollars",
    )


CHARTS: Final[dict[str, Callable[[Run], bytes]]] = {
    "turns": _turns,
    "waits": _waits,
    "threads": _threads,
    "calls": _calls,
    "money": _money,
}


def timeline(run: Run) -> dict[str, object]:
    """Return the first turns of a run, each in the lowest slot that was free, as boxes to draw."""
    rows: list[tuple[int, str, datetime, datetime, str]] = list(
        Turn.objects.filter(run=run, finished_at__isnull=False)
        .order_by("number")
        .values_list("number", "agent__slug", "selected_at", "finished_at", "outcome")[:TURNS_DRAWN]  # type: ignore[arg-type]
    )
    if not rows:
        return {"run": run, "boxes": [], "width": _WIDTH, "height": 60}
    begin = min(row[2] for row in rows)
    seconds = max((max(row[3] for row in rows) - begin).total_seconds(), 0.001)
    boxes, n_slots = _boxes(rows, begin, seconds)
    used = {row[4] for row in rows}
    return {
        "run": run,
        "boxes": boxes,
        "slots": [{"name": i + 1, "y": 40 + _ROW * i} for i in range(n_slots)],
        "ticks": [
            {"x": round(60 + (_WIDTH - 80) * i / 5, 1), "says": f"{seconds * i / 5:.3g} s"}
            for i in range(6)
        ],
        "axis": 46 + _ROW * n_slots,
        "legend": [
            {"name": name, "fill": fill, "x": 60 + 105 * i}
            for i, (name, fill) in enumerate((n, f) for n, f in _COLOURS.items() if n in used)
        ],
        "legend_y": 78 + _ROW * n_slots,
        "width": _WIDTH,
        "height": 110 + _ROW * n_slots,
        "is_cut": len(rows) == TURNS_DRAWN,
    }


def _boxes(
    rows: Sequence[tuple[int, str, datetime, datetime, str]], begin: datetime, seconds: float
) -> tuple[list[dict[str, object]], int]:
    """Return a box for each turn, in the lowest slot that was free, and how many slots that are."""
    ends: list[float] = []
    boxes: list[dict[str, object]] = []
    for number, slug, selected_at, finished_at, outcome in rows:
        start, end = (selected_at - begin).total_seconds(), (finished_at - begin).total_seconds()
        slot = next((i for i, busy in enumerate(ends) if busy <= start), len(ends))
        ends[slot : slot + 1] = [end]
        boxes.append(
            {
                "x": round(60 + (_WIDTH - 80) * start / seconds, 2),
                "width": round(max((_WIDTH - 80) * (end - start) / seconds, 0.6), 2),
                "y": 40 + _ROW * slot,
                "fill": _COLOURS.get(outcome, "#6b6b6b"),
                "says": f"turn {number}, {slug}, {outcome}, {end - start:.2f} s",
            }
        )
    return boxes, len(ends)


def _of_agents(rows: Any) -> Any:
    return rows.order_by().values("agent__slug")


def _first(n: int) -> str:
    return f" (the first {BARS})" if n == BARS else ""


@cache
def _pygal() -> Any:
    """Return the library of charts; only who looks at a picture pays for its import.

    Its hook for plug-ins of its own is older than this Python, which warns of it at every import.
    """
    found = import_module("pygal")
    sys.meta_path[:] = [one for one in sys.meta_path if type(one).__module__ != found.__name__]
    return found


def _bars(
    title: str, names: Sequence[str], series: dict[str, Sequence[float]], *, across: str
) -> bytes:
    """Draw lying bars, so that long names can be read."""
    pygal = _pygal()
    chart = pygal.HorizontalBar(
        title=title,
        x_title=across,
        width=_WIDTH,
        height=140 + 26 * max(len(names), 1) * len(series),
        js=(),
        no_prefix=True,
        pretty_print=False,
        show_legend=len(series) > 1,
        legend_at_bottom=True,
        print_values=True,
        truncate_label=40,
        no_data_text="nothing to show",
        style=pygal.style.Style(
            background="#ffffff",
            plot_background="#ffffff",
            colors=("#205067", "#c77d11"),
            value_colors=("#ffffff", "#222222"),
        ),
    )
    chart.x_labels = list(reversed(names))  # they are drawn from below
    for name, values in series.items():
        chart.add(name, list(reversed(values)))
    drawn: bytes = chart.render()
    return drawn
