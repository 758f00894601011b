"""The runner of the guards: what counts as caught, and everything that does not."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import pytest

from scripts import guards

if TYPE_CHECKING:
    from pathlib import Path

SOURCE = "def allowed(n):\n    return n > 0\n"
TESTS = """
import product

def test_zero_is_refused():
    assert not product.allowed(0)

def test_one_is_allowed():
    assert product.allowed(1)
"""
CONFTEST = """
from hypothesis import settings
settings.register_profile("guards", deadline=None)
"""
ZERO = "tests/test_product.py::test_zero_is_refused"
ONE = "tests/test_product.py::test_one_is_allowed"


def diff(old: str, new: str) -> str:
    return (
        "--- a/product.py\n+++ b/product.py\n@@ -1,2 +1,2 @@\n"
        f" def allowed(n):\n-    {old}\n+    {new}\n"
    )


UNGUARDED = diff("return n > 0", "return n > -1")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of its own, without Django."""
    monkeypatch.delenv("DJANGO_SETTINGS_MODULE")
    root = tmp_path / "project"
    (root / "tests" / "guards").mkdir(parents=True)
    (root / "pyproject.toml").write_text("[tool.pytest.ini_options]\n", encoding="utf-8")
    (root / "product.py").write_text(SOURCE, encoding="utf-8")
    (root / "tests" / "__init__.py").touch()
    (root / "tests" / "conftest.py").write_text(CONFTEST, encoding="utf-8")
    (root / "tests" / "test_product.py").write_text(textwrap.dedent(TESTS), encoding="utf-8")
    return root


def add_guard(project: Path, name: str, tests: str, patch: str) -> None:
    text = f"# law: Zero is refused.\n# tests: {tests}\n{patch}"
    (project / "tests" / "guards" / f"{name}.patch").write_text(text, encoding="utf-8")


def problems(project: Path, *names: str) -> dict[str, str]:
    return {
        outcome.guard.name: outcome.problem.partition("\n")[0]
        for outcome in guards.prove(project, names)
    }


def test_guards_tell_caught_from_missed(project: Path) -> None:
    add_guard(project, "caught", ZERO, UNGUARDED)
    add_guard(project, "missed", ONE, UNGUARDED)
    add_guard(project, "half", f"{ZERO}, {ONE}", UNGUARDED)
    add_guard(project, "stale", ZERO, diff("return n >= 0", "return True"))
    add_guard(project, "broken", ZERO, diff("return n > 0", "return ("))

    assert problems(project) == {
        "caught": "",
        "missed": f"still passes without the safeguard: {ONE}",
        "half": f"still passes without the safeguard: {ONE}",
        "stale": "the patch does not apply: error: product.py: patch does not apply",
        "broken": "the tests broke instead of failing: .tests.test_product",
    }
    assert (project / "product.py").read_text(encoding="utf-8") == SOURCE


def test_guards_give_an_exit_code_and_a_last_line(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add_guard(project, "caught", ZERO, UNGUARDED)
    add_guard(project, "missed", ONE, UNGUARDED)

    assert guards.main(["caught"], project) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "guards: 1 passed, 0 failed"
    assert guards.main(["missed"], project) == 1
    *_, missed, problem, last = capsys.readouterr().out.splitlines()
    assert missed.startswith("missed  missed (")
    assert problem.strip().startswith("still passes without the safeguard")
    assert last == "guards: 0 passed, 1 failed"


def test_guards_prove_nothing_on_code_whose_tests_fail(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "product.py").write_text("def allowed(n):\n    return True\n", encoding="utf-8")
    add_guard(project, "caught", ZERO, UNGUARDED)

    assert guards.main([], project) == 1
    assert capsys.readouterr().out.startswith("The named tests do not pass on the code as it is:\n")


def test_guard_that_is_caught_by_luck_says_so(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lucky = """
from pathlib import Path

import product

def test_lucky():
    tried = Path("tried")
    if product.allowed(0) and tried.exists():
        raise AssertionError
    if product.allowed(0):
        tried.touch()
"""
    (project / "tests" / "test_lucky.py").write_text(lucky, encoding="utf-8")
    add_guard(project, "lucky", "tests/test_lucky.py::test_lucky", UNGUARDED)

    assert guards.main([], project) == 0
    *_, caught, problem, last = capsys.readouterr().out.splitlines()
    assert caught.startswith("caught, at the second try  lucky (")
    assert problem.strip().startswith("still passes without the safeguard")
    assert last == "guards: 1 passed, 0 failed"


def test_guards_prove_nothing_by_a_test_that_is_not_there(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add_guard(project, "caught", "tests/test_product.py::test_gone", UNGUARDED)

    assert guards.main([], project) == 1
    assert "test_gone" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("# tests: a\n@@ ", "has no line `# law: …` before its diff."),
        ("# law: a\n\n@@ ", "has no line `# tests: …` before its diff."),
        ("# law: a\n# tests: b\n", "has no diff."),
    ],
)
def test_guard_without_its_parts_is_refused(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "a.patch"
    path.write_text(text, encoding="utf-8")

    with pytest.raises(guards.UnusableGuardError) as refusal:
        guards.read_guard(path)

    assert str(refusal.value) == f"{path} {sentence}"


def test_guard_is_read_from_its_header(tmp_path: Path) -> None:
    path = tmp_path / "a.patch"
    path.write_text(
        "# law: One sentence\n# law: on two lines.\n# tests: a, b\n# tests: c\n"
        "# database: postgresql\n--- a\n+++ b\n@@ -1 +1 @@\n",
        encoding="utf-8",
    )

    guard = guards.read_guard(path)

    assert guard.law == "One sentence on two lines."
    assert guard.tests == ("a", "b", "c")
    assert guard.on_postgresql is True


def test_unknown_guard_is_refused(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert guards.main(["unknown"], project) == 1
    assert capsys.readouterr().out == "There is no such guard in tests/guards.\n"


@pytest.mark.parametrize(
    ("test", "case", "expected"),
    [
        ("tests/a.py::test_b", "tests.a.test_b", True),
        ("tests/a.py::test_b", "tests.a.test_b[1.py-x]", True),
        ("tests/a.py::test_b", "tests.a.test_bc", False),
        ("tests/a.py::TestA", "tests.a.TestA.test_b", True),
        ("tests/a.py", "tests.a.test_b", True),
        ("tests/a.py", "tests.ab.test_b", False),
    ],
)
def test_named_test_covers_its_cases(test: str, case: str, expected: bool) -> None:
    assert guards.covers(test, case) is expected


def test_copy_has_a_database_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgres://me@host/theirs")
    copy = guards.Copy(root=tmp_path, number=1, postgresql="postgres://me@host:1/own?a=b")

    assert "DATABASE_URL" not in copy.environment(on_postgresql=False)
    assert copy.environment(on_postgresql=True)["DATABASE_URL"] == "postgres://me@host:1/guards_1"
