"""`manage.py migrate`, which repairs what its own checks would refuse to start over."""

from __future__ import annotations

from django.core.management.commands import migrate

from cohorts.triggers import install_triggers


class Command(migrate.Command):
    """Puts missing triggers back first: the check for them would stop the migrate that does."""

    def handle(self, *args: str, **options: str) -> str | None:
        install_triggers(options["database"])
        return super().handle(*args, **options)
