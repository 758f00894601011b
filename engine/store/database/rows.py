"""Records to rows and back, one pair of functions for each table that needs both."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from engine.core import records
from engine.core.prices import nano_usd

if TYPE_CHECKING:
    from datetime import datetime

    from cohorts.models import Agent
    from engine.core.effects import CallRecord, TurnRecord
    from engine.core.group import Decision as NewDecision
    from engine.core.group import NewMemory, NewMessage
    from engine.core.recording import CallText
    from engine.models import AgentState, Thread
    from engine.store.database.bulk import Row


def message_row(new: NewMessage, *, simulation: int, run: int, root: int | None) -> Row:
    """Return the row of an agent's message; `root` is the key of its root's row."""
    return {
        "simulation_id": simulation,
        "seq": new.seq,
        "channel_id": new.channel,
        "root_id": root,
        "ordinal": new.ordinal,
        "answers_ordinal": new.answers_ordinal,
        "author_id": new.author,
        "person": "",
        "is_bot": True,
        "text": new.text,
        "visibility": new.visibility,
        "addressed_id": new.addressed,
        "written_at": new.committed_at,
        "committed_at": new.committed_at,
        "run_id": run,
        "turn": new.turn,
        "mirror_state": "none",
        "mirror_id": "",
    }


def thread_row(thread: records.Thread, *, simulation: int, root: int) -> Row:
    """Return the row of a thread; `root` is the key of its root's row."""
    opener, partner = thread.opener, thread.partner or records.Side(agent=0)
    low, high = thread.pair or (None, None)
    return {
        "root_id": root,
        "root_seq": thread.root,
        "simulation_id": simulation,
        "channel_id": thread.channel,
        "opener_id": opener.agent,
        "opener_viewed": opener.viewed,
        "opener_called": opener.called,
        "opener_misses": opener.misses,
        "partner_id": partner.agent or None,
        "partner_viewed": partner.viewed,
        "partner_called": partner.called,
        "partner_misses": partner.misses,
        "low": low,
        "high": high,
        "cycle": thread.cycle,
        "state": thread.state,
        "outcome": thread.outcome or "",
        "n_agent_messages": thread.n_agent_messages,
        "last_agent_id": thread.last_agent,
        "last_agent_ordinal": thread.last_agent_ordinal,
        "asked": thread.asked,
        "summary_by_id": thread.summary_by,
        "summary_seq": thread.summary_seq,
        "opened_seq": thread.opened_seq,
        "opened_at": thread.opened_at,
        "owed_since": thread.owed_since,
        "closed_seq": thread.closed_seq,
        "closed_at": thread.closed_at,
        "topology_version": thread.topology_version,
        "grandfathered_at": thread.grandfathered_at,
        "guidance": thread.guidance,
        "shared_cohorts": list(thread.shared_cohorts),
    }


def thread_record(row: Thread) -> records.Thread:
    """Return the thread of a row."""
    partner = None
    if row.partner_id is not None:
        partner = records.Side(
            agent=row.partner_id,
            viewed=row.partner_viewed,
            called=row.partner_called,
            misses=row.partner_misses,
        )
    return records.Thread(
        root=row.root_seq,
        channel=row.channel_id,
        opener=records.Side(
            agent=row.opener_id,
            viewed=row.opener_viewed,
            called=row.opener_called,
            misses=row.opener_misses,
        ),
        partner=partner,
        cycle=row.cycle,
        state=records.ThreadState(row.state),
        outcome=records.Outcome(row.outcome) if row.outcome else None,
        n_agent_messages=row.n_agent_messages,
        last_agent=row.last_agent_id,
        last_agent_ordinal=row.last_agent_ordinal,
        asked=row.asked,
        summary_by=row.summary_by_id,
        summary_seq=row.summary_seq,
        opened_seq=row.opened_seq,
        opened_at=row.opened_at,
        owed_since=row.owed_since,
        closed_seq=row.closed_seq,
        closed_at=row.closed_at,
        topology_version=row.topology_version,
        grandfathered_at=row.grandfathered_at,
        guidance=row.guidance,
        shared_cohorts=tuple(row.shared_cohorts),
    )


def decision_row(decision: NewDecision, *, simulation: int, run: int, root: int) -> Row:
    """Return the row of a conclusion; `root` is the key of its thread."""
    thread = decision.thread
    return {
        "simulation_id": simulation,
        "run_id": run,
        "thread_id": root,
        "root_seq": thread.root,
        "cycle": thread.cycle,
        "opener_id": thread.opener.agent,
        "partner_id": None if thread.partner is None else thread.partner.agent,
        "opened_seq": thread.opened_seq,
        "opened_at": thread.opened_at,
        "topology_version": thread.topology_version,
        "grandfathered_at": thread.grandfathered_at,
        "shared_cohorts": list(thread.shared_cohorts),
        "outcome": decision.outcome,
        "seq": decision.seq,
        "at": decision.at,
    }


