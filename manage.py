#!/usr/bin/env python
"""Django's command line, with this project's settings."""

from __future__ import annotations

import os
import sys

from django.core.management import execute_from_command_line

from simsite.environment import RefusedEnvironment


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "simsite.settings")
    try:
        execute_from_command_line(sys.argv)
    except RefusedEnvironment as refusal:
        sys.stderr.write(f"{refusal}\n")
        sys.exit(2)


if __name__ == "__main__":
    main()
