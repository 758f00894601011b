"""Every benchmark runs and tells its figures, in its small form; no figure is judged here."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.__main__ import NAMES
from benchmarks.parts.measuring import Table, compare, duration, percentile, times

ROOT = Path(__file__).parents[2]


def command(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
    )


@pytest.mark.timeout(180)
@pytest.mark.parametrize("name", NAMES)
def test_benchmark_prints_the_machine_and_its_tables(name: str) -> None:
    done = command(f"benchmarks.{name}", "--small")

    assert (done.returncode, done.stderr) == (0, "")
    machine, _, tables = done.stdout.partition("\n\n")
    assert re.fullmatch(r"\d+ cores? \(.+\), load .+, \d{4}-\d\d-\d\d", machine)
    titles = re.findall(r"^### .+$", tables, flags=re.MULTILINE)
    heads = re.findall(r"^\| --- \|( --: \|)+$", tables, flags=re.MULTILINE)
    assert len(titles) == len(heads) > 0
    widths = {line.count(" | ") for line in tables.splitlines() if line.startswith("| ")}
    assert min(widths) > 0


def test_benchmarks_of_no_such_name_are_refused() -> None:
    done = command("benchmarks", "scheduled")

    assert done.returncode == 2
    assert "no benchmark is called scheduled: choose of adopt, " in done.stderr


def test_scene_is_set_before_each_call() -> None:
    calls: list[str] = []

    compare({"one": lambda: calls.append("one")}, n_rounds=2, before=lambda: calls.append("set"))

    assert calls == ["set", "one", "set", "one"]


def test_every_way_is_timed_once_a_round_and_the_baseline_is_one() -> None:
    calls: list[str] = []
    ways = {"one": lambda: calls.append("one"), "two": lambda: calls.append("two")}

    found = compare(ways, n_rounds=3)

    assert calls == ["one", "two", "two", "one", "one", "two", "two", "one"]
    assert list(found) == ["one", "two"]
    assert found["one"].ratio == 1.0
    assert found["two"].ratio > 0


def test_table_is_markdown() -> None:
    table = Table(title="Waits", columns=("size", "ours"), rows=[("10", "1 s"), ("20", "2 s")])

    assert str(table) == (
        "### Waits\n\n| size | ours |\n| --- | --: |\n| 10 | 1 s |\n| 20 | 2 s |\n"
    )


def test_figures_are_told_in_units_that_suit_them() -> None:
    told = [duration(one) for one in (123.4, 1.0, 0.0456, 0.00000789, 0.000000123)]

    assert told == ["123 s", "1.00 s", "45.6 ms", "7.89 µs", "123 ns"]
    assert [times(one) for one in (1.0, 12.34, 4567.0)] == ["1.00 ×", "12.3 ×", "4,567 ×"]


def test_percentile_is_one_of_the_values() -> None:
    values = [float(one) for one in range(100, 0, -1)]

    assert [percentile(values, share) for share in (0.0, 0.5, 0.99, 1.0)] == [
        1.0,
        50.0,
        99.0,
        100.0,
    ]