def invitation_row(
    invitation: records.Invitation, *, simulation: int, message: int, root: int
) -> Row:
    """Return the row of an invitation; `message` and `root` are keys of rows."""
    return {
        "simulation_id": simulation,
        "agent_id": invitation.agent,
        "message_id": message,
        "root_id": root,
        "kind": invitation.kind,
        "by_person": invitation.by_person,
        "state": invitation.state,
        "reason": invitation.reason,
    }


def memory_row(new: NewMemory, *, simulation: int, at: datetime) -> Row:
    """Return the row of a memory's new version by its agent."""
    return {
        "simulation_id": simulation,
        "agent_id": new.memory.agent,
        "channel_id": new.memory.channel,
        "version": new.memory.version,
        "text": new.text,
        "upto_seq": new.memory.upto_seq,
        "person": "",
        "written_at": at,
    }


def state_row(agent: int, state: records.AgentState, *, simulation: int) -> Row:
    """Return the row of what an agent carries."""
    return {
        "simulation_id": simulation,
        "agent_id": agent,
        "last_selected": state.last_selected,
        "ended_at": state.ended_at,
        "cursor": state.cursor,
        "bank": list(state.bank),
        "posts_on": state.posts_on,
        "posts_made": state.posts_made,
        "private_posts_made": state.private_posts_made,
        "next_post_at": state.next_post_at,
        "skip_streak": state.skip_streak,
        "away": state.away,
    }


def state_record(row: AgentState) -> records.AgentState:
    """Return what an agent carries, of a row."""
    return records.AgentState(
        last_selected=row.last_selected,
        ended_at=row.ended_at,
        cursor=row.cursor,
        bank=tuple(row.bank),
        posts_on=row.posts_on,
        posts_made=row.posts_made,
        private_posts_made=row.private_posts_made,
        next_post_at=row.next_post_at,
        skip_streak=row.skip_streak,
        away=row.away,
    )


def turn_row(turn: TurnRecord, *, simulation: int, run: int) -> Row:
    """Return the row of a turn."""
    return {
        "simulation_id": simulation,
        "run_id": run,
        "number": turn.number,
        "agent_id": turn.agent,
        "agent_version": turn.agent_version,
        "selected_at": turn.selected_at,
        "waited_seconds": turn.waited_seconds,
        "wait_bound_seconds": turn.wait_bound_seconds,
        "finished_at": turn.finished_at,
        "outcome": turn.outcome,
        "llm_calls": turn.n_llm_calls,
        "committed": turn.n_committed,
        "gate_filtered": turn.n_gate_filtered,
        "rejected": dict(turn.rejected),
        "detail": turn.detail,
    }


def call_row(call: CallRecord, *, run: int) -> Row:
    """Return the row of one attempt of an LLM call."""
    return {
        "run_id": run,
        "turn": call.turn,
        "number": call.number,
        "agent_id": call.agent,
        "agent_version": call.agent_version,
        "house_rules_version": call.house_rules_version,
        "phase": call.phase,
        "thread": call.thread,
        "model": call.model,
        "prompt_version": call.prompt_version,
        "attempt": call.attempt,
        "started_at": call.started_at,
        "latency_seconds": call.latency_seconds,
        "input_tokens": call.input_tokens,
        "output_tokens": call.output_tokens,
        "cache_read_tokens": call.cache_read_tokens,
        "cache_write_tokens": call.cache_write_tokens,
        "state": "settled",
        "reserved_on": call.reserved_on,
        "reserved_nano_usd": call.reserved_nano_usd,
        "cost_nano_usd": call.cost_nano_usd,
        "finish_reason": call.finish_reason,
        "error": call.error,
    }


def call_text_row(text: CallText) -> Row:
    """Return the row of a call's text but for its key."""
    return {
        "asked": json.dumps(text.asked),
        "said": text.said,
        "wait_seconds": text.wait_seconds,
    }


def agent_spec(agent: Agent, *, version: int, on_roster: bool) -> records.AgentSpec:
    """Return an agent as its owner wrote it; one that left the roster is retired here."""
    status = records.Status(agent.status)
    return records.AgentSpec(
        id=agent.pk,
        slug=agent.slug,
        bot_name=agent.bot_name,
        represents=agent.represents,
        public_profile=agent.public_profile,
        private_instructions=agent.private_instructions,
        interests=agent.interests,
        status=status if on_roster else records.Status.RETIRED,
        version=version,
        max_calls=agent.max_calls,
        max_nano_usd=nano_usd(agent.max_usd),
        daily_posts=agent.daily_posts,
        calls_per_window=agent.calls_per_window,
        small_model=agent.small_model,
        large_model=agent.large_model,
    )
