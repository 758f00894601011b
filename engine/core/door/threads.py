"""The life of a thread in a draft: opened, spoken in, closed, reopened.

These functions change a draft and judge nothing; the modules beside this one have judged.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from engine.core.group import Decision
from engine.core.records import Outcome, PairHistory, Side, Talk, Thread, ThreadState

if TYPE_CHECKING:
    from engine.core.draft import Draft
    from engine.core.records import Root


def enter(draft: Draft, thread: Thread) -> None:
    """Make an open thread, or a changed one, part of the draft and of its sides' desks."""
    draft.threads[thread.root] = thread
    draft.changed_threads[thread.root] = thread
    for side in thread.sides:
        desk = draft.desk(side.agent)
        if thread.root not in desk.threads:
            threads = tuple(sorted((*desk.threads, thread.root)))
            draft.desks[side.agent] = replace(desk, threads=threads)
        draft.concern.agents[side.agent] = None


def open_thread(draft: Draft, root: Root, agent: int, *, seq: int) -> Thread:
    """Return the thread that `agent`'s answer `seq` to a root makes or makes two-party.

    The thread of a person's root has one side until a second agent answers; an agent's root has
    its author as a side from the start.
    """
    known = draft.threads.get(root.seq)
    if known is not None:
        return _two_party(draft, replace(known, partner=Side(agent=agent)), seq=seq)
    other = root.author if root.author not in {None, agent} else None
    thread = Thread(
        root=root.seq,
        channel=root.channel,
        opener=Side(agent=agent),
        partner=None if other is None else Side(agent=other, viewed=1),
        n_agent_messages=0 if root.author is None else 1,
        last_agent=root.author,
        last_agent_ordinal=0 if root.author is None else 1,
        opened_seq=seq,
        opened_at=draft.now,
        owed_since=draft.now,
        topology_version=draft.gate.version,
    )
    return thread if other is None else _two_party(draft, thread, seq=seq)


def _two_party(draft: Draft, thread: Thread, *, seq: int) -> Thread:
    """Return the thread as the interaction that starts here: judged by the gate of this moment."""
    draft.starts_interaction()
    pair = thread.pair
    return replace(
        thread,
        opened_seq=seq,
        opened_at=draft.now,
        topology_version=draft.gate.version,
        shared_cohorts=() if pair is None else draft.gate.shared(*pair),
    )


def with_side(thread: Thread, side: Side, **changes: Any) -> Thread:
    """Return the thread with one agent's side replaced, and other fields changed with it."""
    if thread.opener.agent == side.agent:
        return replace(thread, opener=side, **changes)
    return replace(thread, partner=side, **changes)


def close(draft: Draft, thread: Thread, outcome: Outcome) -> None:
    """End a cycle: its decision, both desks, and the pair's history."""
    seq = draft.last_seq
    closed = replace(
        thread,
        state=ThreadState.CLOSED,
        outcome=outcome,
        closed_seq=seq,
        closed_at=draft.now,
    )
    draft.threads.remove(thread.root)
    draft.changed_threads[thread.root] = closed
    draft.roots[thread.root] = replace(draft.roots[thread.root], closed=True)
    decision = Decision(thread=closed, outcome=outcome, seq=seq, at=draft.now)
    draft.group.decisions.append(decision)
    for side in thread.sides:
        _clear_desk(draft, closed, side.agent)
    _remember_pair(draft, closed, outcome)


def _clear_desk(draft: Draft, closed: Thread, agent: int) -> None:
    """Take the thread off a side's desk and leave the talk to be remembered.

    A memory knows the talks that closed up to a `seq`: one that the system closes in silence, with
    no message since that memory was written, counts as known.
    """
    desk = draft.desk(agent)
    private = closed.channel if draft.is_private(closed.channel) else None
    talk = Talk(closed_seq=draft.last_seq, root=closed.root, channel=private)
    memory = draft.memories.get((agent, private))
    untold = (
        [*desk.untold, talk] if memory is None or memory.upto_seq < draft.last_seq else desk.untold
    )
    draft.desks[agent] = replace(
        desk,
        threads=tuple(root for root in desk.threads if root != closed.root),
        untold=tuple(sorted(untold, key=lambda one: (one.closed_seq, one.root))),
    )
    draft.concern.agents[agent] = None
    draft.concern.seats[agent] = None


def _remember_pair(draft: Draft, closed: Thread, outcome: Outcome) -> None:
    if closed.pair is None:
        return
    before = draft.pairs.get(closed.pair)
    n_barren = 0
    if outcome is not Outcome.PROPOSAL:
        n_barren = 1 if before is None else before.n_barren + 1
    draft.pairs[closed.pair] = PairHistory(
        closed_seq=draft.last_seq, closed_at=draft.now, n_barren=n_barren
    )


def reopen(draft: Draft, thread: Thread, *, caller: str, called: int | None, at: int) -> str:
    """Begin the next cycle of a closed thread because a person asked; return why not, or "".

    `called` is the side that owes the next word, None for both; `at` the ordinal that calls.
    `caller` is what the person asked for. A pair that talks elsewhere, a side without a free seat
    and a side that left are reasons to refuse.
    """
    reason = _reopen_refusal(draft, thread)
    if reason:
        return reason
    draft.roots[thread.root] = replace(draft.roots[thread.root], closed=False)
    sides = [
        replace(side, called=at if called in {None, side.agent} else 0, viewed=at - 1, misses=0)
        for side in thread.sides
    ]
    next_cycle = Thread(
        root=thread.root,
        channel=thread.channel,
        opener=sides[0],
        partner=sides[1] if len(sides) > 1 else None,
        cycle=thread.cycle + 1,
        last_agent_ordinal=at - 1,
        opened_seq=draft.last_seq,
        opened_at=draft.now,
        owed_since=draft.now,
        topology_version=draft.gate.version,
        guidance=caller,
        shared_cohorts=thread.shared_cohorts,
    )
    enter(draft, next_cycle)
    return ""


def _reopen_refusal(draft: Draft, thread: Thread) -> str:
    for side in thread.sides:
        if draft.is_out_for_good(side.agent):
            return "partner_gone"
        if len(draft.desk(side.agent).threads) >= draft.config.active_thread_threshold:
            return "partner_full"
        other = thread.other(side.agent)
        open_roots = draft.desk(side.agent).threads
        if other is not None and any(
            draft.threads[r].other(side.agent) == other for r in open_roots
        ):
            return "pair_taken"
    return ""
