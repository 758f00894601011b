"""`manage.py demo`: a first look; an invented archipelago talks itself through one rehearsal."""

from __future__ import annotations

import secrets
from typing import Final

from django.contrib.auth import get_user_model
from django.core.management import BaseCommand, call_command

from engine import runs
from engine.models import Run, Simulation
from engine.roster import DEMO, DEMO_FOLDER

ADDRESS: Final = "http://127.0.0.1:8000/admin/"
LOG_IN: Final = "admin"


class Command(BaseCommand):
    """Makes what is missing and touches nothing that is there: a second call shows it again."""

    help = "Make the demo simulation, run it once, and say where to look."
    # The database may not exist yet.
    requires_system_checks = ()
    requires_migrations_checks = False

    def handle(self, **_: object) -> None:
        call_command("migrate", verbosity=0)
        if not Simulation.objects.filter(name=DEMO).exists():
            self.stderr.write(f"Loading the roster of {DEMO} …")
            call_command(
                "loadroster",
                str(DEMO_FOLDER),
                simulation=DEMO,
                stdout=self.stdout,
                stderr=self.stderr,
            )
        self._rehearse()
        password = make_first_user()
        self.stdout.write(f"\nStart the admin with `make serve`, then open {ADDRESS}")
        if password is None:
            self.stdout.write("Log in as before: the password was shown when it was made.")
        else:
            self.stdout.write(f"Log in as {LOG_IN} with the password {password}")
            self.stdout.write("It is shown this once.")

    def _rehearse(self) -> None:
        """Run to the end, once: what is there already is shown again."""
        completed = Run.objects.filter(simulation__name=DEMO, status=Run.Status.COMPLETED).first()
        if completed is None:
            call_command(
                "runsim",
                simulation=DEMO,
                until_idle=True,
                seed=1,
                stdout=self.stdout,
                stderr=self.stderr,
            )
            return
        self.stdout.write(runs.report(completed.pk))
        self.stdout.write(
            "It is there from before; `manage.py runsim --simulation demo --fresh --until-idle` "
            "starts anew and keeps this one."
        )


def make_first_user() -> str | None:
    """Make the administrator of an installation that has no user; return the password if so."""
    users = get_user_model()._default_manager
    if users.exists():
        return None
    password = secrets.token_urlsafe(12)
    users.create_superuser(LOG_IN, password=password)
    return password
