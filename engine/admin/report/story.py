"""What happened in a run, for its report: sentences, fairness, who talked with whom, what it took.

Everything is summed up by the database, and lists are cut: a run of a hundred thousand turns costs a
page no more than a short one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.db.models import Avg, Count, F, Max, Q, Sum

from engine.admin.pages import seconds_in_words
from engine.core.prices import in_usd
from engine.models import Decision, LlmCall, Message, Thread, TopologySnapshot, Turn

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.models import Run

SHOWN: Final = 100
PAIRS_SHOWN: Final = 50
_OUTCOMES: Final = {
    "proposal": "proposal",
    "no_proposal": "without one",
    "timeout": "no conclusion",
    "lost": "could not go on",
}


def story(run: Run, agents: Sequence[Mapping[str, Any]], *, is_cut: bool) -> dict[str, object]:
    """Return what the report of a run shows beside its counters."""
    return {
        "sentences": _sentences(run),
        "fairness": fairness(run, agents, is_cut=is_cut),
        "pairs": pairs(run),
        "usage": usage(run),
        "gate": _gate(run),
    }


def _sentences(run: Run) -> list[str]:
    """Return in plain words what happened."""
    turns = Turn.objects.filter(run=run).aggregate(
        n=Count("pk"), agents=Count("agent", distinct=True)
    )
    said = Message.objects.filter(simulation=run.simulation_id, run=run)
    counts = said.aggregate(
        roots=Count("pk", filter=Q(root__isnull=True, is_bot=True)),
        answers=Count("pk", filter=Q(root__isnull=False, is_bot=True)),
        people=Count("pk", filter=Q(is_bot=False)),
    )
    ended = dict(
        Decision.objects.filter(run=run).order_by().values_list("outcome").annotate(n=Count("pk"))
    )
    took = None
    if run.started_at and run.finished_at:
        took = (run.finished_at - run.started_at).total_seconds()
    sentences = [
        f"{_n(turns['agents'], 'agent')} took {_n(turns['n'], 'turn')} in {seconds_in_words(took)}.",
        (
            f"They wrote {_n(counts['roots'], 'post')} and {_n(counts['answers'], 'answer')}; people "
            f"wrote {_n(counts['people'], 'message')}."
        ),
    ]
    n_ended = sum(ended.values())
    if n_ended:
        told = ", ".join(
            f"{ended[name]} {words}" for name, words in _OUTCOMES.items() if name in ended
        )
        sentences.append(f"{_n(n_ended, 'thread')} came to an end: {told}.")
    else:
        sentences.append("No thread came to an end.")
    return sentences


def fairness(run: Run, agents: Sequence[Mapping[str, Any]], *, is_cut: bool) -> dict[str, object]:
    """Return the extremes of turns and waits; `agents` are those of `turns_per_agent`."""
    if not agents:
        return {}
    least = agents[-1]
    worst = min(agents, key=lambda row: (-row["longest"], row["agent__slug"]))
    if is_cut:
        each = Turn.objects.filter(run=run).order_by().values("agent__slug")
        least = each.annotate(n_turns=Count("pk")).order_by("n_turns", "agent__slug")[0]
        worst = each.annotate(longest=Max("waited_seconds")).order_by("-longest", "agent__slug")[0]
    n_turns = sum(row["n_turns"] for row in agents)
    waited = sum(row["n_turns"] * row["mean"] for row in agents)
    return {
        "most": agents[0],
        "least": least,
        "worst": worst["agent__slug"],
        "longest": seconds_in_words(worst["longest"]),
        "mean_wait": seconds_in_words(waited / n_turns),
    }


def pairs(run: Run) -> Sequence[Mapping[str, Any]]:
    """Return who came to the end of how many threads with whom, the busiest pairs first."""
    rows = (
        Decision.objects.filter(run=run, partner__isnull=False)
        .order_by()
        .values("opener__slug", "partner__slug")
        .annotate(n=Count("pk"), n_proposals=Count("pk", filter=Q(outcome="proposal")))
    )
    both: dict[tuple[str, str], list[int]] = {}
    for row in rows[:5_000]:
        pair = (str(row["opener__slug"]), str(row["partner__slug"]))
        kept = both.setdefault((min(pair), max(pair)), [0, 0])
        kept[0] += row["n"]
        kept[1] += row["n_proposals"]
    found = sorted(both.items(), key=lambda item: (-item[1][0], item[0]))
    return [
        {"one": one, "other": other, "n": n, "n_proposals": n_proposals}
        for (one, other), (n, n_proposals) in found[:PAIRS_SHOWN]
    ]


def usage(run: Run) -> list[tuple[str, Sequence[Mapping[str, Any]]]]:
    """Return calls, tokens and money by purpose, model and agent."""
    calls = LlmCall.objects.filter(run=run)
    return [
        (kind, _usage_by(calls, column))
        for kind, column in (("Purpose", "phase"), ("Model", "model"), ("Agent", "agent__slug"))
    ]


def _usage_by(calls: Any, column: str) -> Sequence[Mapping[str, Any]]:
    rows = (
        calls.order_by()
        .values(name=F(column))
        .annotate(
            n=Count("pk"),
            n_failed=Count("pk", filter=~Q(error="")),
            read=Sum("input_tokens"),
            cached=Sum("cache_read_tokens"),
            written=Sum("output_tokens"),
            cost=Sum("cost_nano_usd"),
            seconds=Avg("latency_seconds"),
            n_unpriced=Count("pk", filter=Q(state="settled", cost_nano_usd__isnull=True)),
        )
    )
    return [
        {
            **row,
            "name": row["name"] or "no answer yet, or none",
            "cost": f"{in_usd(row['cost'] or 0)}{_unpriced(row['n_unpriced'])}",
            "seconds": seconds_in_words(row["seconds"]),
        }
        for row in rows.order_by("-n", "name")[:SHOWN]
    ]


def _unpriced(n: int) -> str:
    return f", {n} unpriced" if n else ""


def _gate(run: Run) -> dict[str, object]:
    """Return what the cohorts did: kept back, let finish, and in how many versions."""
    grandfathered = Decision.objects.filter(run=run, grandfathered_at__isnull=False).count()
    still = Thread.objects.filter(
        simulation=run.simulation_id, closed_seq__isnull=True, grandfathered_at__isnull=False
    ).count()
    return {
        "kept": Turn.objects.filter(run=run).aggregate(n=Sum("gate_filtered"))["n"] or 0,
        "grandfathered": grandfathered + still,
        "n_versions": TopologySnapshot.objects.filter(run=run).count(),
    }


def _n(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'' if n == 1 else 's'}"
