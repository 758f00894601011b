"""The `engine` application."""

from __future__ import annotations

from django.apps import AppConfig


class EngineConfig(AppConfig):
    name = "engine"
