"""The topology at a driver's side: read, compared inside a commit, and kept as a snapshot."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from django.db import connection

from cohorts.gate import load_topology, read_version
from cohorts.models import Agent, TopologyVersion
from cohorts.rules import Policy, Topology, Verdict
from engine.models import ChannelMember, RosterEntry, Simulation, TopologySnapshot
from engine.store.database.session import snapshot

if TYPE_CHECKING:
    from datetime import datetime

VERSION_TABLE = TopologyVersion._meta.db_table


def load_gate(simulation_id: int, policy: str) -> Topology:
    """Read the topology of a simulation as of one moment: what is kept of a version is all its own."""
    with snapshot():
        version = read_version()
        members_of: dict[int, list[int]] = defaultdict(list)
        members = ChannelMember.objects.filter(channel__simulation=simulation_id)
        for channel, agent in members.values_list("channel_id", "agent_id"):
            members_of[channel].append(agent)
        return load_topology(
            policy=Policy(policy),
            running=roster(simulation_id),
            members_of=members_of,
            version=version,
        )


def roster(simulation_id: int) -> tuple[int, ...] | None:
    """Return the chosen agents of a simulation, or None when all take part."""
    if not Simulation.objects.values_list("roster_chosen", flat=True).get(pk=simulation_id):
        return None
    entries = RosterEntry.objects.filter(simulation=simulation_id)
    return tuple(entries.values_list("agent_id", flat=True))


def version_in_force() -> int:
    """Return the version as the last word of a transaction: nobody moves it before our commit.

    PostgreSQL needs a shared lock for that; where a flush has removed the row, one is made that
    can be locked. SQLite's writer is alone anyway.
    """
    if connection.vendor != "postgresql":
        return read_version()
    query = f"SELECT version FROM {VERSION_TABLE} WHERE id = 1 FOR SHARE"
    with connection.cursor() as cursor:
        cursor.execute(query)
        row = cursor.fetchone()
        if row is None:
            cursor.execute(
                f"INSERT INTO {VERSION_TABLE} (id, version) VALUES (1, 0) ON CONFLICT DO NOTHING"
            )
            cursor.execute(query)
            row = cursor.fetchone()
    return int(row[0])


def write_snapshot(run_id: int, topology: Topology, at: datetime) -> None:
    """Keep what a run goes by from now on; a version it knows already is left as it is.

    But for one thing: a roster may change without the version, and leave a gate that silences
    everybody and so is refused. Then the version's verdict is that, as long as it lasts: an
    interaction of that time is never taken for one against the gate.
    """
    slugs = dict(Agent.objects.values_list("pk", "slug"))
    members: dict[str, list[str]] = {name: [] for name in topology.names.values()}
    for agent, cohorts in topology.cohorts_of.items():
        for cohort in cohorts:
            members[topology.names[cohort]].append(slugs[agent])
    row = TopologySnapshot(
        run_id=run_id,
        version=topology.version,
        at=at,
        policy=topology.policy,
        verdict=topology.verdict,
        cohorts={name: sorted(agents) for name, agents in sorted(members.items())},
    )
    if topology.verdict is Verdict.REFUSED:
        TopologySnapshot.objects.bulk_create(
            [row],
            update_conflicts=True,
            update_fields=["verdict"],
            unique_fields=["run", "version"],
        )
    else:
        TopologySnapshot.objects.bulk_create([row], ignore_conflicts=True)
