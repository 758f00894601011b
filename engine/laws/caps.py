"""Laws on what an agent and a run may spend: posts, proposals, calls, money."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import datetime
from heapq import heappop, heappush
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from engine.laws.law import Breach, Law

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.export.schema import LlmCallRow, MessageRow, RunRow
    from engine.laws.export import Export


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """A new public root by an agent that people had mentioned `n_calls` times before.

    Each call may excuse one root from the caps; the export does not say which.
    """

    message: MessageRow
    author: str
    run: RunRow
    n_calls: int


def _posts(export: Export) -> Iterator[Post]:
    """Yield the agents' public roots in order."""
    calls: Counter[str] = Counter()
    for message in export.log:
        if not message.is_bot:
            calls.update(export.mentioned(message.text))
        run = export.run_by_id.get(message.run or 0)
        if message.author is None or message.ordinal != 1 or run is None:
            continue
        if message.visibility == "public":
            n_calls = calls[message.author]
            yield Post(message=message, author=message.author, run=run, n_calls=n_calls)


def daily_posts(export: Export) -> Iterator[Breach]:
    n_posts: Counter[tuple[str, str]] = Counter()
    for post in _posts(export):
        settings = post.run.configuration
        day = post.message.committed_at.astimezone(ZoneInfo(settings.time_zone)).date()
        key = (post.author, day.isoformat())
        n_posts[key] += 1
        turn = export.turn_by_number[post.message.turn or 0]
        own = export.limit(turn, "daily_posts")
        limit = settings.daily_posts if own is None else own
        if n_posts[key] > limit + post.n_calls:
            yield Breach(
                f"seq {post.message.seq}",
                f"it is post {n_posts[key]} of {post.author} on {key[1]} and {limit} are allowed.",
            )


def unreviewed_proposals(export: Export) -> Iterator[Breach]:
    coming = _proposals_by_agent(export)
    waiting: dict[str, list[tuple[datetime, int]]] = defaultdict(list)
    n_at_cap: Counter[str] = Counter()
    for post in _posts(export):
        seq, at = post.message.seq or 0, post.message.committed_at
        new, pending = coming.get(post.author, []), waiting[post.author]
        while new and new[-1][0] < seq:
            heappush(pending, new.pop()[1])
        while pending and pending[0][0] <= at:
            heappop(pending)
        limit = post.run.configuration.unreviewed_proposals
        n_threads = len({thread for _, thread in pending})
        n_at_cap[post.author] += n_threads >= limit
        if n_threads >= limit and n_at_cap[post.author] > post.n_calls:
            yield Breach(
                f"seq {seq}",
                f"{post.author} posts while {n_threads} of its proposals wait for a review "
                f"and {limit} stop it.",
            )


def _proposals_by_agent(export: Export) -> dict[str, list[tuple[int, tuple[datetime, int]]]]:
    """Return closing seq, end of waiting and thread of each agent's proposals, the earliest last.

    A review on a virtual clock cannot be placed in time: its proposal is left out.
    """
    closed = {(row.id, row.cycle): row.closed_seq for row in export.threads}
    virtual = any(run.configuration.clock == "virtual" for run in export.runs)
    never = datetime.max.replace(tzinfo=ZoneInfo("UTC"))
    found: dict[str, list[tuple[int, tuple[datetime, int]]]] = defaultdict(list)
    for proposal in export.proposals:
        seq = closed[proposal.thread, proposal.cycle]
        if seq is None or (virtual and proposal.reviewed_at is not None):
            continue
        for agent in proposal.agents:
            found[agent].append((seq, (proposal.reviewed_at or never, proposal.thread)))
    for of_agent in found.values():
        of_agent.sort(reverse=True)
    return found


def call_caps(export: Export) -> Iterator[Breach]:
    n_run: Counter[int] = Counter()
    n_agent: Counter[tuple[int, str]] = Counter()
    own: dict[tuple[int, str], int] = {}
    for call in export.llm_calls:
        key = (call.run, call.agent)
        n_run[call.run] += 1
        n_agent[key] += 1
        limit = export.limit(export.turn_by_number[call.turn], "max_calls")
        if limit is not None:
            own[key] = max(own.get(key, 0), limit)
    for run, n_calls in n_run.items():
        cap = export.run_by_id[run].configuration.max_calls
        if cap is not None and n_calls > cap:
            yield Breach(f"run {run}", f"it made {n_calls} calls and max_calls is {cap}.")
    for (run, agent), cap in own.items():
        if n_agent[run, agent] > cap:
            yield Breach(
                f"run {run}", f"{agent} made {n_agent[run, agent]} calls and its own cap is {cap}."
            )


