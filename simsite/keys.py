"""Makes the secrets of a development machine once, in one file that only its owner reads.

Production gives its secrets in the environment; `simsite.settings` never calls this there.
"""

from __future__ import annotations

import os
import secrets
import tempfile
from contextlib import suppress
from typing import TYPE_CHECKING

from cryptography.fernet import Fernet

from simsite.environment import RefusedEnvironment

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

SECRET_KEY_BYTES = 48


def load_or_make(path: Path) -> Mapping[str, str]:
    """The secrets in `path`, made first when there is no such file.

    Processes that start at once all read the same values: a complete file is linked into place,
    which only one of them can do.
    """
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, encoding="utf-8") as draft:
            draft.write(render(fresh_secrets()))
            draft.flush()
            os.fsync(draft.fileno())
            with suppress(FileExistsError):
                os.link(draft.name, path)
    return parse(path)


def fresh_secrets() -> dict[str, str]:
    """New values for every secret that this project has."""
    return {
        "SECRET_KEY": secrets.token_urlsafe(SECRET_KEY_BYTES),
        "SIM_FIELD_KEY": Fernet.generate_key().decode(),
    }


def render(values: Mapping[str, str]) -> str:
    """The text of the file: a line for each secret."""
    lines = [f"{name}={value}\n" for name, value in values.items()]
    return "".join(
        ["# Made once for this machine. Keep it private; back it up with var/.\n", *lines]
    )


def parse(path: Path) -> dict[str, str]:
    """Read what `render` wrote; a file that lacks a secret is refused, never repaired.

    A new SIM_FIELD_KEY would make every stored token unreadable without a word.
    """
    lines = path.read_text(encoding="utf-8").splitlines()
    pairs = [line.partition("=") for line in lines if line.strip() and not line.startswith("#")]
    values = {name.strip(): value.strip() for name, _, value in pairs}
    for name in fresh_secrets():
        if not values.get(name):
            raise RefusedEnvironment(
                f"{path} has no {name}: put the line back, or delete the file to have new secrets made"
                " (stored tokens must then be entered again)."
            )
    return values
