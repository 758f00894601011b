"""The secrets of a development machine: made once, private, the same for everybody who starts."""

from __future__ import annotations

import stat
import threading
from typing import TYPE_CHECKING

import pytest

from simsite import keys
from simsite.environment import RefusedEnvironment

if TYPE_CHECKING:
    from pathlib import Path


def test_keys_are_made_once(tmp_path: Path) -> None:
    file = tmp_path / "var" / "secrets.env"

    first = keys.load_or_make(file)

    assert set(first) == {"SECRET_KEY", "SIM_FIELD_KEY"}
    assert len(first["SECRET_KEY"]) == 64
    assert keys.load_or_make(file) == first
    assert keys.load_or_make(tmp_path / "other.env") != first


def test_keys_are_for_their_owner_only(tmp_path: Path) -> None:
    file = tmp_path / "secrets.env"
    keys.load_or_make(file)

    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["secrets.env"]


def test_keys_are_the_same_for_processes_that_start_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "secrets.env"
    barrier = threading.Barrier(4, timeout=10)
    seen: list[object] = []
    make = keys.fresh_secrets

    def make_together() -> dict[str, str]:
        """Hold every thread until all of them found no file and hold a draft of their own."""
        if not file.exists():
            barrier.wait()
        return make()

    monkeypatch.setattr(keys, "fresh_secrets", make_together)
    threads = [
        threading.Thread(target=lambda: seen.append(keys.load_or_make(file))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)

    assert barrier.broken is False
    assert seen == [keys.parse(file)] * 4


def test_keys_are_never_repaired(tmp_path: Path) -> None:
    file = tmp_path / "secrets.env"
    file.write_text("# a note\n\nSECRET_KEY = abc \n")

    with pytest.raises(RefusedEnvironment) as refusal:
        keys.load_or_make(file)

    assert str(refusal.value) == (
        f"{file} has no SIM_FIELD_KEY: put the line back, or delete the file to have new secrets made"
        " (stored tokens must then be entered again)."
    )
