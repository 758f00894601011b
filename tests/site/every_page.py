"""One row of each kind that has pages in the admin, and where the pages of our own are."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING

from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group, User
from django.urls import reverse

from cohorts import operations
from cohorts.models import Agent, AgentVersion, Cohort, TopologyChange
from engine.models import (
    Alert,
    AlertReader,
    Channel,
    DayCap,
    HouseRules,
    LlmCall,
    Message,
    ModelPrice,
    Turn,
)
from tests.site.admin_world import NOON, Rows, make_rows, remember, take_turn, talk
from tests.site.schedule_rows import make_schedule

if TYPE_CHECKING:
    from django.db.models import Model


def one_of_each() -> tuple[Rows, dict[str, Model]]:
    """Return a world, and one row of each kind that has pages, by the name of its pages."""
    rows = make_rows()
    proposal = talk(rows, 1)
    take_turn(rows, 1)
    agent = Agent(slug="cy-lab", bot_name="CyBot")
    operations.save_agent(agent, who="setup")
    cohort = Cohort.objects.create(name="makers", created_by="root")
    person = User.objects.create(username="somebody-else", is_staff=True)
    found: dict[str, Model | None] = {
        "auth_user": person,
        "auth_group": Group.objects.create(name="Guests"),
        "admin_logentry": LogEntry.objects.create(user=person, object_repr="x", action_flag=1),
        "cohorts_agent": agent,
        "cohorts_agentversion": AgentVersion.objects.first(),
        "cohorts_cohort": cohort,
        "cohorts_topologychange": TopologyChange.objects.first(),
        "engine_simulation": rows.simulation,
        "engine_houserules": HouseRules.objects.create(
            simulation=rows.simulation, number=1, text="x", saved_by="root"
        ),
        "engine_run": rows.run,
        "engine_turn": Turn.objects.first(),
        "engine_llmcall": LlmCall.objects.first(),
        "engine_message": Message.objects.get(root=None),
        "engine_memory": remember(rows, "x"),
        "engine_proposal": proposal,
        "engine_runschedule": make_schedule(rows.simulation),
        "engine_alert": Alert.objects.create(
            kind="failed",
            key="x",
            simulation=rows.simulation,
            run=rows.run,
            at=NOON,
            sentence="It failed.",
            next_step="See why.",
        ),
        "engine_alertreader": AlertReader.objects.create(person=person, kinds=[]),
        "engine_modelprice": ModelPrice.objects.create(
            model="m",
            since=date(2026, 1, 1),
            **dict.fromkeys(("input", "output", "cache_write", "cache_read"), Decimal(1)),
        ),
        "private": Channel.objects.create(
            simulation=rows.simulation, name="lab", visibility="private"
        ),
        "engine_daycap": DayCap.objects.create(pk=1, changed_by="root"),
    }
    return rows, {name: row for name, row in found.items() if row is not None}


def url_of(name: str, rows: Rows, one: dict[str, Model]) -> str:
    """Return where a page of our own is."""
    args: dict[str, tuple[int | str, ...]] = {
        "engine_run_part": (rows.run.pk, "now"),
        "engine_run_chart": (rows.run.pk, "turns"),
        "cohorts_agent_export": ("csv",),
        "engine_run_export": (rows.run.pk, "csv"),
        **dict.fromkeys(
            (
                *("engine_matrix", "engine_in_use", "engine_topology_apply"),
                *("engine_pairs", "engine_try", "engine_run_compare", "cohorts_agent_load"),
                "engine_keep",
            ),
            (),
        ),
        **dict.fromkeys(
            ("cohorts_agent_quiet", "cohorts_agent_differences", "cohorts_agent_copy"),
            (rows.ada.pk,),
        ),
        "engine_runschedule_now": (one["engine_runschedule"].pk,),
        "engine_start": (rows.simulation.pk,),
        "engine_search": (rows.simulation.pk,),
        "engine_pairs_picture": (rows.simulation.pk,),
        "auth_user_password_change": (one["auth_user"].pk,),
        "cohorts_cohort_members": (one["cohorts_cohort"].pk,),
        "engine_proposal_review": (one["engine_proposal"].pk,),
        "engine_simulation_talk": (rows.simulation.pk,),
        "engine_roster": (rows.simulation.pk,),
        "engine_channel_talk": (rows.simulation.pk, rows.channel.pk),
        "engine_channel_members": (rows.simulation.pk, one["private"].pk),
        "engine_thread": (rows.simulation.pk, one["engine_message"].pk),
    }
    return reverse(f"admin:{name}", args=args.get(name, (rows.run.pk,)))
