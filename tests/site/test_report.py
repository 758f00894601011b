"""The report of a run: what its sentences, tables and pictures say equals its rows."""

from __future__ import annotations

import csv
import io
import zipfile
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest
from django.contrib.auth.models import User
from django.urls import reverse

from engine.admin.report import charts
from engine.admin.report.download import cell_of
from engine.laws.checking import check_folder
from engine.models import LlmCall, Run, Simulation, Turn
from tests.site.admin_world import (
    HOSTILE,
    Rows,
    count_queries,
    make_rows,
    page_of,
    person_with,
    say,
    take_turn,
    talk,
)
from tests.site.test_rights_of_pages import finish

if TYPE_CHECKING:
    from pathlib import Path

    from django.test import Client

pytestmark = pytest.mark.django_db

SVG = "{http://www.w3.org/2000/svg}"
PICTURES = [*charts.CHARTS, "timeline"]


@pytest.fixture
def admin_user() -> User:
    """Stand in for pytest-django's, whose password takes a second to hash."""
    return User.objects.create(username="admin", is_staff=True, is_superuser=True)


@pytest.fixture
def rows() -> Rows:
    """Return a run with three turns, two threads and their proposals."""
    rows = make_rows()
    talk(rows, 1)
    talk(rows, 4)
    for number in (1, 2):
        take_turn(rows, number)
    take_turn(rows, 3, agent=rows.bob)
    return rows


def url_of(name: str, *args: object) -> str:
    return reverse(f"admin:engine_run_{name}", args=args)


def picture(client: Client, run: Run, name: str) -> str:
    answer = client.get(url_of("chart", run.pk, name))
    assert answer["Content-Type"] == "image/svg+xml"
    root = ET.fromstring(answer.content)  # noqa: S314 - our own
    return " ".join(" ".join(text.itertext()) for text in root.iter() if text.tag.startswith(SVG))


def test_report_tells_what_happened_in_plain_words(admin_client: Client, rows: Rows) -> None:
    page = page_of(admin_client, url_of("change", rows.run.pk))
    for part in (
        "2 agents took 3 turns in 1 min 35 s.",
        "They wrote 2 posts and 4 answers; people wrote 0 messages.",
        "2 threads came to an end: 2 proposal.",
        "Most turns had ada-lab (2), fewest bob-lab (1).",
        "Worst off was bob-lab, who once waited 3.0 s",
        '<th scope="row">ada-lab and bob-lab</th><td>2</td><td>2</td>',
        "They kept 6 new entries from a turn",
    ):
        assert part in page
    for name in ("turns", "waits", "timeline", "threads", "calls"):
        assert url_of("chart", rows.run.pk, name) in page


def test_report_of_a_run_in_which_nothing_happened(admin_client: Client) -> None:
    run = make_rows().run
    page = page_of(admin_client, url_of("change", run.pk))
    assert "0 agents took 0 turns" in page
    assert "No thread came to an end." in page
    assert "No thread of two agents came to an end." in page
    for name in PICTURES:
        assert picture(admin_client, run, name)


def test_pictures_have_titles_units_and_the_numbers(admin_client: Client, rows: Rows) -> None:
    turns = picture(admin_client, rows.run, "turns")
    for part in ("Turns of agents in run", "turns and stored effects (number)", "ada-lab"):
        assert part in turns
    assert "seconds" in picture(admin_client, rows.run, "waits")
    assert "US dollars" in picture(admin_client, rows.run, "money")
    assert "proposal" in picture(admin_client, rows.run, "threads")
    assert "calls (number)" in picture(admin_client, rows.run, "calls")
    timeline = picture(admin_client, rows.run, "timeline")
    for part in ("by slot", "turn 1, ada-lab, worked", "slot 1", "0 s"):
        assert part in timeline


def test_turns_at_the_same_time_are_drawn_in_slots_of_their_own(rows: Rows) -> None:
    first, second, third = Turn.objects.order_by("number")
    for turn, (start, end) in {first: (0, 10), second: (5, 20), third: (10, 15)}.items():
        turn.selected_at = turn.selected_at.replace(second=start)
        turn.finished_at = turn.selected_at.replace(second=end)
        turn.save()
    drawn = charts.timeline(rows.run)
    boxes = drawn["boxes"]
    assert isinstance(boxes, list)
    assert [box["y"] for box in boxes] == [40, 66, 40]
    assert boxes[0]["says"] == "turn 1, ada-lab, worked, 10.00 s"


