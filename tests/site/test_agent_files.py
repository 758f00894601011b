"""Agents as files: what is taken away is loaded again unchanged, and nothing else gets in."""

from __future__ import annotations

import csv
import io
import zipfile
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from cohorts import operations
from cohorts.exporter import TABLE_COLUMNS
from cohorts.models import Agent, Cohort, Membership
from cohorts.tables import armed, disarmed
from engine.admin.agent import files
from tests.doors import make_world
from tests.site.admin_world import HOSTILE, person_with
from tests.site.test_rights_of_pages import finish

if TYPE_CHECKING:
    from django.test import Client

pytestmark = pytest.mark.django_db

LOAD = "/admin/cohorts/agent/load/"


@pytest.fixture
def admin_user() -> User:
    """Stand in for pytest-django's, whose password takes a second to hash."""
    return User.objects.create(username="admin", is_staff=True, is_superuser=True)


def taken_away(client: Client, kind: str) -> bytes:
    answer: Any = client.get(reverse("admin:cohorts_agent_export", args=[kind]))
    content = b"".join(answer.streaming_content)
    finish(answer)
    return content


def sent(client: Client, name: str, content: bytes) -> str:
    upload = SimpleUploadedFile(name, content)
    page = client.post(LOAD, {"file": upload})
    assert page.status_code == 200
    return page.content.decode()


def loaded(client: Client, page: str) -> str:
    asked = page.partition('name="yes" value="')[2].partition('"')[0]
    return client.post(LOAD, {"yes": asked}, follow=True).content.decode()


def table(*rows: dict[str, str]) -> bytes:
    text = io.StringIO()
    lines = csv.DictWriter(text, TABLE_COLUMNS)
    lines.writeheader()
    for row in rows:
        lines.writerow({"status": "active", "public_profile": "It says something.", **row})
    return text.getvalue().encode()


@pytest.mark.parametrize("kind", files.EXPORTS)
def test_what_is_taken_away_is_loaded_again_unchanged(admin_client: Client, kind: str) -> None:
    make_world(cohorts={"north": ("ash", "elm"), "south": ("elm",)})
    ash = Agent.objects.get(slug="ash")
    ash.represents = '=HYPERLINK("http://evil.example")'
    ash.private_instructions = f"Be kind.\n\n{HOSTILE}\n{{0}} %s 🜂"
    operations.save_agent(ash, who="eve")
    Agent.objects.filter(slug="oak").update(status="retired")

    content = taken_away(admin_client, kind)
    page = sent(admin_client, f"agents.{kind}", content)

    assert "Everything is so already." in page
    assert "<li>3 agents same</li>" in page


def test_table_is_previewed_counted_and_loaded_after_a_yes(admin_client: Client) -> None:
    make_world(agents=("ash", "elm"))
    content = table(
        {"agent_id": "ash", "bot_name": "Ash", "represents": "Other", "cohorts": "north; south"},
        {"agent_id": "new", "bot_name": "New", "cohorts": "north"},
    )
    page = sent(admin_client, "Agents.CSV", content)
    for line in (
        "1 agents changed",
        "1 agents created",
        "2 cohorts created",
        "3 memberships added",
    ):
        assert f"<li>{line}</li>" in page
    assert Agent.objects.count() == 2

    done = loaded(admin_client, page)

    assert "Loaded: 1 agents changed" in done
    assert Agent.objects.get(slug="new").public_profile == "It says something."
    assert Membership.objects.count() == 3
    assert Cohort.objects.get(name="north").created_by == "admin"
    assert "not kept any more" in loaded(admin_client, page)


def test_what_changed_meanwhile_is_shown_again_before(admin_client: Client) -> None:
    page = sent(admin_client, "a.csv", table({"agent_id": "new", "bot_name": "New"}))
    operations.save_agent(Agent(slug="new", bot_name="Newer"), who="eve")
    again = loaded(admin_client, page)
    assert "Something changed meanwhile. Nothing is loaded" in again
    assert "<li>1 agents changed</li>" in again
    assert Agent.objects.get(slug="new").bot_name == "Newer"
    loaded(admin_client, again)
    assert Agent.objects.get(slug="new").bot_name == "New"


