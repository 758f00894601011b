"""System checks of a migrated database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.core.checks import Error

from cohorts.triggers import missing_triggers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.apps import AppConfig
    from django.core.checks import CheckMessage


def check_triggers(
    *,
    app_configs: Sequence[AppConfig] | None,
    databases: Sequence[str] | None = None,
    **_: object,
) -> list[CheckMessage]:
    """Refuse a database in which changes of cohorts would go unseen by a running engine."""
    return [
        Error(
            f"The trigger {name} is missing in the database {alias}: a change of cohorts would go "
            "unseen by a run.",
            hint="`manage.py migrate` puts it back.",
            id="cohorts.E001",
        )
        for alias in databases or ()
        for name in missing_triggers(alias)
    ]
