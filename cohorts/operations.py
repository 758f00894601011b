"""The one way to change agents, cohorts and memberships.

Each operation is one transaction with its audit lines; one that changes nothing writes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from secrets import token_hex
from typing import TYPE_CHECKING, Final, TypeVar

from django.db import IntegrityError, transaction
from django.db.models import PROTECT, Max

from cohorts.audit import Action, change
from cohorts.models import Agent, AgentVersion, Cohort, Membership
from cohorts.signals import agents_saved

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from django.db.models import QuerySet

    from cohorts.audit import Audit

T = TypeVar("T")

VERSIONED_FIELDS: Final = (
    "bot_name",
    "represents",
    "public_profile",
    "private_instructions",
    "interests",
    "max_calls",
    "max_usd",
    "daily_posts",
    "calls_per_window",
    "small_model",
    "large_model",
)
"""Texts and limits: a change of one of them makes a new version of the agent."""
_OTHER_FIELDS: Final = ("status", "slack_token_env", "bot_user_id")


class RefusedChangeError(Exception):
    """A change that a rule forbids; its text is one plain sentence for a person."""


class Saved(StrEnum):
    """What a save did to an agent."""

    CREATED = "created"
    CHANGED = "changed"
    SAME = "same"


@dataclass(frozen=True, slots=True, kw_only=True)
class MembershipDiff:
    """The memberships that were really added and removed, as sorted (cohort, agent) names."""

    added: tuple[tuple[str, str], ...] = ()
    removed: tuple[tuple[str, str], ...] = ()


Pair = tuple[Cohort, Agent]


def create_cohort(name: str, *, who: str, description: str = "") -> Cohort:
    """Create a cohort; raise ValidationError if its name is taken or of another form."""
    cohort = Cohort(name=name, description=description, created_by=who)
    with change(who) as audit:
        cohort.full_clean()
        cohort.save(force_insert=True)
        audit.note(Action.COHORT_CREATED, cohort=name)
    return cohort


def describe_cohort(cohort: Cohort, description: str) -> bool:
    """Store another description, which no rule reads, and tell whether it is another one."""
    stored = Cohort.objects.filter(pk=cohort.pk).exclude(description=description)
    return stored.update(description=description) > 0


def delete_cohort(cohort: Cohort, *, who: str) -> None:
    """Delete a cohort that has no members; raise RefusedChangeError for one that has."""
    with change(who) as audit:
        locked = Cohort.objects.select_for_update().filter(pk=cohort.pk).first()
        if locked is None:
            return
        refuse_cohort_with_members(locked)
        locked.delete()
        audit.note(Action.COHORT_DELETED, cohort=locked.name)


def add_members(cohort: Cohort, agents: Iterable[Agent], *, who: str) -> MembershipDiff:
    """Add agents to a cohort; those already in it stay as they are."""
    return change_memberships(add=[(cohort, agent) for agent in agents], who=who)


def remove_members(cohort: Cohort, agents: Iterable[Agent], *, who: str) -> MembershipDiff:
    """Take agents out of a cohort; those not in it stay as they are."""
    return change_memberships(remove=[(cohort, agent) for agent in agents], who=who)


def set_members(cohort: Cohort, agents: Iterable[Agent], *, who: str) -> MembershipDiff:
    """Make a cohort hold exactly these agents, in one transaction that touches the others only."""
    wanted = {agent.pk: agent for agent in agents}
    with change(who):
        present = {agent.pk: agent for agent in Agent.objects.filter(memberships__cohort=cohort)}
        return change_memberships(
            add=[(cohort, agent) for pk, agent in wanted.items() if pk not in present],
            remove=[(cohort, agent) for pk, agent in present.items() if pk not in wanted],
            who=who,
        )


def change_memberships(
    *, add: Sequence[Pair] = (), remove: Sequence[Pair] = (), who: str
) -> MembershipDiff:
    """Add and remove memberships in one transaction, and return what really changed."""
    with change(who) as audit:
        diff = MembershipDiff(removed=_remove(remove), added=_add(add, who))
        for cohort, agent in diff.removed:
            audit.note(Action.MEMBER_REMOVED, cohort=cohort, agent=agent)
        for cohort, agent in diff.added:
            audit.note(Action.MEMBER_ADDED, cohort=cohort, agent=agent)
    return diff


def save_agent(agent: Agent, *, who: str) -> Saved:
    """Validate and save one agent; raise ValidationError for what is wrong with it."""
    agent.full_clean()
    return save_agents([agent], who=who)[agent.slug]


def save_agents(agents: Sequence[Agent], *, who: str) -> dict[str, Saved]:
    """Save validated agents, with a new version of each whose texts or limits changed.

    Returns what happened by slug. Raises IntegrityError if two agents share an id or bot name.
    """
    with change(who) as audit:
        stored = Agent.objects.in_bulk([agent.pk for agent in agents if agent.pk])
        saved = {agent.slug: _comparison(agent, stored.get(agent.pk)) for agent in agents}
        new = [agent for agent in agents if saved[agent.slug] is Saved.CREATED]
        changed = [agent for agent in agents if saved[agent.slug] is Saved.CHANGED]
        Agent.objects.bulk_create(new, batch_size=500)
        _save_changed(changed, stored)
        _store_versions(new, changed, stored, who)
        _note_statuses(audit, new, changed, stored)
        if new or changed:
            agent_ids = [agent.pk for agent in (*new, *changed)]
            agents_saved.send(sender=Agent, agent_ids=agent_ids)
    return saved


def delete_agent(agent: Agent, *, who: str) -> None:
    """Delete an agent that nothing refers to; raise RefusedChangeError for one with history."""
    with change(who) as audit:
        refuse_agent_with_history(agent)
        slug = agent.slug
        n_deleted, _ = Agent.objects.filter(pk=agent.pk).delete()
        if n_deleted:
            audit.note(Action.AGENT_DELETED, agent=slug)


def refuse_cohort_with_members(cohort: Cohort) -> None:
    """Raise RefusedChangeError, with the number of members, if a cohort has some."""
    if n_members := Membership.objects.filter(cohort=cohort).count():
        noun = "member" if n_members == 1 else "members"
        raise RefusedChangeError(
            f"The cohort {cohort.name} has {n_members} {noun}: remove them before you delete it."
        )


def refuse_agent_with_history(agent: Agent) -> None:
    """Raise RefusedChangeError if a row of any application refers to an agent and protects it.

    Asks each table for one row: to collect all that refers could load a million messages.
    """
    for relation in Agent._meta.related_objects:
        field = relation.field
        if field.many_to_one and relation.on_delete is PROTECT:
            every = relation.related_model._base_manager
            if every.filter(**{field.name: agent.pk}).exists():
                raise RefusedChangeError(
                    f"The agent {agent.slug} has memberships or a history: retire it instead of "
                    "deleting it."
                )


def freed_by(removals: Iterable[tuple[int, int]]) -> tuple[str, ...]:
    """Return, sorted, the slugs of agents whom these removals leave in no cohort.

    Removals are (cohort id, agent id). Under the policy `open` such an agent may deal with
    everyone: whoever removes says so before.
    """
    removed = set(removals)
    kept: set[int] = set()
    losing: dict[int, str] = {}
    for batch in _batches(sorted({agent for _, agent in removed})):
        rows = Membership.objects.filter(agent__in=batch)
        for cohort, agent, slug in rows.values_list("cohort_id", "agent_id", "agent__slug"):
            if (cohort, agent) in removed:
                losing[agent] = slug
            else:
                kept.add(agent)
    return tuple(sorted(slug for agent, slug in losing.items() if agent not in kept))


def _remove(pairs: Sequence[Pair]) -> tuple[tuple[str, str], ...]:
    """Delete the memberships that exist; who else deletes one of them meanwhile has done it."""
    wanted = _by_key(pairs)
    found = _present(wanted, Membership.objects.select_for_update())
    for batch in _batches(sorted(found.values())):
        Membership.objects.filter(pk__in=batch).delete()
    return tuple(sorted(wanted[key] for key in found))


def _add(pairs: Sequence[Pair], who: str) -> tuple[tuple[str, str], ...]:
    """Insert the memberships that are missing; one that appears meanwhile is already there."""
    wanted = _by_key(pairs)
    missing = wanted.keys() - _present(wanted).keys()
    while missing:
        rows = [Membership(cohort_id=c, agent_id=a, added_by=who) for c, a in sorted(missing)]
        try:
            with transaction.atomic():
                Membership.objects.bulk_create(rows, batch_size=500)
            break
        except IntegrityError:
            appeared = _present(missing).keys()
            if not appeared:
                raise
            missing -= appeared
    return tuple(sorted(wanted[key] for key in missing))


def _by_key(pairs: Sequence[Pair]) -> dict[tuple[int, int], tuple[str, str]]:
    """Return the names of each pair by its (cohort id, agent id)."""
    return {(cohort.pk, agent.pk): (cohort.name, agent.slug) for cohort, agent in pairs}


def _present(
    keys: Collection[tuple[int, int]], rows: QuerySet[Membership] | None = None
) -> dict[tuple[int, int], int]:
    """Return the primary keys of those memberships that exist, by (cohort id, agent id)."""
    rows = Membership.objects.all() if rows is None else rows
    found: dict[tuple[int, int], int] = {}
    for batch in _batches(sorted(keys)):
        matching = rows.filter(
            cohort__in={cohort for cohort, _ in batch}, agent__in={agent for _, agent in batch}
        )
        for pk, cohort, agent in matching.values_list("pk", "cohort_id", "agent_id"):
            found[cohort, agent] = pk
    return {key: pk for key, pk in found.items() if key in keys}


def _batches(keys: Sequence[T]) -> Iterator[Sequence[T]]:
    """Cut keys into pieces, since SQLite limits the parameters of a statement."""
    return (keys[start : start + 400] for start in range(0, len(keys), 400))


def _comparison(agent: Agent, stored: Agent | None) -> Saved:
    if stored is None:
        return Saved.CREATED
    same_token = agent.slack_token == stored.slack_token or not (
        agent.slack_token or stored.slack_token
    )
    same = same_token and all(
        getattr(agent, name) == getattr(stored, name)
        for name in (*VERSIONED_FIELDS, *_OTHER_FIELDS)
    )
    return Saved.SAME if same else Saved.CHANGED


def _save_changed(changed: Sequence[Agent], stored: Mapping[int, Agent]) -> None:
    """Update agents one by one; those renamed give up their names first, so they may swap."""
    renamed = [agent for agent in changed if agent.bot_name != stored[agent.pk].bot_name]
    for agent in renamed if len(renamed) > 1 else ():
        Agent.objects.filter(pk=agent.pk).update(bot_name=f"renamed_{agent.pk}_{token_hex(4)}")
    for agent in changed:
        agent.save(force_update=True)


def _store_versions(
    new: Sequence[Agent], changed: Sequence[Agent], stored: Mapping[int, Agent], who: str
) -> None:
    """Write the version rows of agents whose texts or limits differ from the stored ones."""
    rewritten = [agent for agent in changed if _versioned(agent) != _versioned(stored[agent.pk])]
    newest = dict(
        AgentVersion.objects.filter(agent__in=[agent.pk for agent in rewritten])
        .values_list("agent")
        .annotate(Max("number"))
        .order_by()
    )
    AgentVersion.objects.bulk_create(
        [
            AgentVersion(
                agent=agent, number=newest.get(agent.pk, 0) + 1, saved_by=who, **_versioned(agent)
            )
            for agent in (*new, *rewritten)
        ],
        batch_size=500,
    )


def _versioned(agent: Agent) -> dict[str, object]:
    return {name: getattr(agent, name) for name in VERSIONED_FIELDS}


def _note_statuses(
    audit: Audit, new: Sequence[Agent], changed: Sequence[Agent], stored: Mapping[int, Agent]
) -> None:
    for agent in new:
        audit.note(Action.AGENT_CREATED, agent=agent.slug, detail=agent.status)
    for agent in changed:
        if agent.status != stored[agent.pk].status:
            audit.note(Action.STATUS_CHANGED, agent=agent.slug, detail=agent.status)
