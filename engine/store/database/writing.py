"""Stores one group in one transaction: the fence first, the topology's version last."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from django.db import connection, transaction

from engine.core.errors import Fenced, RowRefused, TopologyMoved
from engine.models import (
    AgentState,
    Decision,
    Inbox,
    Invitation,
    LlmCall,
    Memory,
    Message,
    Proposal,
    RunLease,
    Subscription,
    Thread,
    Turn,
)
from engine.store.database import rows
from engine.store.database.bulk import insert, upsert
from engine.store.database.keys import Keys, named_messages, named_roots
from engine.store.database.promises import Promises
from engine.store.database.session import quick_cursor
from engine.store.database.topology import version_in_force, write_snapshot
from engine.store.shape import check_shape

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cohorts.rules import Topology
    from engine.core.group import Group, NewMessage, NewProposal, TakenIn

_FENCE = f"""
    UPDATE {RunLease._meta.db_table} SET commit_no = %s, wrote_at = %s
    WHERE simulation_id = %s AND token = %s AND commit_no = %s
"""


class Writer:
    """Writes the groups of one driver of one run, from one thread."""

    def __init__(self, *, simulation: int, run: int, token: int) -> None:
        self._simulation = simulation
        self._run = run
        self._token = token
        self._keys = Keys(simulation)
        self._promises = Promises(simulation=simulation, run=run, token=token)

    def write(self, group: Group) -> None:
        """Store the group, or leave nothing of it and raise.

        A group that was stored before, by a commit whose answer was lost, is left as it is.
        """
        check_shape(group)
        roots: dict[int, int] = {}
        with transaction.atomic():
            if self._pass_fence(group):
                roots = self._write_roots(group)
                messages = self._write_answers(group, roots)
                self._write_talks(group, messages)
                self._write_desks(group, messages)
                self._write_turns(group)
                self._check_topology(group)
        self._keys.keep(roots)

    def _pass_fence(self, group: Group) -> bool:
        """Take the number of the group; False if it is stored already.

        Fence, lock and the oracle of a lost answer in one statement: it matches only for the
        holder of the lease, and only once per number.
        """
        at = connection.ops.adapt_datetimefield_value(group.at)
        mine = [self._simulation, self._token]
        with quick_cursor() as cursor:
            cursor.execute(_FENCE, [group.number, at, *mine, group.number - 1])
            if cursor.rowcount == 1:
                return True
        lease = RunLease.objects.filter(simulation_id=self._simulation, token=self._token)
        if lease.filter(commit_no=group.number).exists():
            return False
        raise Fenced(f"commit {group.number} by token {self._token}: the lease has moved on")

    def _check_topology(self, group: Group) -> None:
        if group.adopted is not None:
            write_snapshot(self._run, cast("Topology", group.adopted), group.at)
        if group.topology_version is None:
            return
        version = version_in_force()
        if version != group.topology_version:
            raise TopologyMoved(f"the topology is at version {version}")

    def _write_roots(self, group: Group) -> dict[int, int]:
        """Store what people wrote and the new roots; return the key of every root in use."""
        for taken in group.taken_in:
            self._take_in(taken)
        roots = {one.seq: one.message_id for one in group.taken_in if one.root is None}
        new = [one for one in group.messages if one.root is None]
        self._insert(new, {})
        named = named_roots(group).union(one.seq for one in new)
        return roots | self._keys.roots(named - roots.keys())

    def _write_answers(self, group: Group, roots: dict[int, int]) -> dict[int, int]:
        """Store the new answers; return the key of every message in use."""
        messages = roots | {one.seq: one.message_id for one in group.taken_in}
        self._insert((one for one in group.messages if one.root is not None), roots)
        return messages | self._keys.messages(named_messages(group) - messages.keys())

    def _insert(self, messages: Iterable[NewMessage], keys: dict[int, int]) -> None:
        insert(
            Message,
            [
                rows.message_row(
                    message,
                    simulation=self._simulation,
                    run=self._run,
                    root=None if message.root is None else keys[message.root],
                )
                for message in messages
            ],
        )

    def _take_in(self, taken: TakenIn) -> None:
        """Give a person's message its place, one statement each: people are few, and the row
        must still wait and belong under the root that the place was counted for."""
        waiting = Message.objects.filter(
            pk=taken.message_id,
            simulation_id=self._simulation,
            seq__isnull=True,
            root__seq=taken.root,
        )
        n_taken = waiting.update(
            seq=taken.seq,
            ordinal=taken.ordinal,
            committed_at=taken.committed_at,
            addressed_id=taken.addressed,
            run_id=self._run,
        )
        if not n_taken:
            raise RowRefused(f"no person's message {taken.message_id} waits")

    def _write_talks(self, group: Group, keys: dict[int, int]) -> None:
        """Store threads and what came of them; closed ones first, since they make a pair free."""
        threads = sorted(group.threads, key=lambda thread: thread.closed_seq is None)
        upsert(
            Thread,
            [
                rows.thread_row(one, simulation=self._simulation, root=keys[one.root])
                for one in threads
            ],
            by=("root_id",),
        )
        decisions = [
            rows.decision_row(
                one, simulation=self._simulation, run=self._run, root=keys[one.thread.root]
            )
            for one in group.decisions
        ]
        insert(Decision, decisions)
        Proposal.objects.bulk_create([self._proposal(one, keys) for one in group.proposals])
        for refused in group.refused_revisions:  # a person's act each: there is rarely one
            Proposal.objects.filter(
                simulation_id=self._simulation,
                thread__root_seq=refused.root,
                cycle=refused.cycle,
            ).update(refused=refused.reason)

    def _proposal(self, new: NewProposal, keys: dict[int, int]) -> Proposal:
        proposer, confirmer = new.agents
        return Proposal(
            simulation_id=self._simulation,
            thread_id=keys[new.root],
            cycle=new.cycle,
            proposer_id=proposer,
            confirmer_id=confirmer,
            summary_id=keys[new.summary_seq],
            proposed_at=new.at,
        )

    def _write_desks(self, group: Group, keys: dict[int, int]) -> None:
        invitations = [
            rows.invitation_row(
                one, simulation=self._simulation, message=keys[one.message], root=keys[one.root]
            )
            for one in group.invitations
        ]
        upsert(Invitation, invitations, by=("agent_id", "message_id"))
        memories = [
            rows.memory_row(one, simulation=self._simulation, at=group.at) for one in group.memories
        ]
        insert(Memory, memories)
        subscriptions = [
            Subscription(agent_id=agent, channel_id=channel)
            for agent, channel in group.subscriptions
        ]
        Subscription.objects.bulk_create(subscriptions, ignore_conflicts=True)
        states = [
            rows.state_row(agent, state, simulation=self._simulation)
            for agent, state in group.states
        ]
        upsert(AgentState, states, by=("simulation_id", "agent_id"))
        if group.notes:
            Inbox.objects.filter(simulation_id=self._simulation, pk__in=group.notes).delete()

    def _write_turns(self, group: Group) -> None:
        turns = [
            rows.turn_row(one, simulation=self._simulation, run=self._run) for one in group.turns
        ]
        upsert(Turn, turns, by=("simulation_id", "number"))
        calls = [
            rows.call_row(one, run=self._run) for one in group.calls if one.reserved_on is None
        ]
        upsert(LlmCall, calls, by=("run_id", "turn", "number"))
        for one in group.calls:
            if one.reserved_on is not None:
                self._promises.settle(one)
                self._promises.carried(one, group.at)
