"""What a proposal rests on: its thread, the profiles and cohorts of then, the models, and its cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.db.models import Count, Sum

from engine.admin.text import show_unseen
from engine.core.prices import in_usd
from engine.models import Decision, LlmCall, Message, Turn

if TYPE_CHECKING:
    from engine.models import Proposal

MESSAGES_SHOWN: Final = 6
CHARACTERS: Final = 300


def rests_on(proposal: Proposal) -> dict[str, Any]:
    """Return what the page of a proposal tells beside its text; a few queries, whatever its thread."""
    cycle = Decision.objects.filter(thread=proposal.thread_id, cycle=proposal.cycle).first()
    said = Message.objects.filter(root=proposal.thread_id).select_related("author")
    newest = list(said.order_by("-ordinal")[:MESSAGES_SHOWN])
    turns = Turn.objects.filter(
        simulation=proposal.simulation_id, number__in=[row.turn for row in newest if row.turn]
    )
    versions = dict(turns.order_by("number").values_list("agent__slug", "agent_version"))
    return {
        "topology": None if cycle is None else cycle.topology_version,
        "shared": [] if cycle is None else cycle.shared_cohorts,
        "messages": [
            {"row": row, "text": show_unseen(row.text[:CHARACTERS])} for row in reversed(newest)
        ],
        "versions": sorted(versions.items()),
        "models": _models(proposal, cycle, newest),
    }


def _models(
    proposal: Proposal, cycle: Decision | None, newest: list[Message]
) -> list[dict[str, object]]:
    """Return calls and money by model, of the thread's runs between its opening and its end."""
    runs = {row.run_id for row in newest if row.run_id}
    calls = LlmCall.objects.filter(run__in=runs, thread=_root_seq(proposal))
    if cycle is not None and cycle.opened_at is not None:
        calls = calls.filter(started_at__gte=cycle.opened_at, started_at__lte=proposal.proposed_at)
    rows = calls.order_by().values("model").annotate(n=Count("pk"), cost=Sum("cost_nano_usd"))
    return [
        {"model": row["model"] or "–", "n": row["n"], "cost": in_usd(row["cost"] or 0)}
        for row in rows.order_by("model")
    ]


def _root_seq(proposal: Proposal) -> int | None:
    return Message.objects.values_list("seq", flat=True).get(pk=proposal.thread_id)
