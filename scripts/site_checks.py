"""What only a loaded Django can tell: templates that do not compile, and forked migrations."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import django
from django.conf import settings
from django.db.migrations.loader import MigrationLoader
from django.template import Template, TemplateSyntaxError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

OWN_APPS = ("cohorts", "engine")


def forked_apps(leaves: Iterable[tuple[str, str]]) -> Iterator[str]:
    """A sentence for each of our apps in whose migrations two ends can be reached."""
    names: dict[str, list[str]] = {}
    for app, name in leaves:
        names.setdefault(app, []).append(name)
    for app in OWN_APPS:
        if len(names.get(app, [])) > 1:
            yield f"{app} has several last migrations: {', '.join(sorted(names[app]))}."


def broken_templates(root: Path) -> Iterator[str]:
    """A sentence for each of our templates that does not compile."""
    folders = [root / "templates", *(root / app / "templates" for app in OWN_APPS)]
    for path in sorted(path for folder in folders for path in folder.rglob("*") if path.is_file()):
        try:
            Template(path.read_text(encoding="utf-8"))
        except TemplateSyntaxError as error:
            yield f"{path.relative_to(root)} does not compile: {error}"


def main() -> int:
    """Report to stdout; 1 when something is wrong."""
    leaves = MigrationLoader(None).graph.leaf_nodes()
    problems = [*forked_apps(leaves), *broken_templates(Path(settings.BASE_DIR))]
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "simsite.settings")
    django.setup()
    sys.exit(main())
