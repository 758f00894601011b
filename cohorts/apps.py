"""The `cohorts` application."""

from __future__ import annotations

from django.apps import AppConfig


class CohortsConfig(AppConfig):
    name = "cohorts"
