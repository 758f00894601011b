"""The small scripts behind `make check`: each reports what it is for, and nothing else."""

from __future__ import annotations

from functools import partial
from importlib.metadata import distributions
from typing import TYPE_CHECKING

import pytest

from scripts import licences, site_checks, sizes

if TYPE_CHECKING:
    from pathlib import Path


def function_of(lines: int) -> str:
    return "def long():\n" + "    pass\n" * (lines - 1)


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("engine/a.py", function_of(40), ""),
        ("engine/a.py", function_of(41), "engine/a.py:1 long() has 41 lines; 40 are allowed.\n"),
        ("engine/a.py", "x = 1\n" * 400, ""),
        ("engine/a.py", "x = 1\n" * 401, "engine/a.py has 401 lines; 400 are allowed.\n"),
        ("tests/a.py", function_of(41), ""),
        ("tests/a.py", "x = 1\n" * 401, "tests/a.py has 401 lines; 400 are allowed.\n"),
        ("engine/migrations/a.py", "x = 1\n" * 401, ""),
    ],
)
def test_sizes_report_what_is_too_long(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, text: str, expected: str
) -> None:
    (tmp_path / name).parent.mkdir(parents=True)
    (tmp_path / name).write_text(text, encoding="utf-8")

    assert sizes.main(tmp_path) == (1 if expected else 0)
    assert capsys.readouterr().out == expected


@pytest.mark.parametrize(
    ("stated", "allowed"),
    [
        (["MIT"], True),
        (["Apache-2.0 OR BSD-3-Clause"], True),
        (["LGPL-3.0-only"], True),
        (["License :: OSI Approved :: GNU General Public License v3 (GPLv3)"], False),
        (["License :: OSI Approved :: GNU GPLv3", "License :: OSI Approved :: MIT License"], True),
        (["AGPL-3.0-only"], False),
        (["Proprietary, submitted"], False),
        ([], False),
    ],
)
def test_licence_is_judged_by_what_is_stated(stated: list[str], allowed: bool) -> None:
    assert licences.is_allowed(stated) is allowed


def test_licences_report_a_package_that_states_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, licence in (("fine", "License: MIT\n"), ("odd", "")):
        info = tmp_path / f"{name}-1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n{licence}", encoding="utf-8"
        )
    monkeypatch.setattr(licences, "distributions", partial(distributions, path=[str(tmp_path)]))

    assert licences.main() == 1
    assert capsys.readouterr().out == "Licence not allowed: odd: no licence stated\n"


@pytest.mark.parametrize(("title", "allowed"), [("MIT License", True), ("Buy one", False)])
def test_licence_is_read_from_its_file_when_nothing_is_stated(
    tmp_path: Path, title: str, allowed: bool
) -> None:
    info = tmp_path / "quiet-1.dist-info"
    (info / "licenses").mkdir(parents=True)
    (info / "licenses" / "LICENSE").write_text(f"{title}\n\nCopyright\n", encoding="utf-8")
    (info / "METADATA").write_text(
        "Metadata-Version: 2.4\nName: quiet\nVersion: 1\nLicense-File: LICENSE\n",
        encoding="utf-8",
    )
    [package] = distributions(path=[str(tmp_path)])

    assert licences.is_allowed(licences.stated_licences(package)) is allowed


def test_forked_migrations_are_named() -> None:
    leaves = [("auth", "0001"), ("auth", "0002"), ("engine", "0003_b"), ("engine", "0003_a")]

    assert list(site_checks.forked_apps(leaves)) == [
        "engine has several last migrations: 0003_a, 0003_b."
    ]


def test_broken_templates_are_named(tmp_path: Path) -> None:
    folder = tmp_path / "engine" / "templates"
    folder.mkdir(parents=True)
    (folder / "good.html").write_text("{% if a %}{% endif %}", encoding="utf-8")
    (folder / "bad.html").write_text("{% if a %}", encoding="utf-8")

    (problem,) = site_checks.broken_templates(tmp_path)

    assert problem.startswith("engine/templates/bad.html does not compile: Unclosed tag")


@pytest.mark.parametrize(("template", "code"), [("{% if a %}{% endif %}", 0), ("{% endif %}", 1)])
def test_site_checks_give_an_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, template: str, code: int
) -> None:
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates" / "a.html").write_text(template, encoding="utf-8")
    monkeypatch.setattr("django.conf.settings.BASE_DIR", tmp_path)

    assert site_checks.main() == code
