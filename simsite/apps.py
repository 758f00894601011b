"""The site itself as an application: it brings the checks of the settings."""

from __future__ import annotations

from django.apps import AppConfig
from django.core.checks import register

from simsite.checks import check_settings


class SimsiteConfig(AppConfig):
    name = "simsite"
    verbose_name = "Site"

    def ready(self) -> None:
        register(check_settings)
