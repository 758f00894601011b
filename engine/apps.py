"""The `engine` application: members of private channels move the topology version too."""

from __future__ import annotations

from django.apps import AppConfig

from cohorts.triggers import watch


class EngineConfig(AppConfig):
    name = "engine"

    def ready(self) -> None:
        watch(self.get_model("ChannelMember"))
