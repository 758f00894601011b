"""Takes away one safeguard after the other and expects the test of its law to fail.

A guard is a file `tests/guards/NAME.patch`: header lines, then a diff that removes a safeguard.

    # law: An unknown setting stops start-up.
    # tests: tests/site/test_environment.py::test_a, tests/site/test_environment.py::test_b
    # database: postgresql          (only for tests that need it)

All named tests must pass on the code as it is, and each must fail on the code as patched; a test
that cannot be collected or set up proves nothing. Patches are applied to copies, never here.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from compileall import compile_dir
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from py_compile import PycInvalidationMode
from queue import SimpleQueue
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from scripts.forks import run_pytest
from tests.postgres import server_url

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

WORKERS = 2
GUARD_SECONDS = 300
PYTEST = (
    *("-q", "--no-header", "-p", "no:cacheprovider", "--hypothesis-profile=guards"),
    "-Wignore::pytest.PytestAssertRewriteWarning",  # plugins are imported before: see scripts.forks
)
NOT_COPIED = shutil.ignore_patterns(
    ".git", ".venv", "var", "__pycache__", ".*_cache", ".hypothesis"
)


class UnusableGuardError(Exception):
    """A guard, or the code it guards, is in no state to prove anything; says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """One safeguard to remove: the law it keeps, and the tests that must notice."""

    name: str
    path: Path
    law: str
    tests: tuple[str, ...]
    on_postgresql: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Whether each test noticed; `problem` says what was wrong when one did not.

    `first_problem` is that of the first of two tries: such a test needs luck, and should be mended.
    """

    guard: Guard
    problem: str
    first_problem: str
    seconds: float

    def __str__(self) -> str:
        word = "missed" if self.problem else "caught"
        problem = self.problem or self.first_problem
        tail = f"\n        {problem}" if problem else ""
        second = "" if self.problem or not problem else ", at the second try"
        return f"{word}{second}  {self.guard.name} ({self.seconds:.1f} s): {self.guard.law}{tail}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cases:
    """What became of each test case, by dotted name."""

    exit_code: int
    failed: frozenset[str]
    errors: frozenset[str]
    output: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """A worker's copy of the project, and the server its tests may use."""

    root: Path
    number: int
    postgresql: str

    def environment(self, *, on_postgresql: bool) -> Mapping[str, str]:
        """Ours, but for the database: each copy has one of its own.

        No bytecode is written: a file patched twice in a second could be taken for the old one.
        What the copy was made with is checked by what the files hold, not by their times.
        """
        values = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
        if on_postgresql:
            server, _, _ = self.postgresql.partition("?")[0].rpartition("/")
            values["DATABASE_URL"] = f"{server}/guards_{self.number}"
        return values | {"PYTHONDONTWRITEBYTECODE": "1"}

    def run_tests(self, tests: Iterable[str], *, on_postgresql: bool) -> Cases:
        """Run `tests` here."""
        report = self.root / "guard-report.xml"
        report.unlink(missing_ok=True)
        exit_code, output = run_pytest(
            [*PYTEST, f"--junitxml={report}", *tests],
            folder=self.root,
            environment=self.environment(on_postgresql=on_postgresql),
            seconds=GUARD_SECONDS,
        )
        return read_report(report, exit_code=exit_code, output=output)

    def apply(self, guard: Guard, *options: str) -> None:
        """Apply a guard's patch, or revert it with `-R`; nothing is changed when it does not fit."""
        done = subprocess.run(
            ["git", "apply", *options, str(guard.path)],
            cwd=self.root,
            env={**os.environ, "GIT_CEILING_DIRECTORIES": str(self.root.parent)},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
            raise UnusableGuardError(f"the patch does not apply: {reason}")


def read_guard(path: Path) -> Guard:
    """Read a guard's header; refused without a law, tests or a diff."""
    header: dict[str, str] = {}
    text = path.read_text(encoding="utf-8")
    for line in text.splitlines():
        if not line.startswith("# "):
            break
        word, _, rest = line.removeprefix("# ").partition(":")
        header[word] = f"{header.get(word, '')} {rest.strip()}".strip()
    for word in ("law", "tests"):
        if not header.get(word):
            raise UnusableGuardError(f"{path} has no line `# {word}: …` before its diff.")
    if "\n@@ " not in text:
        raise UnusableGuardError(f"{path} has no diff.")
    return Guard(
        name=path.stem,
        path=path,
        law=header["law"],
        tests=tuple(header["tests"].replace(",", " ").split()),
        on_postgresql=header.get("database") == "postgresql",
    )


def read_report(report: Path, *, exit_code: int, output: str) -> Cases:
    """Sort the cases of a JUnit report; without one, nothing failed and nothing passed."""
    cases = list(ET.parse(report).getroot().iter("testcase")) if report.exists() else []

    def with_child(tag: str) -> frozenset[str]:
        found = [case for case in cases if case.find(tag) is not None]
        return frozenset(f"{case.get('classname')}.{case.get('name')}" for case in found)

    return Cases(
        exit_code=exit_code, failed=with_child("failure"), errors=with_child("error"), output=output
    )


def covers(test: str, case: str) -> bool:
    """Whether `case` (dotted) is `test` (a pytest id of a file, class or function) or part of it."""
    name = test.replace(".py", "").replace("/", ".").replace("::", ".")
    return case == name or case.startswith((f"{name}[", f"{name}."))


def judge(guard: Guard, cases: Cases) -> str:
    """What is wrong with the run of a patched copy; empty when every named test failed."""
    tail = cases.output.strip()[-1500:]
    if cases.errors:
        return f"the tests broke instead of failing: {', '.join(sorted(cases.errors))}\n{tail}"
    if cases.exit_code not in (0, 1):
        return f"pytest could not run the tests (exit code {cases.exit_code})\n{tail}"
    passed = [test for test in guard.tests if not any(covers(test, case) for case in cases.failed)]
    return f"still passes without the safeguard: {', '.join(passed)}" if passed else ""


def try_guard(guard: Guard, copy: Copy) -> Outcome:
    """Try a guard in `copy`; one that was missed is tried once more."""
    started_at = time.monotonic()
    first_problem = problem_of(guard, copy)
    return Outcome(
        guard=guard,
        problem=problem_of(guard, copy) if first_problem else "",
        first_problem=first_problem,
        seconds=time.monotonic() - started_at,
    )


def problem_of(guard: Guard, copy: Copy) -> str:
    """Remove the safeguard from `copy`, run its tests, put it back; return what was wrong."""
    try:
        copy.apply(guard)
        try:
            return judge(guard, copy.run_tests(guard.tests, on_postgresql=guard.on_postgresql))
        finally:
            copy.apply(guard, "-R")
    except (UnusableGuardError, TimeoutError) as error:
        return str(error)


def check_baseline(guards: Sequence[Guard], copies: Sequence[Copy]) -> None:
    """All named tests pass on the code as it is; otherwise nothing could be proven."""
    for on_postgresql in (False, True):
        chosen = [guard for guard in guards if guard.on_postgresql is on_postgresql]
        tests = sorted({test for guard in chosen for test in guard.tests})
        parts = [tests[number :: len(copies)] for number in range(min(len(copies), len(tests)))]
        with ThreadPoolExecutor(len(copies)) as pool:
            found = pool.map(partial(Copy.run_tests, on_postgresql=on_postgresql), copies, parts)
        for cases in found:
            if cases.exit_code:
                raise UnusableGuardError(
                    f"The named tests do not pass on the code as it is:\n{cases.output}"
                )


def run_guards(
    guards: Sequence[Guard], copies: Sequence[Copy], report: Callable[[Outcome], None]
) -> list[Outcome]:
    """Try every guard, one at a time in each copy."""
    free: SimpleQueue[Copy] = SimpleQueue()
    for copy in copies:
        free.put(copy)

    def in_some_copy(guard: Guard) -> Outcome:
        copy = free.get()
        try:
            outcome = try_guard(guard, copy)
        finally:
            free.put(copy)
        report(outcome)
        return outcome

    with ThreadPoolExecutor(len(copies)) as pool:
        return list(pool.map(in_some_copy, guards))


def prove(root: Path, names: Sequence[str]) -> list[Outcome]:
    """Copy the project for each worker and try its guards, all or the named ones."""
    paths = sorted((root / "tests" / "guards").glob("*.patch"))
    guards = [read_guard(path) for path in paths if not names or path.stem in names]
    if not guards:
        raise UnusableGuardError("There is no such guard in tests/guards.")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sim-guards-")))
        needs_server = any(guard.on_postgresql for guard in guards)
        url = stack.enter_context(server_url("any", is_hasty=True)) if needs_server else ""
        copies = []
        for number in range(min(WORKERS, len(guards))):
            place = folder / str(number) / "project"
            shutil.copytree(root, place, ignore=NOT_COPIED, symlinks=True)
            compile_dir(place, quiet=1, invalidation_mode=PycInvalidationMode.CHECKED_HASH)
            copies.append(Copy(root=place, number=number, postgresql=url))
        check_baseline(guards, copies)
        return run_guards(guards, copies, lambda outcome: print(outcome, flush=True))


def main(arguments: Sequence[str], root: Path) -> int:
    """Report to stdout; 1 when a guard was missed or could not be tried."""
    parser = argparse.ArgumentParser(prog="python -m scripts.guards")
    parser.add_argument("names", nargs="*", help="guards to try; all by default")
    try:
        outcomes = prove(root, parser.parse_args(arguments).names)
    except UnusableGuardError as error:
        print(error)
        return 1
    for outcome in outcomes:
        if outcome.first_problem:
            print(outcome)
    missed = [outcome for outcome in outcomes if outcome.problem]
    print(f"guards: {len(outcomes) - len(missed)} passed, {len(missed)} failed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], Path(__file__).resolve().parent.parent))
