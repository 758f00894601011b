"""Makes or updates the simulation that a roster folder describes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from django.db import transaction

from cohorts.audit import Action, change
from cohorts.importer import find_conflicts, import_roster
from cohorts.models import Agent
from cohorts.roster import CHANNELS, read_roster
from cohorts.tables import Problem
from engine.inbox import note_roster
from engine.models import Channel, ChannelMember, RosterEntry, Simulation
from engine.simulations import save_simulation

if TYPE_CHECKING:
    from cohorts.audit import Audit
    from cohorts.importer import Imported
    from cohorts.roster import Roster, RosterChannel


DEMO: Final = "demo"
DEMO_FOLDER: Final = Path(__file__).parent / "demo" / "roster"


def load_demo(*, who: str) -> list[str]:
    """Load the roster that comes with the application, with its simulation, whole or not at all.

    Returns what stands in its way, like an agent of the same name, as sentences.
    """
    roster, problems = read_roster(DEMO_FOLDER)
    problems = problems or find_conflicts(roster) or find_channel_conflicts(roster, DEMO)
    if not problems:
        with transaction.atomic():
            import_simulation(roster, DEMO, import_roster(roster, who=who), who=who)
    return [str(problem) for problem in problems]


def find_channel_conflicts(roster: Roster, name: str) -> list[Problem]:
    """Return channels whose visibility differs from that of the simulation's own."""
    stored = dict(Channel.objects.filter(simulation__name=name).values_list("name", "visibility"))
    return [
        Problem(
            file=CHANNELS,
            line=given.line,
            text=f"The channel {given.name} of the simulation {name} is {stored[given.name]}, "
            "and a visibility cannot be changed: use another name.",
        )
        for given in roster.channels
        if stored.get(given.name, _visibility(given)) != _visibility(given)
    ]


def import_simulation(
    roster: Roster, name: str, imported: Imported, *, who: str, prune: bool = False
) -> None:
    """Give a simulation the roster's agents and channels; the agents must be stored already.

    With `prune`, agents that the roster lacks leave the simulation and its private channels.
    Channels stay: they hold what was said. Without any channel it gets `general`.
    """
    with change(who) as audit:
        simulation, is_new = Simulation.objects.get_or_create(
            name=name, defaults={"roster_chosen": True}
        )
        imported.counts["simulation", "created" if is_new else "same"] += 1
        _choose_agents(simulation, roster, imported, prune=prune)
        for given in roster.channels:
            _import_channel(simulation, given, imported, audit, prune=prune)
        if not simulation.channels.exists():
            Channel.objects.create(simulation=simulation, name="general")
            imported.counts["channels", "created"] += 1


def _choose_agents(
    simulation: Simulation, roster: Roster, imported: Imported, *, prune: bool
) -> None:
    """Make the roster a chosen one that holds the folder's agents."""
    if not simulation.roster_chosen:
        simulation.roster_chosen = True
        save_simulation(simulation)
        imported.counts["simulation", "changed"] += 1
    ids = dict(Agent.objects.values_list("slug", "pk"))
    wanted = {ids[agent.slug] for agent in roster.agents}
    stored = set(simulation.roster_entries.values_list("agent_id", flat=True))
    RosterEntry.objects.bulk_create(
        (RosterEntry(simulation=simulation, agent_id=pk) for pk in sorted(wanted - stored)),
        batch_size=500,
    )
    note_roster(simulation.pk, sorted(wanted - stored))
    surplus = stored - wanted if prune else set()
    simulation.roster_entries.filter(agent__in=surplus).delete()
    imported.counts["roster", "added"] += len(wanted - stored)
    imported.counts["roster", "removed"] += len(surplus)
    imported.counts["roster", "same"] += len(wanted & stored)


def _import_channel(
    simulation: Simulation, given: RosterChannel, imported: Imported, audit: Audit, *, prune: bool
) -> None:
    channel, is_new = Channel.objects.get_or_create(
        simulation=simulation,
        name=given.name,
        defaults={"topic": given.topic, "visibility": _visibility(given)},
    )
    is_changed = channel.topic != given.topic
    if is_changed:
        channel.topic = given.topic
        channel.save(update_fields=["topic"])
    imported.counts["channels", _happened(is_new=is_new, is_changed=is_changed)] += 1
    if given.is_private:
        _import_members(channel, given, imported, audit, prune=prune)


def _import_members(
    channel: Channel, given: RosterChannel, imported: Imported, audit: Audit, *, prune: bool
) -> None:
    """Make a private channel hold the folder's members, and note each change in the audit."""
    wanted = dict(Agent.objects.filter(slug__in=given.members).values_list("pk", "slug"))
    stored = dict(channel.channel_members.values_list("agent_id", "agent__slug"))
    added = sorted(wanted.keys() - stored.keys())
    removed = sorted(stored.keys() - wanted.keys()) if prune else []
    ChannelMember.objects.bulk_create(ChannelMember(channel=channel, agent_id=pk) for pk in added)
    channel.channel_members.filter(agent__in=removed).delete()
    where = f"#{channel.name} in {channel.simulation.name}"
    for pk in added:
        audit.note(Action.CHANNEL_MEMBER_ADDED, agent=wanted[pk], detail=where)
    for pk in removed:
        audit.note(Action.CHANNEL_MEMBER_REMOVED, agent=stored[pk], detail=where)
    imported.counts["channel members", "added"] += len(added)
    imported.counts["channel members", "removed"] += len(removed)
    imported.counts["channel members", "same"] += len(wanted.keys() & stored.keys())


def _visibility(given: RosterChannel) -> str:
    return Channel.Visibility.PRIVATE if given.is_private else Channel.Visibility.PUBLIC


def _happened(*, is_new: bool, is_changed: bool) -> str:
    if is_new:
        return "created"
    return "changed" if is_changed else "same"
