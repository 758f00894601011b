"""The `engine` application: members of private channels move the topology version too, and what
a driver holds in memory leaves a note in its inbox when it is saved."""

from __future__ import annotations

from importlib import import_module

from django.apps import AppConfig
from django.db.models.signals import post_delete, post_save

from cohorts.signals import agents_saved
from cohorts.triggers import watch


class EngineConfig(AppConfig):
    name = "engine"
    verbose_name = "Simulations"

    def ready(self) -> None:
        watch(self.get_model("ChannelMember"))
        inbox = import_module("engine.inbox")  # it imports models, which are there only now
        agents_saved.connect(inbox.note_agents, dispatch_uid="engine.note_agents")
        for signal in (post_save, post_delete):
            signal.connect(
                inbox.note_roster_entry,
                sender=self.get_model("RosterEntry"),
                dispatch_uid="engine.note_roster_entry",
            )
        post_save.connect(
            inbox.note_channel,
            sender=self.get_model("Channel"),
            dispatch_uid="engine.note_channel",
        )