def test_pictures_are_cut_and_say_so(
    admin_client: Client, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(charts, "BARS", 1)
    monkeypatch.setattr(charts, "TURNS_DRAWN", 2)
    assert "(the first 1)" in picture(admin_client, rows.run, "turns")
    assert "(the first 2)" in picture(admin_client, rows.run, "timeline")


@pytest.mark.parametrize("name", ["nothing", "x" * 50])
def test_unknown_picture_or_export_is_not_found(
    admin_client: Client, rows: Rows, name: str
) -> None:
    assert admin_client.get(url_of("chart", rows.run.pk, name)).status_code == 404
    assert admin_client.get(url_of("export", rows.run.pk, name)).status_code == 404


def test_export_of_the_page_is_the_exports_own(
    admin_client: Client, rows: Rows, tmp_path: Path
) -> None:
    answer = admin_client.get(url_of("export", rows.run.pk, "jsonl"))
    assert answer["Content-Disposition"] == f'attachment; filename="run-{rows.run.pk}-jsonl.zip"'
    with zipfile.ZipFile(io.BytesIO(b"".join(answer.streaming_content))) as archive:  # type: ignore[attr-defined]
        archive.extractall(tmp_path)
    finish(answer)
    folder = tmp_path / f"run-{rows.run.pk}"
    n_messages = (folder / "messages.jsonl").read_text().count("\n")
    assert n_messages == 6
    assert check_folder(folder).n_records > 0


def test_tables_are_disarmed_and_hold_every_row(admin_client: Client, rows: Rows) -> None:
    say(rows, 9, '=HYPERLINK("http://evil.example")')
    answer = admin_client.get(url_of("export", rows.run.pk, "csv"))
    with zipfile.ZipFile(io.BytesIO(b"".join(answer.streaming_content))) as archive:  # type: ignore[attr-defined]
        text = archive.read("messages.csv").decode("utf-8-sig")
        turns = archive.read("turns.csv").decode("utf-8-sig")
    finish(answer)
    table = list(csv.DictReader(io.StringIO(text)))
    assert len(table) == 7
    assert table[-1]["text"] == '\'=HYPERLINK("http://evil.example")'
    assert table[0]["is_bot"] == "yes"
    assert next(iter(csv.DictReader(io.StringIO(turns))))["waited_seconds"] == "1.0"


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ("=1+1", "'=1+1"),
        ("@x", "'@x"),
        ("+1", "'+1"),
        ("-1", "'-1"),
        (-1, "-1"),
        ("\t=1", "'\t=1"),
        (None, ""),
        (False, "no"),
        ({"a": 1}, '{"a": 1}'),
        ("a\0b", "ab"),
        ("{0} %s {{x}}", "{0} %s {{x}}"),
    ],
)
def test_cell_is_never_a_formula(value: object, cell: str) -> None:
    assert cell_of(value) == cell


def test_export_needs_the_rights_to_what_is_in_it(client: Client, rows: Rows) -> None:
    person_with(client, "view_run")
    assert client.get(url_of("export", rows.run.pk, "csv")).status_code == 403


def test_two_runs_are_compared_honestly(admin_client: Client, rows: Rows) -> None:
    other = Run.objects.create(
        simulation=Simulation.objects.create(name="other"),
        status="running",
        code_version="2",
        configuration={"llm": "anthropic", "daily_posts": 5},
    )
    page = page_of(admin_client, f"{url_of('compare')}?a={rows.run.pk}&b={other.pk}")
    for part in (
        "of different simulations",
        "by different versions of the program",
        "tokens and money are not comparable",
        "One of them is not over yet",
        "<td>3</td><td>0</td><td>-3</td>",
        "<strong>no</strong>",
    ):
        assert part in page
    same = page_of(admin_client, f"{url_of('compare')}?a={rows.run.pk}&b={rows.run.pk}")
    assert "sim-note" not in same.partition("sim-filter")[2]
    assert "<td>+0</td>" in same


def test_comparison_asks_for_two_runs(admin_client: Client, client: Client, rows: Rows) -> None:
    assert "Choose two runs." in page_of(admin_client, url_of("compare"))
    assert admin_client.get(f"{url_of('compare')}?a=999&b=1").status_code in {302, 404}
    person_with(client, "view_message")
    assert client.get(url_of("compare")).status_code == 403


def test_hostile_names_stay_text(admin_client: Client, rows: Rows) -> None:
    LlmCall.objects.update(model=HOSTILE[:90])
    page = page_of(admin_client, url_of("change", rows.run.pk))
    assert "<script>alert" not in page


def test_number_of_queries_does_not_grow(admin_client: Client, rows: Rows) -> None:
    few = count_queries(admin_client, url_of("change", rows.run.pk))
    for seq in range(10, 60, 3):
        talk(rows, seq)
        take_turn(rows, seq)
    assert count_queries(admin_client, url_of("change", rows.run.pk)) <= few <= 30
