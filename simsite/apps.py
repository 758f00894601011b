"""The site itself as an application: the checks of the settings, and who may do what."""

from __future__ import annotations

from importlib import import_module

from django.apps import AppConfig, apps
from django.core.checks import register
from django.db.models.signals import post_migrate

from simsite.checks import check_rights, check_settings


class SimsiteConfig(AppConfig):
    name = "simsite"
    verbose_name = "Site"

    def ready(self) -> None:
        register(check_settings)
        register(check_rights)
        *_, last = apps.get_app_configs()  # its permissions are made last
        people = import_module("simsite.people")  # it imports models, which are there only now
        post_migrate.connect(people.keep_groups, sender=last, dispatch_uid="simsite.keep_groups")
