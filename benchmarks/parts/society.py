"""A society of any size with any history, written by a few statements; both databases alike.

    with fresh_database():
        simulation = make_society(n_agents=1_000, cohort_size=20, n_messages=100_000)

Its agents are in pairs that talk: each turn owes one answer, makes one call and stores one message.
The history is what such talks leave: threads of twelve messages, each with its conclusion, turns,
calls and memories.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from benchmarks.parts.filling import Column, continue_numbers, fill

if TYPE_CHECKING:
    from cohorts.models import Agent
    from engine.models import Run, Simulation

#: Messages of a closed thread of the history.
THREAD = 12
WORDS = "kiln timber stave resin leather spice drying rack barrel pitch flour bow".split()
LONG_AGO = datetime(2026, 1, 1, microsecond=250_000, tzinfo=UTC)  # real moments have such


def make_society(
    *, n_agents: int, cohort_size: int | None, n_messages: int, n_said: int = 2
) -> Simulation:
    """Write agents, cohorts of so many (None: one of all), a history of `n_messages`, and an open
    talk for each pair, in which `n_said` messages were said."""
    from django.db import connection, transaction

    from engine.models import Channel, Run, Simulation, Subscription

    with transaction.atomic():
        agents = _agents(n_agents)
        _cohorts(agents, cohort_size or n_agents)
        simulation = Simulation.objects.create(name="bench")
        channel = Channel.objects.create(pk=1, simulation=simulation, name="general")
        Subscription.objects.bulk_create(
            (Subscription(channel=channel, agent=agent) for agent in agents), batch_size=1000
        )
        run = Run.objects.create(simulation=simulation, status="completed", end_reason="idle")
        _History(simulation, run, n_pairs=n_agents // 2, n_threads=n_messages // THREAD).write()
        first = n_messages // THREAD * THREAD + 1
        _Talks(simulation, run, n_agents=n_agents, n_said=n_said, first=first).write()
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return simulation


def _agents(n_agents: int) -> list[Agent]:
    from cohorts.models import Agent, AgentVersion

    agents = [
        Agent(
            pk=number,
            slug=f"agent-{number}",
            bot_name=f"Agent{number}",
            public_profile=f"House {number} offers {words(number)}.",
            daily_posts=0,
        )
        for number in range(1, n_agents + 1)
    ]
    Agent.objects.bulk_create(agents, batch_size=1000)
    AgentVersion.objects.bulk_create(
        (
            AgentVersion(agent=agent, number=1, bot_name=agent.bot_name, saved_by="benchmark")
            for agent in agents
        ),
        batch_size=1000,
    )
    return agents


def _cohorts(agents: list[Agent], size: int) -> None:
    from cohorts.models import Cohort, Membership

    Cohort.objects.bulk_create(
        Cohort(pk=number, name=f"cohort-{number}", created_by="benchmark")
        for number in range(1, -(-len(agents) // size) + 1)
    )
    Membership.objects.bulk_create(
        (
            Membership(cohort_id=1 + place // size, agent=agent, added_by="benchmark")
            for place, agent in enumerate(agents)
        ),
        batch_size=1000,
    )


def words(number: int) -> str:
    """Return some twenty words that no other number has in this order."""
    picked = [WORDS[(number // len(WORDS) ** power) % len(WORDS)] for power in range(6)]
    return f"number {number}: " + " ".join(picked * 3)


# --- what was said before ------------------------------------------------------------------------


class _History:
    """Closed threads between partners, one after the other, as an earlier run left them.

    In what follows `i` numbers threads, or messages: the database makes the rows by itself.
    """

    def __init__(self, simulation: Simulation, run: Run, *, n_pairs: int, n_threads: int) -> None:
        self._simulation = simulation.pk
        self._of_all: dict[str, Column] = {"simulation_id": simulation.pk}
        self._run = run.pk
        self._n_pairs = n_pairs
        self._n_threads = n_threads

    def write(self) -> None:
        if not self._n_threads:
            return
        n_messages = self._n_threads * THREAD
        fill("Message", n_messages, self._message())
        fill("Turn", n_messages, self._turn())
        fill("LlmCall", n_messages, self._call())
        fill("Thread", self._n_threads, self._thread())
        fill("Decision", self._n_threads, self._decision())
        fill("Memory", self._n_threads, self._memory(self._opener))
        fill("Memory", self._n_threads, self._memory(self._partner))

    @property
    def _opener(self) -> str:
        return f"(2 + 2 * (i % {self._n_pairs}))"

    @property
    def _partner(self) -> str:
        return f"(1 + 2 * (i % {self._n_pairs}))"

    @property
    def _author(self) -> str:
        return f"(1 + 2 * ((i / {THREAD}) % {self._n_pairs}) + (i % {THREAD}) % 2)"

    def _message(self) -> dict[str, Column]:
        place, root = f"(i % {THREAD})", f"(1 + {THREAD} * (i / {THREAD}))"
        return _said(self._simulation, self._run, LONG_AGO) | {
            "id": "i + 1",
            "seq": "i + 1",
            "root_id": f"CASE WHEN {place} = 0 THEN NULL ELSE {root} END",
            "ordinal": f"{place} + 1",
            "answers_ordinal": f"CASE WHEN {place} = 0 THEN NULL ELSE {place} END",
            "author_id": self._author,
            "turn": "i + 1",
        }

    def _turn(self) -> dict[str, Column]:
        return self._of_all | {
            "run_id": self._run,
            "number": "i + 1",
            "agent_id": self._author,
            "agent_version": 1,
            "selected_at": LONG_AGO,
            "waited_seconds": 0.5,
            "wait_bound_seconds": 60,
            "finished_at": LONG_AGO,
            "outcome": "'worked'",
            "llm_calls": 1,
            "committed": 1,
            "gate_filtered": 0,
            "rejected": "'{}'",
            "detail": "''",
        }

    def _call(self) -> dict[str, Column]:
        return {
            "run_id": self._run,
            "turn": "i + 1",
            "number": 1,
            "agent_id": self._author,
            "agent_version": 1,
            "house_rules_version": 0,
            "phase": "'reply'",
            "thread": f"1 + {THREAD} * (i / {THREAD})",
            "model": "'benchmark'",
            "prompt_version": "'1'",
            "attempt": 1,
            "started_at": LONG_AGO,
            "latency_seconds": 0.5,
            "input_tokens": 900,
            "output_tokens": 90,
            "cache_read_tokens": 0,
            "cache_write_tokens": 0,
            "reserved_nano_usd": 0,
            "cost_nano_usd": 0,
            "state": "'settled'",
            "reserved_on": "NULL",
            "finish_reason": "'end_turn'",
            "error": "''",
        }

    def _cycle(self) -> dict[str, Column]:
        return self._of_all | {
            "root_seq": f"1 + {THREAD} * i",
            "cycle": 1,
            "opener_id": self._opener,
            "partner_id": self._partner,
            "opened_seq": f"2 + {THREAD} * i",
            "opened_at": LONG_AGO,
            "topology_version": 1,
            "grandfathered_at": "NULL",
            "shared_cohorts": "'[]'",
            "outcome": "'timeout'",
        }

    def _thread(self) -> dict[str, Column]:
        return self._cycle() | {
            "root_id": f"1 + {THREAD} * i",
            "channel_id": 1,
            "low": self._partner,
            "high": self._opener,
            "opener_viewed": THREAD - 1,
            "opener_called": 0,
            "opener_misses": 0,
            "partner_viewed": THREAD - 2,
            "partner_called": 0,
            "partner_misses": 0,
            "state": "'closed'",
            "n_agent_messages": THREAD,
            "last_agent_id": self._opener,
            "last_agent_ordinal": THREAD,
            "asked": 0,
            "summary_by_id": "NULL",
            "summary_seq": "NULL",
            "owed_since": LONG_AGO,
            "closed_seq": f"{THREAD} + {THREAD} * i",
            "closed_at": LONG_AGO,
            "guidance": "''",
        }

    def _decision(self) -> dict[str, Column]:
        return self._cycle() | {
            "thread_id": f"1 + {THREAD} * i",
            "run_id": self._run,
            "seq": f"{THREAD} + {THREAD} * i",
            "at": LONG_AGO,
        }

    def _memory(self, agent: str) -> dict[str, Column]:
        return self._of_all | {
            "agent_id": agent,
            "channel_id": "NULL",
            "version": f"1 + i / {self._n_pairs}",
            "text": "'We have talked about drying timber and found no agreement yet.'",
            "upto_seq": f"{THREAD} + {THREAD} * i",
            "person": "''",
            "written_at": LONG_AGO,
        }


# --- the talks that go on ------------------------------------------------------------------------


class _Talks:
    """A thread of `n_said` messages (an even number) for each pair, whose first agent owes now.

    All pairs said their first message, then all their second, and so on: `i` numbers the messages.
    """

    def __init__(
        self, simulation: Simulation, run: Run, *, n_agents: int, n_said: int, first: int
    ) -> None:
        self._simulation = simulation
        self._run = run.pk
        self._n_agents = n_agents
        self._n_pairs = n_agents // 2
        self._n_said = n_said
        self._first = first

    def write(self) -> None:
        from django.utils import timezone

        from engine.models import AgentState, RunLease

        now = timezone.now()
        fill("Message", self._n_pairs * self._n_said, self._message(now))
        fill("Thread", self._n_pairs, self._thread(now))
        last = self._first - 1 + self._n_pairs * self._n_said
        AgentState.objects.bulk_create(
            (
                AgentState(simulation=self._simulation, agent_id=number, cursor=last)
                for number in range(1, self._n_agents + 1)
            ),
            batch_size=500,
        )
        RunLease.objects.create(simulation=self._simulation, wrote_at=now)
        continue_numbers()

    def _message(self, now: datetime) -> dict[str, Column]:
        pair, place = f"(i % {self._n_pairs})", f"(i / {self._n_pairs})"
        is_root = f"i < {self._n_pairs}"
        said = _said(self._simulation.pk, self._run, now)
        return said | {
            "id": f"{self._first} + i",
            "seq": f"{self._first} + i",
            "root_id": f"CASE WHEN {is_root} THEN NULL ELSE {self._first} + {pair} END",
            "ordinal": f"{place} + 1",
            "answers_ordinal": f"CASE WHEN {is_root} THEN NULL ELSE {place} END",
            "author_id": f"1 + 2 * {pair} + {place} % 2",
            "turn": 0,
        }

    def _thread(self, now: datetime) -> dict[str, Column]:
        cycle = _open_cycle(self._simulation.pk, now)
        return cycle | {
            "root_id": f"{self._first} + i",
            "root_seq": f"{self._first} + i",
            "opener_id": "2 + 2 * i",
            "opener_viewed": self._n_said - 1,
            "partner_id": "1 + 2 * i",
            "partner_viewed": self._n_said - 2,
            "low": "1 + 2 * i",
            "high": "2 + 2 * i",
            "n_agent_messages": self._n_said,
            "last_agent_id": "2 + 2 * i",
            "last_agent_ordinal": self._n_said,
            "opened_seq": f"{self._first + self._n_pairs} + i",
        }


def _said(simulation: int, run: int, at: datetime) -> dict[str, Column]:
    """Return the columns that all messages of agents share."""
    return {
        "simulation_id": simulation,
        "channel_id": 1,
        "person": "''",
        "is_bot": "true",
        "text": "'It was said in message ' || i || ' that timber, staves and resin dry slowly in"
        " the kiln, and that a partner for the autumn is wanted.'",
        "visibility": "'public'",
        "addressed_id": "NULL",
        "written_at": at,
        "committed_at": at,
        "run_id": run,
        "mirror_state": "'none'",
        "mirror_id": "''",
    }


def _open_cycle(simulation: int, at: datetime) -> dict[str, Column]:
    """Return the columns that all open threads share."""
    return {
        "simulation_id": simulation,
        "channel_id": 1,
        "opener_called": 0,
        "opener_misses": 0,
        "partner_called": 0,
        "partner_misses": 0,
        "cycle": 1,
        "state": "'open'",
        "outcome": "''",
        "asked": 0,
        "summary_by_id": "NULL",
        "summary_seq": "NULL",
        "opened_at": at,
        "owed_since": at,
        "closed_seq": "NULL",
        "closed_at": "NULL",
        "topology_version": 1,
        "grandfathered_at": "NULL",
        "guidance": "''",
        "shared_cohorts": "'[]'",
    }
