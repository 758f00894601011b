"""What people change of a simulation's set-up: its house rules, who takes part, and who is in a
private channel.

Each function is one transaction, with the notes that a driver needs and, where the gate answers
from it, the lines of the audit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction

from cohorts.audit import Action, change
from cohorts.models import Agent
from engine.inbox import note_roster
from engine.models import ChannelMember, HouseRules, RosterEntry, Simulation

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.models import Channel


def save_simulation(simulation: Simulation) -> None:
    """Save a simulation; if its kind of roster changes, a driver looks at every agent again."""
    with transaction.atomic():
        stored = Simulation.objects.filter(pk=simulation.pk).values_list("roster_chosen", flat=True)
        is_other_roster = any(chosen != simulation.roster_chosen for chosen in stored)
        simulation.save()
        if is_other_roster:
            note_roster(simulation.pk, Agent.objects.values_list("pk", flat=True))


def house_rules_of(simulation: Simulation) -> HouseRules:
    """Return the newest house rules; version 0, without a text, where nobody has written any."""
    newest = simulation.house_rules_versions.order_by("-number").first()
    return newest or HouseRules(simulation=simulation, number=0, text="")


def save_house_rules(simulation: Simulation, text: str, *, who: str) -> bool:
    """Make another text the next version of the house rules; the same text makes none.

    A run keeps those that it began with. Returns whether there is a new version.
    """
    text = text.replace("\r\n", "\n")
    with transaction.atomic():
        Simulation.objects.select_for_update().get(pk=simulation.pk)
        newest = house_rules_of(simulation)
        if newest.text == text:
            return False
        HouseRules.objects.create(
            simulation=simulation, number=newest.number + 1, text=text, saved_by=who
        )
    return True


def add_to_roster(simulation: Simulation, agents: Iterable[Agent]) -> list[str]:
    """Add agents to a chosen roster, and return the ids of those that were not in it."""
    with transaction.atomic():
        # One by one: saving an entry leaves the note for the driver, which bulk writes would not.
        return [
            agent.slug
            for agent in agents
            if RosterEntry.objects.get_or_create(simulation=simulation, agent=agent)[1]
        ]


def remove_from_roster(simulation: Simulation, agents: Iterable[Agent]) -> list[str]:
    """Take agents off a chosen roster, and return the ids of those that were in it."""
    with transaction.atomic():
        entries = list(
            simulation.roster_entries.filter(agent__in=list(agents)).select_related("agent")
        )
        for entry in entries:
            entry.delete()
    return [entry.agent.slug for entry in entries]


def add_channel_members(channel: Channel, agents: Iterable[Agent], *, who: str) -> list[str]:
    """Add agents to a private channel, and return the ids of those that were not in it."""
    with change(who) as audit:
        added = [
            agent.slug
            for agent in agents
            if ChannelMember.objects.get_or_create(channel=channel, agent=agent)[1]
        ]
        for slug in added:
            audit.note(Action.CHANNEL_MEMBER_ADDED, agent=slug, detail=_where(channel))
    return added


def remove_channel_members(channel: Channel, agents: Iterable[Agent], *, who: str) -> list[str]:
    """Take agents out of a private channel, and return the ids of those that were in it."""
    with change(who) as audit:
        members = channel.channel_members.filter(agent__in=list(agents))
        removed = list(members.values_list("agent__slug", flat=True))
        members.delete()
        for slug in removed:
            audit.note(Action.CHANNEL_MEMBER_REMOVED, agent=slug, detail=_where(channel))
    return removed


def _where(channel: Channel) -> str:
    return f"#{channel.name} in {channel.simulation.name}"
