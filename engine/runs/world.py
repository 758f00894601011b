"""The simulation that a run is for: found, made, or begun afresh beside the old one."""

from __future__ import annotations

import re
from contextlib import ExitStack
from typing import TYPE_CHECKING

from cohorts.audit import Action, change
from cohorts.names import CHANNEL_LIKE, CHANNEL_PATTERN, SLUG_LIKE, SLUG_PATTERN
from engine.build import make_ready
from engine.models import Channel, ChannelMember, RosterEntry, Simulation
from engine.runs.refusals import RunIsLive, RunRefused, naming_who_locks
from engine.runs.start import Begun, begin, clear_the_way
from engine.simulations import house_rules_of, save_house_rules

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cohorts.audit import Audit
    from engine.core.config import RunConfig

#: Where everybody meets when nobody named a channel.
FIRST_CHANNEL = "general"


@naming_who_locks()
def begin_named(
    name: str, config: RunConfig, *, channels: Sequence[str] = (), fresh: bool = False, who: str
) -> Begun:
    """Begin a run of the simulation of this name, which is made with all active agents if unknown.

    It gets these public channels; with `fresh` a known one begins anew (see `fresh_world`). If the
    run is refused (`RunRefused`: also for a name, or a channel, that cannot be one), nothing of
    this is written.
    """
    make_ready(config)
    with ExitStack() as undo:
        with change(who):
            simulation = _simulation_named(name, channels=channels, fresh=fresh, who=who)
            begun = begin(simulation, config, who=who)
            undo.callback(begun.liveness.release)
        undo.pop_all()
    return begun


def _simulation_named(name: str, *, channels: Sequence[str], fresh: bool, who: str) -> Simulation:
    if not re.fullmatch(SLUG_PATTERN, name):
        raise RunRefused(f'"{name}" cannot name a simulation: it must be {SLUG_LIKE}.')
    for channel in channels:
        if not re.fullmatch(CHANNEL_PATTERN, channel):
            raise RunRefused(f'"{channel}" cannot name a channel: it must be {CHANNEL_LIKE}.')
    simulation, is_new = Simulation.objects.get_or_create(name=name)
    if fresh and not is_new:
        simulation = fresh_world(simulation, who=who)
    known = set(simulation.channels.values_list("name", flat=True))
    wanted = channels or ((FIRST_CHANNEL,) if is_new else ())
    for channel in dict.fromkeys(wanted):
        if channel not in known:
            Channel.objects.create(simulation=simulation, name=channel)
    return simulation


def fresh_world(simulation: Simulation, *, who: str) -> Simulation:
    """Start an empty world under the name of an old one, which keeps everything as NAME-1, -2 …

    Roster, channels and settings are the same; nothing is deleted. A run that died is fenced and
    marked interrupted. Raises `RunIsLive` while a run of the old one is live.
    """
    with change(who) as audit:
        old = _free_to_move(simulation)
        name, old.name = old.name, _free_name(old.name)
        old.save(update_fields=["name"])
        fresh = Simulation.objects.create(
            name=name,
            description=old.description,
            policy=old.policy,
            settings=old.settings,
            roster_chosen=old.roster_chosen,
        )
        RosterEntry.objects.bulk_create(
            RosterEntry(simulation=fresh, agent_id=agent)
            for agent in old.roster_entries.order_by("pk").values_list("agent_id", flat=True)
        )
        old.schedules.update(simulation=fresh)
        save_house_rules(fresh, house_rules_of(old).text, who=who)
        _copy_channels(old, fresh, audit)
    return fresh


def _free_to_move(simulation: Simulation) -> Simulation:
    """Return the simulation, locked: a run that begins at this moment waits, or is seen."""
    locked = Simulation.objects.select_for_update().get(pk=simulation.pk)
    clear_the_way(locked)
    if locked.name != simulation.name:
        raise RunIsLive(f"Somebody began {simulation.name} afresh at this moment: try again.")
    return locked


def _copy_channels(old: Simulation, fresh: Simulation, audit: Audit) -> None:
    for channel in old.channels.order_by("pk"):
        copy = Channel.objects.create(
            simulation=fresh,
            name=channel.name,
            topic=channel.topic,
            visibility=channel.visibility,
        )
        members = channel.channel_members.order_by("pk").values_list("agent_id", "agent__slug")
        for agent, slug in members:
            ChannelMember.objects.create(channel=copy, agent_id=agent)
            audit.note(
                Action.CHANNEL_MEMBER_ADDED, agent=slug, detail=f"#{copy.name} in {fresh.name}"
            )


def _free_name(name: str) -> str:
    """Return NAME-1, NAME-2 …: the first that no simulation has, cut to fit."""
    taken = set(Simulation.objects.values_list("name", flat=True))
    number = 1
    while (candidate := f"{name[: 47 - len(str(number))]}-{number}") in taken:
        number += 1
    return candidate
