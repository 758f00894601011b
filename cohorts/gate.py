"""The gate of a run: one topology, loaded by one cached ORM query and replaced when it moved."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from django.db import Error as DatabaseFailure

from cohorts.models import Agent, Membership, TopologyVersion
from cohorts.rules import Policy, Topology, Verdict, build_topology

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

logger = logging.getLogger(__name__)


def read_version() -> int:
    """Return the topology version; 0 while nothing has changed yet, or after a flush."""
    return TopologyVersion.objects.values_list("version", flat=True).first() or 0


def load_topology(
    *,
    policy: Policy,
    running: Iterable[int] | None = None,
    members_of: Mapping[int, Iterable[int]] | None = None,
    version: int | None = None,
) -> Topology:
    """Load the topology: the version first, then all memberships, then all agents.

    In this order a change in between makes the topology newer than its version, never older:
    the next look at the version loads it again. `running` are the agents that take part, None
    for all; of those only the active ones run. `members_of` maps private channels to agents;
    who reads it from the database reads `version` before it, and passes both.
    """
    if version is None:
        version = read_version()
    memberships = list(Membership.objects.values_list("cohort_id", "agent_id", "cohort__name"))
    agents = list(Agent.objects.values_list("pk", "slug", "status"))
    active = {pk for pk, _, status in agents if status == Agent.Status.ACTIVE}
    topology = build_topology(
        version=version,
        policy=policy,
        memberships=((cohort, agent) for cohort, agent, _ in memberships),
        names={cohort: name for cohort, _, name in memberships},
        agents=(pk for pk, _, _ in agents),
        running=active if running is None else active.intersection(running),
        members_of=members_of or {},
    )
    _report(topology, {pk: slug for pk, slug, _ in agents})
    return topology


class CachedGate:
    """The last good topology; asking it costs no query, `refresh` costs one.

    `running` and `members_of` are read anew at each load, after the version. Not for use from
    several threads at once: `refresh` in one, reading `topology` anywhere.
    """

    def __init__(
        self,
        *,
        policy: Policy,
        running: Callable[[], Iterable[int]] | None = None,
        members_of: Callable[[], Mapping[int, Iterable[int]]] | None = None,
    ) -> None:
        self._policy = policy
        self._running = running
        self._members_of = members_of
        self.topology = self._load(read_version())

    def refresh(self) -> bool:
        """Load the topology again if the version moved, and tell whether it did.

        A failing database leaves the last good gate in force: it neither opens nor closes.
        """
        try:
            version = read_version()
            if version == self.topology.version:
                return False
            self.topology = self._load(version)
        except DatabaseFailure:
            logger.exception(
                "The cohorts could not be read; version %d stays in force.", self.topology.version
            )
            return False
        return True

    def _load(self, version: int) -> Topology:
        return load_topology(
            policy=self._policy,
            running=None if self._running is None else self._running(),
            members_of=None if self._members_of is None else self._members_of(),
            version=version,
        )


def _report(topology: Topology, slugs: Mapping[int, str]) -> None:
    """Log what the preflight found: a refusal, or who is silent under isolation."""
    if topology.verdict is Verdict.REFUSED:
        logger.error(
            "The policy is isolated and no running agent is in a cohort: the gate is treated as "
            "off. Put agents into cohorts, or set the policy to off."
        )
    elif topology.policy is Policy.ISOLATED and topology.loose_running:
        names = ", ".join(sorted(slugs[pk] for pk in topology.loose_running))
        logger.warning("The policy is isolated and these agents are in no cohort: %s.", names)
