"""Finding what was said, lasting addresses, and forgetting a statement on both sides."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.urls import reverse

from engine.admin.talk import search
from engine.inbox import RefusedChangeError, forget_statement
from engine.models import Inbox, Memory
from tests.site.admin_world import (
    HOSTILE,
    Rows,
    count_queries,
    make_rows,
    page_of,
    person_with,
    remember,
    say,
    talk,
)

if TYPE_CHECKING:
    from django.test import Client

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin_user() -> User:
    """Stand in for pytest-django's, whose password takes a second to hash."""
    return User.objects.create(username="admin", is_staff=True, is_superuser=True)


@pytest.fixture
def rows() -> Rows:
    rows = make_rows()
    talk(rows, 1, "kelp")
    return rows


def search_url(rows: Rows, query: str = "") -> str:
    return f"{reverse('admin:engine_search', args=[rows.simulation.pk])}{query}"


def thread_url(rows: Rows) -> str:
    root = rows.simulation.messages.get(root=None, seq=1)
    return reverse("admin:engine_thread", args=[rows.simulation.pk, root.pk])


def test_words_are_found_with_the_way_to_their_thread(admin_client: Client, rows: Rows) -> None:
    page = page_of(admin_client, search_url(rows, "?q=ANSWER"))
    assert "kelp answer 1" in page
    assert "kelp root 1" not in page
    assert f"{thread_url(rows)}?after=1#m2" in page
    assert 'id="m2"' in page_of(admin_client, thread_url(rows))


@pytest.mark.parametrize(
    ("query", "n_found"),
    [
        ("?author=bob-lab", 1),
        ("?author=nobody", 0),
        ("?channel=CHANNEL", 3),
        ("?channel=999999", 0),
        ("?run=RUN&q=summary", 1),
        ("?run=x", 0),
        ("?q=%00kelp", 3),
        ("?q=kelp&before=3", 2),
        ("?q=kelp&before=-1", 3),
        ("?q=100%25", 0),
    ],
)
def test_search_is_narrowed(admin_client: Client, rows: Rows, query: str, n_found: int) -> None:
    asked = query.replace("CHANNEL", str(rows.channel.pk)).replace("RUN", str(rows.run.pk))
    page = page_of(admin_client, search_url(rows, asked))
    assert page.count("Read it in its thread") == n_found
    assert ("Nothing was found" in page) is (n_found == 0)


def test_search_comes_in_pages_and_is_bounded(
    admin_client: Client, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "FOUND_IN_A_PAGE", 2)
    page = page_of(admin_client, search_url(rows, "?q=kelp"))
    assert "?q=kelp&amp;before=2" in page
    monkeypatch.setattr(search, "LOOKED_THROUGH", 1)
    page = page_of(admin_client, search_url(rows, "?q=root"))
    assert "among the newest 1 messages" in page
    assert "kelp root" not in page


def test_long_and_hostile_text_is_cut_around_the_words(admin_client: Client, rows: Rows) -> None:
    say(rows, 9, f"{'x' * 500} needle {HOSTILE}")
    page = page_of(admin_client, search_url(rows, "?q=needle"))
    assert "…x" in page
    assert "<script>alert" not in page
    assert "Search looks through" in page_of(admin_client, search_url(rows))


def test_search_is_for_who_may_read(client: Client, rows: Rows) -> None:
    assert person_with(client, "view_simulation").get(search_url(rows)).status_code == 403


def test_search_costs_the_same_for_many(admin_client: Client, rows: Rows) -> None:
    few = count_queries(admin_client, search_url(rows, "?q=kelp"))
    for seq in range(10, 60, 3):
        talk(rows, seq, "kelp")
    assert count_queries(admin_client, search_url(rows, "?q=kelp")) == few <= 10


# --- forgetting ------------------------------------------------------------------------------------


def test_statement_is_forgotten_by_both_sides_with_a_trace(
    admin_client: Client, rows: Rows
) -> None:
    remember(rows, "We met. The kiln is BROKEN for ever. They are kind.\nOther line.")
    remember(rows, "Bob heard that the kiln is\tbroken for ever", agent=rows.bob)
    Inbox.objects.all().delete()

    page = admin_client.post(
        thread_url(rows), {"forget": "kiln is  broken for ever"}, follow=True
    ).content.decode()

    assert "Forgotten by ada-lab and bob-lab" in page
    newest = dict(Memory.objects.filter(version=2).values_list("agent__slug", "text"))
    assert newest == {"ada-lab": "We met. They are kind.\nOther line.", "bob-lab": ""}
    assert set(Memory.objects.filter(version=2).values_list("person", flat=True)) == {"admin"}
    assert Memory.objects.filter(version=1).count() == 2
    assert Inbox.objects.filter(kind="memory").count() == 2
    assert "taken out of the memory of ada-lab and bob-lab" in LogEntry.objects.get().change_message


@pytest.mark.parametrize(
    ("words", "says"),
    [("kiln", "Write at least 8 characters"), ("nobody said this", "Neither side remembers")],
)
def test_what_is_not_remembered_changes_nothing(
    admin_client: Client, rows: Rows, words: str, says: str
) -> None:
    remember(rows, "The kiln is broken.")
    assert (
        says in admin_client.post(thread_url(rows), {"forget": words}, follow=True).content.decode()
    )
    assert Memory.objects.count() == 1


def test_words_over_the_end_of_a_sentence_take_the_line(rows: Rows) -> None:
    remember(rows, "One. It is broken. For ever and ever.\nStays.")
    changed = forget_statement(
        simulation=rows.simulation, agents=[rows.ada], channel=rows.channel,
        text="broken. For ever", person="eve",
    )  # fmt: skip
    assert changed == [rows.ada]
    assert Memory.objects.latest("version").text == "Stays."


def test_forgetting_needs_the_right_to_memories(client: Client, rows: Rows) -> None:
    person_with(client, "view_message", "add_message", "view_simulation")
    assert client.post(thread_url(rows), {"forget": "something long"}).status_code == 403
    assert "Forget a statement" not in page_of(client, thread_url(rows))


def test_short_statement_is_refused_by_the_function_too(rows: Rows) -> None:
    with pytest.raises(RefusedChangeError, match="at least 8"):
        forget_statement(
            simulation=rows.simulation, agents=[], channel=rows.channel, text=" a b ", person="eve"
        )
