"""The simulation that a run is for: found, made, or begun afresh beside the old one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from django.db import transaction

from cohorts.names import CHANNEL_LIKE, CHANNEL_PATTERN, SLUG_LIKE, SLUG_PATTERN
from engine.models import Channel, ChannelMember, RosterEntry, Run, Simulation
from engine.models.runs import LIVE
from engine.runs.start import RunIsLive, RunRefused

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Where everybody meets when nobody named a channel.
FIRST_CHANNEL = "general"


def simulation_named(name: str, *, channels: Sequence[str] = ()) -> Simulation:
    """Return the simulation, made with all active agents and these public channels if unknown.

    Raises `RunRefused` for a name, or a channel, that cannot be one.
    """
    if not re.fullmatch(SLUG_PATTERN, name):
        raise RunRefused(f'"{name}" cannot name a simulation: it must be {SLUG_LIKE}.')
    for channel in channels:
        if not re.fullmatch(CHANNEL_PATTERN, channel):
            raise RunRefused(f'"{channel}" cannot name a channel: it must be {CHANNEL_LIKE}.')
    with transaction.atomic():
        simulation, is_new = Simulation.objects.get_or_create(name=name)
        known = set(simulation.channels.values_list("name", flat=True))
        wanted = channels or ((FIRST_CHANNEL,) if is_new else ())
        for channel in dict.fromkeys(wanted):
            if channel not in known:
                Channel.objects.create(simulation=simulation, name=channel)
    return simulation


def fresh_world(simulation: Simulation) -> Simulation:
    """Start an empty world under the name of an old one, which keeps everything as NAME-1, -2 …

    Roster, channels and settings are the same; nothing is deleted. Raises `RunIsLive` while a run
    of the old one is live.
    """
    live = Run.objects.filter(simulation=simulation, status__in=LIVE).first()
    if live is not None:
        raise RunIsLive(f"Run {live.pk} of {simulation.name} is {live.status}: stop it first.")
    with transaction.atomic():
        old = Simulation.objects.select_for_update().get(pk=simulation.pk)
        name, old.name = old.name, _free_name(old.name)
        old.save(update_fields=["name"])
        fresh = Simulation.objects.create(
            name=name,
            description=old.description,
            policy=old.policy,
            settings=old.settings,
            house_rules=old.house_rules,
            roster_chosen=old.roster_chosen,
        )
        RosterEntry.objects.bulk_create(
            RosterEntry(simulation=fresh, agent_id=agent)
            for agent in old.roster_entries.order_by("pk").values_list("agent_id", flat=True)
        )
        _copy_channels(old, fresh)
    return fresh


def _copy_channels(old: Simulation, fresh: Simulation) -> None:
    for channel in old.channels.order_by("pk"):
        copy = Channel.objects.create(
            simulation=fresh,
            name=channel.name,
            topic=channel.topic,
            visibility=channel.visibility,
        )
        members = ChannelMember.objects.filter(channel=channel).order_by("pk")
        for agent in members.values_list("agent_id", flat=True):
            ChannelMember.objects.create(channel=copy, agent_id=agent)


def _free_name(name: str) -> str:
    """Return NAME-1, NAME-2 …: the first that no simulation has, cut to fit."""
    taken = set(Simulation.objects.values_list("name", flat=True))
    number = 1
    while (candidate := f"{name[: 47 - len(str(number))]}-{number}") in taken:
        number += 1
    return candidate