def money_caps(export: Export) -> Iterator[Breach]:
    spent: Counter[int] = Counter()
    for line, call in enumerate(export.llm_calls, start=1):
        spent[call.run] += _promised(call)
        if call.cost_usd is not None and call.cost_usd > call.reserved_usd:
            yield Breach(f"line {line}", "it cost more than was reserved for it.")
        capped = export.run_by_id[call.run].configuration.max_usd is not None
        if capped and call.cost_usd is None and not call.reserved_usd:
            yield Breach(f"line {line}", "its model has no price, and its run has a money cap.")
    for run, nano_usd in spent.items():
        cap = export.run_by_id[run].configuration.max_usd
        if cap is not None and nano_usd > cap:
            yield Breach(
                f"run {run}", f"it spent {nano_usd / 1e9:.9f} USD and max_usd is {cap / 1e9:.9f}."
            )


def own_money_caps(export: Export) -> Iterator[Breach]:
    """Check agents' own caps; one that was lowered meanwhile is judged by the highest."""
    spent: Counter[tuple[int, str]] = Counter()
    own: dict[tuple[int, str], int] = {}
    for call in export.llm_calls:
        key = (call.run, call.agent)
        spent[key] += _promised(call)
        limit = export.limit(export.turn_by_number[call.turn], "max_nano_usd")
        if limit is not None:
            own[key] = max(own.get(key, 0), limit)
    for (run, agent), cap in own.items():
        if spent[run, agent] > cap:
            yield Breach(
                f"run {run}",
                f"{agent} spent {spent[run, agent] / 1e9:.9f} USD and its own cap is "
                f"{cap / 1e9:.9f}.",
            )


def _promised(call: LlmCallRow) -> int:
    """Return what a call cost, or what is reserved for one on its way."""
    return call.reserved_usd if call.cost_usd is None else call.cost_usd


def attempts(export: Export) -> Iterator[Breach]:
    """Check that attempt n of a request has an attempt n - 1; tool rounds begin at 1 again."""
    n_calls: Counter[tuple[int, int, str, int | None, int]] = Counter(
        _attempt(call, call.attempt) for call in export.llm_calls
    )
    for line, call in enumerate(export.llm_calls, start=1):
        before = _attempt(call, call.attempt - 1)
        if call.attempt < 1:
            yield Breach(f"line {line}", f"attempts are counted from 1, not {call.attempt}.")
        elif call.attempt > 1 and n_calls[before] < n_calls[_attempt(call, call.attempt)]:
            yield Breach(f"line {line}", f"attempt {call.attempt} has no attempt before it.")


def _attempt(call: LlmCallRow, attempt: int) -> tuple[int, int, str, int | None, int]:
    return (call.run, call.turn, call.phase, call.thread, attempt)


CAP_LAWS = (
    Law(
        name="daily-posts",
        file="messages.jsonl",
        says="an agent begins at most daily_posts public roots a day of time_zone, those apart "
        "that a person's mention asked for",
        check=daily_posts,
    ),
    Law(
        name="unreviewed-proposals",
        file="messages.jsonl",
        says="an agent with unreviewed_proposals proposals that wait begins no public root, "
        "those apart that a person's mention asked for",
        check=unreviewed_proposals,
    ),
    Law(
        name="call-caps",
        file="llm_calls.jsonl",
        says="a run makes at most max_calls calls, every attempt counted, and an agent at most "
        "its own cap",
        check=call_caps,
    ),
    Law(
        name="money-caps",
        file="llm_calls.jsonl",
        says="a call costs at most what was reserved for it, and a run at most max_usd; under it "
        "every model has a price",
        check=money_caps,
    ),
    Law(
        name="own-money-caps",
        file="llm_calls.jsonl",
        says="an agent spends at most its own cap of money in a run",
        check=own_money_caps,
    ),
    Law(
        name="attempts",
        file="llm_calls.jsonl",
        says="the attempts at a request are numbered from 1 without a gap",
        check=attempts,
    ),
)