def test_name_that_was_taken_meanwhile_is_told(admin_client: Client) -> None:
    page = sent(admin_client, "a.csv", table({"agent_id": "new", "bot_name": "New"}))
    operations.save_agent(Agent(slug="other", bot_name="New"), who="eve")
    assert "is that of the agent other" in loaded(admin_client, page)


def test_everything_wrong_is_told_by_its_line(admin_client: Client) -> None:
    content = table(
        {"agent_id": "Bad Id", "bot_name": "Ash"},
        {"agent_id": "elm", "bot_name": "no name"},
        {"agent_id": "../fir", "bot_name": "Fir"},
    )
    page = sent(admin_client, "a.csv", content)
    for part in ("agents.csv, line 2", "agents.csv, line 3", "agents.csv, line 4"):
        assert part in page
    assert not Agent.objects.exists()


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.txt", b"x", "Load a roster folder as .zip"),
        ("a.zip", b"x", "no zip file that can be read"),
        ("a.xlsx", b"x", "no workbook that can be read"),
        ("a.csv", b"a,b\n1,2\n", "The column agent_id is missing"),
        ("a.csv", b"\xff\xff", "neither UTF-8 nor UTF-16"),
    ],
)
def test_file_of_another_kind_is_refused_in_a_sentence(
    admin_client: Client, name: str, content: bytes, says: str
) -> None:
    assert says in sent(admin_client, name, content)


def test_no_file_is_asked_for(admin_client: Client) -> None:
    assert "This field is required" in admin_client.post(LOAD, {}).content.decode()


def packed(**members: str) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return content.getvalue()


def test_zip_that_leads_out_of_its_folder_stays_inside(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = packed(**{"../../../evil.md": "x", "/abs.csv": "x", "r/x.py": "x"})
    page = sent(admin_client, "a.zip", content)
    assert "agents.csv: It is missing." in page
    monkeypatch.setattr(files, "LARGEST_BYTES", 10)
    assert "larger than 20 MB" in sent(admin_client, "a.zip", packed(**{"agents.csv": "x" * 99}))


def test_bomb_is_refused_before_it_is_unpacked(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = packed(**{"agents.csv": "0" * 3_000_000})
    monkeypatch.setattr(files, "LARGEST_BYTES", 1_000_000)
    assert len(content) < 10_000
    assert "larger than 20 MB" in sent(admin_client, "a.zip", content)


def test_formulas_of_a_workbook_are_not_taken_for_texts(admin_client: Client) -> None:
    openpyxl = import_module("openpyxl")
    book = openpyxl.Workbook()
    book.active.append(TABLE_COLUMNS)
    book.active.append(["new", "New", "=1+1", "active", "Says it.", None, None])
    content = io.BytesIO()
    book.save(content)
    page = sent(admin_client, "a.xlsx", content.getvalue())
    loaded(admin_client, page)
    assert Agent.objects.get(slug="new").represents == ""


def test_files_are_for_who_may_change_agents(client: Client) -> None:
    person_with(client, "view_agent")
    assert client.get(LOAD).status_code == 403
    assert client.get(reverse("admin:cohorts_agent_export", args=["csv"])).status_code == 403


def test_unknown_kind_of_export_is_not_found(admin_client: Client) -> None:
    assert admin_client.get(reverse("admin:cohorts_agent_export", args=["exe"])).status_code == 404


@pytest.mark.parametrize("text", ["=1", "'=1", "''=1", "@x", "-x", "plain", "'quoted'", "", "+"])
def test_cell_is_disarmed_and_read_back_as_it_was(text: str) -> None:
    assert armed(disarmed(text)) == text
    assert not disarmed(text).startswith(("=", "+", "-", "@"))
