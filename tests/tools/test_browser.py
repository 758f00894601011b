"""The browser that tests need: found, brought, or asked for in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import browser


@pytest.fixture
def bin_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the only folder in which programs are."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CHROMIUM", raising=False)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    return tmp_path


def program(path: Path, says: str = "exit 0") -> Path:
    path.write_text(f"#!/bin/sh\n{says}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def test_browser_that_is_there_is_taken(bin_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = program(bin_folder / "google-chrome")
    assert browser.bring_browser() == str(found)
    named = program(bin_folder / "mine")
    monkeypatch.setenv("CHROMIUM", "mine")
    assert browser.bring_browser() == str(named)


def test_browser_is_installed_where_it_can_be(bin_folder: Path) -> None:
    chromium = bin_folder / "chromium"
    install = f'[ "$2" = update ] || {{ echo "#!" > {chromium}; /bin/chmod 755 {chromium}; }}'
    program(bin_folder / "apt-get", install)
    assert browser.main() == 0
    assert browser.find_browser() == str(chromium)


@pytest.mark.parametrize("how", ["none", "named", "refused"])
def test_browser_that_cannot_be_had_is_asked_for(
    how: str, bin_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if how == "named":
        monkeypatch.setenv("CHROMIUM", "mine")
    if how == "refused":
        program(bin_folder / "apt-get", "echo no network >&2; exit 1")
    assert browser.main() == 1
    (said,) = capsys.readouterr().err.splitlines()
    assert said.endswith("install Chromium, or name a program of its kind in CHROMIUM.")
    assert {"none": "Chromium is", "named": "mine is", "refused": "no network"}[how] in said
