"""Writes a roster to the database: in one change, and only what differs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cohorts.audit import change
from cohorts.models import Agent, Cohort, Membership
from cohorts.operations import (
    Saved,
    change_memberships,
    create_cohort,
    describe_cohort,
    freed_by,
    save_agents,
)
from cohorts.roster import AGENTS
from cohorts.tables import Problem

if TYPE_CHECKING:
    from cohorts.operations import Pair
    from cohorts.roster import Roster, RosterAgent, RosterCohort

_LONG_TEXTS = ("public_profile", "private_instructions", "interests")


@dataclass(slots=True, kw_only=True)
class Imported:
    """What a load did: (kind, what happened) → number, and who became free of all cohorts."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    freed: tuple[str, ...] = ()

    @property
    def has_changed(self) -> bool:
        """Whether anything was written."""
        return any(n and happened != "same" for (_, happened), n in self.counts.items())


def find_conflicts(roster: Roster) -> list[Problem]:
    """Return where a roster, sound in itself, cannot be written: bot names that others bear."""
    bearers = {
        bot_name.casefold(): slug
        for bot_name, slug in Agent.objects.values_list("bot_name", "slug")
    }
    in_folder = {agent.slug for agent in roster.agents}
    return [
        Problem(
            file=AGENTS,
            line=agent.line,
            text=f'The bot_name "{agent.bot_name}" is that of the agent {bearer}, '
            "who is not in this folder.",
        )
        for agent in roster.agents
        if (bearer := bearers.get(agent.bot_name.casefold())) and bearer not in in_folder
    ]


def import_roster(roster: Roster, *, who: str, prune: bool = False) -> Imported:
    """Write agents, cohorts and memberships; with `prune`, also take away what is not in it.

    One transaction. Nothing is deleted but memberships: agents that are missing are retired.
    """
    imported = Imported()
    with change(who):
        _import_agents(roster, imported, who=who, prune=prune)
        for cohort in roster.cohorts:
            imported.counts["cohorts", _import_cohort(cohort, who)] += 1
        _import_memberships(roster, imported, who=who, prune=prune)
    return imported


def _import_agents(roster: Roster, imported: Imported, *, who: str, prune: bool) -> None:
    stored = {agent.slug: agent for agent in Agent.objects.all()}
    given = {one.slug: one for one in roster.agents}
    agents = [_filled(stored.get(slug) or Agent(slug=slug), one) for slug, one in given.items()]
    imported.counts.update(
        ("agents", saved.value) for saved in save_agents(agents, who=who).values()
    )
    if prune:
        missing = [agent for slug, agent in stored.items() if slug not in given]
        for agent in missing:
            agent.status = Agent.Status.RETIRED
        saved = save_agents(missing, who=who)
        imported.counts["agents", "retired"] = list(saved.values()).count(Saved.CHANGED)


def _filled(agent: Agent, given: RosterAgent) -> Agent:
    agent.bot_name = given.bot_name
    agent.represents = given.represents
    agent.status = given.status
    agent.public_profile = given.public_profile
    agent.private_instructions = given.private_instructions
    return agent


def _import_cohort(given: RosterCohort, who: str) -> str:
    cohort = Cohort.objects.filter(name=given.name).first()
    if cohort is None:
        create_cohort(given.name, description=given.description, who=who)
        return "created"
    return "changed" if describe_cohort(cohort, given.description) else "same"


def _import_memberships(roster: Roster, imported: Imported, *, who: str, prune: bool) -> None:
    wanted = {(one.name, slug) for one in roster.cohorts for slug in one.members}
    stored = set(Membership.objects.values_list("cohort__name", "agent__slug"))
    surplus = stored - wanted if prune else set()
    cohorts = {cohort.name: cohort for cohort in Cohort.objects.all()}
    agents = {agent.slug: agent for agent in Agent.objects.defer(*_LONG_TEXTS)}

    def pairs(names: set[tuple[str, str]]) -> list[Pair]:
        return [(cohorts[cohort], agents[slug]) for cohort, slug in sorted(names)]

    diff = change_memberships(add=pairs(wanted - stored), who=who)
    leaving = freed_by([(cohort.pk, agent.pk) for cohort, agent in pairs(surplus)])
    imported.freed = tuple(slug for slug in leaving if agents[slug].status != Agent.Status.RETIRED)
    removed = change_memberships(remove=pairs(surplus), who=who).removed
    imported.counts["memberships", "added"] = len(diff.added)
    imported.counts["memberships", "removed"] = len(removed)
    imported.counts["memberships", "same"] = len(wanted & stored)
