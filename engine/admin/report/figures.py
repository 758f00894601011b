"""The counters of runs as the pages show them.

A run that has ended keeps its summary. One that has not is counted: in one query for a whole list,
and with everything that its rows tell on its own page.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.db.models import (
    Avg,
    Case,
    Count,
    F,
    IntegerField,
    Max,
    OuterRef,
    Q,
    Subquery,
    Sum,
    When,
)
from django.db.models.functions import Coalesce, NullIf

from engine.admin.pages import seconds_in_words
from engine.core.records import Outcome
from engine.export.summary import summarise
from engine.models import Decision, LlmCall, Run, Turn
from engine.models.runs import LIVE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from django.db.models import QuerySet

AGENTS_SHOWN: Final = 200
_UNKNOWN: Final = "–"
_THREAD_WORDS: Final = {
    "open": "open now",
    "proposal": "ended with a proposal",
    "no_proposal": "ended without one",
    "timeout": "came to no conclusion",
    "lost": "could not go on",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ListFigures:
    """What the list of runs shows of one run; `threads` are those that came to an end."""

    turns: int
    llm_calls: int
    threads: int
    proposals: int


def with_counts(runs: QuerySet[Run]) -> QuerySet[Run]:
    """Annotate runs that have not ended with what `list_figures` needs."""
    decisions = Decision.objects.filter(run=OuterRef("pk"))
    return runs.annotate(
        n_turns=_counted(Turn.objects.filter(run=OuterRef("pk"))),
        n_llm_calls=_counted(LlmCall.objects.filter(run=OuterRef("pk"))),
        n_threads=_counted(decisions),
        n_proposals=_counted(decisions.filter(outcome=Outcome.PROPOSAL)),
    )


def list_figures(run: Run) -> ListFigures:
    """Return the counters of a run of `with_counts`."""
    summary = _last_summary(run)
    if summary is None:
        counted: Any = run
        return ListFigures(
            turns=counted.n_turns,
            llm_calls=counted.n_llm_calls,
            threads=counted.n_threads,
            proposals=counted.n_proposals,
        )
    threads: Mapping[str, int] = summary["threads"]
    return ListFigures(
        turns=summary["turns"],
        llm_calls=sum(summary["llm_calls"].values()),
        threads=sum(number for outcome, number in threads.items() if outcome != "open"),
        proposals=summary["proposals"],
    )


def page_figures(run: Run) -> dict[str, object]:
    """Return what the page of a run shows: pairs of a name in words and its figure, in groups."""
    summary = _last_summary(run) or summarise(run.pk)
    utilisation = summary["slot_utilisation"]
    return {
        "counters": [
            ("Turns", summary["turns"]),
            ("Messages of agents", summary["messages"]),
            ("Proposals", summary["proposals"]),
            ("Model calls", sum(summary["llm_calls"].values())),
            ("Tokens read", summary["input_tokens"]),
            ("Tokens written", summary["output_tokens"]),
            ("Cost", _cost(run, summary["cost_usd"])),
            ("Entries kept back by the gate", summary["gate_filtered"]),
            ("Slots in use", _UNKNOWN if utilisation is None else f"{utilisation:.0%}"),
        ],
        "longest_wait": seconds_in_words(summary["longest_wait_seconds"]),
        "wait_bound": seconds_in_words(summary["wait_bound_seconds"]),
        "threads": [
            (words, summary["threads"].get(name, 0)) for name, words in _THREAD_WORDS.items()
        ],
        "llm_calls": sorted(summary["llm_calls"].items()),
        "rejected": sorted(summary["rejected"].items(), key=lambda item: (-item[1], item[0])),
    }


def _cost(run: Run, usd: float) -> str:
    """Return what was billed as far as it is known."""
    unpriced = LlmCall.objects.filter(run=run, cost_nano_usd__isnull=True)
    n_unpriced = unpriced.filter(state=LlmCall.State.SETTLED).count()
    return f"${usd:,.4f}{f', and {n_unpriced} unpriced calls' if n_unpriced else ''}"


def turns_per_agent(run: Run) -> tuple[Sequence[Mapping[str, Any]], bool]:
    """Return the agents of a run with most turns first, and whether there are more of them."""
    rows = (
        Turn.objects.filter(run=run)
        .order_by()
        .values("agent__slug")
        .annotate(
            n_turns=Count("pk"),
            n_nothing=Count("pk", filter=Q(outcome="nothing")),
            n_llm_calls=Sum("llm_calls"),
            n_committed=Sum("committed"),
            n_filtered=Sum("gate_filtered"),
            longest=Max("waited_seconds"),
            mean=Avg("waited_seconds"),
            share=Max(F("waited_seconds") / NullIf(F("wait_bound_seconds"), 0.0)),
        )
        .order_by("-n_turns", "agent__slug")[: AGENTS_SHOWN + 1]
    )
    found: list[Mapping[str, Any]] = [
        {
            **row,
            "longest_wait": seconds_in_words(row["longest"]),
            "mean_wait": seconds_in_words(row["mean"]),
            "of_bound": _UNKNOWN if row["share"] is None else f"{row['share']:.1%}",
        }
        for row in rows
    ]
    return found[:AGENTS_SHOWN], len(found) > AGENTS_SHOWN


def _counted(rows: QuerySet[Any, Any]) -> Case:
    """Return the number of the rows of a run, counted only if it has not ended."""
    counts = rows.order_by().values("run").annotate(n=Count("pk")).values("n")
    number = Coalesce(Subquery(counts), 0)
    goes_on = Q(summary__isnull=True) | Q(status__in=LIVE)
    return Case(When(goes_on, then=number), output_field=IntegerField())


def _last_summary(run: Run) -> Mapping[str, Any] | None:
    """Return the summary that a run ended with; what a paused one stored is soon out of date."""
    return None if run.status in LIVE else run.summary
