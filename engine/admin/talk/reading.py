"""Queries of the transcript pages: so many for a page, whatever it holds.

Pages go by `seq` and `ordinal`, which messages keep, and not by how many came before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from django.db.models import OuterRef, Subquery

from engine.models import Decision, Message, Proposal, Thread

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.utils.safestring import SafeString

    from engine.models import Channel

ROOTS_IN_A_PAGE: Final = 25
ANSWERS_IN_A_PAGE: Final = 100
WAITING_AT_MOST: Final = 50
ROOT_CHARACTERS: Final = 1_500


@dataclass(frozen=True, slots=True, kw_only=True)
class RootPage:
    """Roots of a channel, newest first; `older_than` is where the next page begins, if any."""

    waiting: Sequence[Message]
    roots: Sequence[Message]
    older_than: int | None


def read_roots(channel: Channel, *, before: int | None) -> RootPage:
    """Return a page of a channel's roots with a `seq` below `before`, each with `n_places`.

    `n_places` is the last ordinal under a root, or None if nobody has answered.
    """
    roots = Message.objects.filter(
        simulation=channel.simulation_id, channel=channel, root__isnull=True
    ).select_related("author", "addressed", "thread__opener", "thread__partner")
    answers = Message.objects.filter(root=OuterRef("pk"), ordinal__isnull=False)
    last = answers.order_by("-ordinal").values("ordinal")[:1]
    placed = roots.filter(seq__isnull=False).annotate(n_places=Subquery(last)).order_by("-seq")
    if before is not None:
        placed = placed.filter(seq__lt=before)
    found = list(placed[: ROOTS_IN_A_PAGE + 1])
    shown = found[:ROOTS_IN_A_PAGE]
    waiting = roots.filter(seq__isnull=True).order_by("-pk")[:WAITING_AT_MOST]
    return RootPage(
        waiting=[] if before is not None else list(waiting),
        roots=shown,
        older_than=shown[-1].seq if len(found) > len(shown) else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What stands in a thread at one place: a message, or the end of a cycle after it."""

    seq: int
    message: Message | None = None
    decision: Decision | None = None
    html: SafeString | None = None
    mark: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """A root with a page of its answers, how its cycles ended, and what came of them.

    If there are more, `after` is the ordinal to go on after, `until` the `seq` of the next one.
    """

    root: Message
    thread: Thread | None
    messages: list[Message]
    waiting: list[Message]
    decisions: list[Decision]
    proposals: list[Proposal]
    after: int | None
    until: int | None


def read_talk(root: Message, *, after: int | None) -> Talk:
    """Return a thread from the ordinal after `after` on."""
    answers = Message.objects.filter(root=root).select_related("author")
    placed = answers.filter(ordinal__gt=after or 0).order_by("ordinal")
    found = list(placed[: ANSWERS_IN_A_PAGE + 1])
    shown = found[:ANSWERS_IN_A_PAGE]
    is_more = len(found) > len(shown)
    return Talk(
        root=root,
        thread=Thread.objects.filter(pk=root.pk).select_related("opener", "partner").first(),
        messages=shown if after else [root, *shown],
        waiting=list(answers.filter(seq__isnull=True).order_by("pk")[:WAITING_AT_MOST]),
        decisions=list(Decision.objects.filter(thread=root.pk).order_by("cycle")),
        proposals=list(
            Proposal.objects.filter(thread=root.pk)
            .select_related("proposer", "confirmer", "summary")
            .order_by("cycle")
        ),
        after=shown[-1].ordinal if is_more else None,
        until=found[-1].seq if is_more else None,
    )
