"""The version of the code: its number, and the commit where it runs from a checkout."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

NUMBER = "0.1.0"


def code_version(root: Path) -> str:
    """Return `NUMBER`, with the first 12 digits of the commit if `root` is a git checkout."""
    git = root / ".git"
    head = git / "HEAD"
    if not head.is_file():
        return NUMBER
    name = head.read_text().strip()
    commit = _commit(git, name.removeprefix("ref: ")) if name.startswith("ref: ") else name
    return f"{NUMBER}+{commit[:12]}" if commit else NUMBER


def _commit(git: Path, ref: str) -> str:
    loose = git / ref
    if loose.is_file():
        return loose.read_text().strip()
    packed = git / "packed-refs"
    lines = packed.read_text().splitlines() if packed.is_file() else []
    return next((line.split()[0] for line in lines if line.endswith(f" {ref}")), "")
