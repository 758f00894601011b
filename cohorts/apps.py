"""The `cohorts` application: it watches its tables, and keeps the triggers in place."""

from __future__ import annotations

from django.apps import AppConfig
from django.core.checks import Tags, register
from django.db.models.signals import post_migrate

from cohorts.checks import check_triggers
from cohorts.triggers import install_triggers, watch


class CohortsConfig(AppConfig):
    name = "cohorts"
    verbose_name = "Agents and cohorts"

    def ready(self) -> None:
        watch(self.get_model("Membership"))
        watch(self.get_model("Agent"), column="status")
        register(check_triggers, Tags.database)
        post_migrate.connect(_install, dispatch_uid="cohorts.install_triggers")


def _install(using: str, **_: object) -> None:
    install_triggers(using)
