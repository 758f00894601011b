"""Brings the browser that `make test-browser` needs, where this machine has a way to get it.

    python -m scripts.browser

A browser that is there is taken as it is: by the name in CHROMIUM, or by the usual names.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "chrome")
WHAT_TO_DO: Final = "install Chromium, or name a program of its kind in CHROMIUM."


class NoBrowser(Exception):
    """There is none, and none can be had; the text says what to do."""


def find_browser() -> str:
    """Return the program of the browser; raise NoBrowser if there is none."""
    named = os.environ.get("CHROMIUM")
    for name in (named,) if named else NAMES:
        if path := shutil.which(name):
            return path
    raise NoBrowser(f"{named or 'Chromium'} is not there: {WHAT_TO_DO}")


def bring_browser() -> str:
    """Return the program of the browser, after installing it if need be; raise NoBrowser."""
    try:
        return find_browser()
    except NoBrowser:
        if os.environ.get("CHROMIUM") or shutil.which("apt-get") is None or os.geteuid() != 0:
            raise
    for command in (["update"], ["install", "--yes", "--no-install-recommends", "chromium"]):
        _apt_get(command)
    return find_browser()


def _apt_get(command: Sequence[str]) -> None:
    done = subprocess.run(
        ["apt-get", "--quiet", *command],
        env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise NoBrowser(f"apt-get {command[0]} failed ({' '.join(last)}): {WHAT_TO_DO}")


def main() -> int:
    try:
        bring_browser()
    except NoBrowser as none:
        print(none, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
