"""The page of a run that is not over: how far it is, what each slot does, what was said last.

All of it comes from a handful of rows, whatever the length of the run: the driver shows a picture of
itself with its lease.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from django.http import HttpResponse
from django.template.response import TemplateResponse
from django.utils import timezone

from engine.admin.live.steering import may_steer, steering_of
from engine.admin.pages import frame, seconds_in_words
from engine.admin.report.costs import may_be_raised, run_caps
from engine.admin.talk.reading import ROOT_CHARACTERS
from engine.admin.text import show_unseen
from engine.core.prices import NANO, in_usd
from engine.models import Alert, Message, Run, RunLease, TopologySnapshot
from engine.turn.line import CIRCUIT_FAILURES

if TYPE_CHECKING:
    from django.contrib.admin import ModelAdmin
    from django.http import HttpRequest

    from engine.admin.live.steering import Steering

NOT_OVER: Final = ("queued", "running", "paused", "stopping")
MESSAGES_SHOWN: Final = 8
ALERTS_SHOWN: Final = 5
#: From this share of a cap on the page warns.
NEAR: Final = 0.8
PHASE_WORDS: Final = {
    "": "begins its turn",
    "remember": "updates what it remembers",
    "scan": "reads what is new and sorts it",
    "prune": "looks through its open threads",
    "reply": "writes in a thread",
    "post": "writes a post",
}


def live_page(model_admin: ModelAdmin[Any], request: HttpRequest, run: Run) -> HttpResponse:
    """Show a run that is not over, in parts that look again by themselves."""
    context = frame(
        model_admin,
        request,
        f"Run {run.pk} of {run.simulation}",
        run=run,
        may_raise=may_steer(request) and may_be_raised(run),
        **_acts(request, run),
        **now_of(run),
    )
    return TemplateResponse(request, "admin/engine/run_live.html", context)


def part_view(model_admin: Any, request: HttpRequest, run_id: int, part: str) -> HttpResponse:
    """Show one part of that page: `now`, what goes on, or `acts`, what may be asked."""
    run = model_admin.find(request, str(run_id))
    context = _acts(request, run) if part == "acts" else now_of(run)
    template = f"admin/engine/run_{part}.html"
    return TemplateResponse(request, template, {"run": run, **context})


def _acts(request: HttpRequest, run: Run) -> dict[str, object]:
    return {"steering": steering_of(run), "may_steer": may_steer(request)}


def now_of(run: Run) -> dict[str, object]:
    """Return what goes on in a run, from what its driver shows."""
    picture = RunLease.objects.filter(run=run).values_list("counters", flat=True).first() or {}
    steering = steering_of(run)
    caps = _caps(run, picture)
    return {
        "is_over": run.status not in NOT_OVER,
        "shown_at": _moment(picture.get("at")),
        "n_slots": run.configuration.get("concurrent_turns"),
        "facts": _facts(run, picture),
        "caps": caps,
        "slots": _slots(run, picture),
        "latest": _latest(run),
        "warnings": _warnings(run, picture, steering, caps),
    }


def _facts(run: Run, picture: dict[str, Any]) -> list[tuple[str, object]]:
    """Return the counters; of a run that nobody drives those of its last pause."""
    kept = run.summary or {}
    threads = picture.get("ended_threads", kept.get("threads", {}))
    n_open = picture.get("open_threads", threads.get("open", 0))
    calls = picture.get("calls", sum(kept.get("llm_calls", {}).values()))
    began = run.started_at
    return [
        (
            "Going on for",
            seconds_in_words((timezone.now() - began).total_seconds() if began else None),
        ),
        ("Turns taken", picture.get("turns", kept.get("turns", 0))),
        ("Messages", picture.get("messages", kept.get("messages", 0))),
        ("Model calls", calls),
        ("Spent", in_usd(_spent(run, picture))),
        ("On their way now", picture.get("calls_in_flight", 0)),
        ("Open threads", n_open),
        ("Proposals", threads.get("proposal", 0)),
        ("Agents that wait for a slot", picture.get("ready", 0)),
        ("Kept back by the cohorts", picture.get("kept_back", kept.get("gate_filtered", 0))),
    ]


def _caps(run: Run, picture: dict[str, Any]) -> list[dict[str, object]]:
    """Return each limit of a run with how much of it is used."""
    kept, caps = run.summary or {}, run_caps(run)
    calls = picture.get("calls", sum(kept.get("llm_calls", {}).values()))
    turns = picture.get("turns", kept.get("turns", 0))
    found = (
        ("Money", _spent(run, picture), caps["max_nano_usd"], in_usd),
        ("Model calls", calls, caps["max_calls"], "{:,}".format),
        ("Turns", turns, run.configuration.get("max_turns"), "{:,}".format),
    )
    return [
        {
            "name": name,
            "used": words(used),
            "cap": words(cap),
            "share": min(used / cap, 1.0),
            "per_cent": round(100 * used / cap),
        }
        for name, used, cap, words in found
        if cap
    ]


def _spent(run: Run, picture: dict[str, Any]) -> int:
    kept = (run.summary or {}).get("cost_usd", 0)
    return int(picture.get("spent_nano_usd", round(kept * NANO)))


def _slots(run: Run, picture: dict[str, Any]) -> list[dict[str, object]]:
    """Return the turns in flight, with the roots of their threads."""
    turns, now = picture.get("slots", []), _moment(picture.get("at"))
    seqs = [turn["thread"] for turn in turns if turn["thread"] is not None]
    roots = Message.objects.filter(simulation=run.simulation_id, seq__in=seqs)
    root_of = dict(roots.values_list("seq", "pk")) if seqs else {}
    return [
        {
            **turn,
            "does": PHASE_WORDS.get(turn["phase"], turn["phase"]),
            "root": root_of.get(turn["thread"]),
            "for_so_long": _so_long(_moment(turn["since"]), now),
        }
        for turn in turns
    ]


def _so_long(since: datetime | None, now: datetime | None) -> str:
    return seconds_in_words((now - since).total_seconds() if since and now else None)


def _latest(run: Run) -> list[dict[str, object]]:
    rows = Message.objects.filter(simulation=run.simulation_id, seq__isnull=False)
    newest = rows.select_related("author", "channel").order_by("-seq")[:MESSAGES_SHOWN]
    return [
        {
            "message": row,
            "text": show_unseen(row.text[:ROOT_CHARACTERS]),
            "is_cut": len(row.text) > ROOT_CHARACTERS,
            "root": row.root_id or row.pk,
        }
        for row in newest
    ]


def _warnings(
    run: Run, picture: dict[str, Any], steering: Steering, caps: list[dict[str, Any]]
) -> list[str]:
    found = []
    if steering.state.state in {"stalled", "dead"}:
        found.append(steering.state.sentence)
    n_failed = picture.get("failures_in_row", 0)
    if n_failed:
        times = "once" if n_failed == 1 else f"{n_failed} times in a row"
        found.append(
            f"The model failed {times}; after {CIRCUIT_FAILURES} times in a row the run pauses."
        )
    found += [
        f"{cap['name']}: {cap['used']} of {cap['cap']} ({cap['per_cent']} %) are used; at the cap "
        "the run pauses or ends."
        for cap in caps
        if cap["share"] >= NEAR
    ]
    newest = TopologySnapshot.objects.filter(run=run).order_by("-version")
    if newest.values_list("verdict", flat=True).first() == "refused":
        found.append(
            "The cohorts are ignored: under the policy isolated nobody who takes part is in one, "
            "so nobody could deal with anybody."
        )
    alerts = Alert.objects.filter(run=run).values_list("sentence", flat=True)
    return found + list(alerts[:ALERTS_SHOWN])


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
