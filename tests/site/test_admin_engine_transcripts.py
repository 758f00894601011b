"""Transcripts in the admin: reading channels and threads, and speaking in them."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from engine.admin.talk.reading import ANSWERS_IN_A_PAGE, ROOTS_IN_A_PAGE
from engine.models import Channel, Decision, Message, Simulation, Thread
from tests.site.admin_world import (
    HOSTILE,
    NOON,
    Rows,
    count_queries,
    make_rows,
    page_of,
    person_with,
    say,
    talk,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin_user() -> User:
    """Stand in for pytest-django's, whose password takes a second to hash."""
    return User.objects.create(username="admin", is_staff=True, is_superuser=True)


def channel_url(channel: Channel) -> str:
    return reverse("admin:engine_channel_talk", args=[channel.simulation_id, channel.pk])


def thread_url(root: Message | Thread) -> str:
    return reverse("admin:engine_thread", args=[root.simulation_id, root.pk])


def wait(rows: Rows, text: str, root: Message | None = None) -> Message:
    """Store a person's message that no run has taken in yet."""
    return Message.objects.create(
        simulation=rows.simulation,
        channel=rows.channel,
        root=root,
        person="eve",
        text=text,
        visibility="public",
        written_at=NOON,
    )


def test_channel_shows_newest_roots_first_page_by_page(admin_client: Client) -> None:
    rows = make_rows()
    for seq in range(1, ROOTS_IN_A_PAGE + 4):
        say(rows, seq, f"root-{seq}.")

    newest = page_of(admin_client, channel_url(rows.channel))
    older = page_of(admin_client, f"{channel_url(rows.channel)}?before=4")

    assert newest.index("root-28.") < newest.index("root-27.") < newest.index("root-4.")
    assert "root-3." not in newest
    assert 'href="?before=4"' in newest
    assert older.index("root-3.") < older.index("root-1.")
    assert "root-4." not in older
    assert "Older posts" not in older
    assert "Back to the newest" in older


def test_channel_says_how_a_thread_stands(admin_client: Client) -> None:
    rows = make_rows()
    talk(rows, 1)
    Thread.objects.update(grandfathered_at=NOON)

    page = page_of(admin_client, channel_url(rows.channel))

    assert "Read 2 answers" in page
    assert "closed with a proposal" in page
    assert "may finish, starts nothing new" in page
    assert "bob-lab and ada-lab" in page


@pytest.mark.parametrize("query", ["before=-1", "before=x", f"before={'9' * 40}", "before=0"])
def test_channel_takes_nonsense_calmly(admin_client: Client, query: str) -> None:
    rows = make_rows()

    assert admin_client.get(f"{channel_url(rows.channel)}?{query}").status_code == 200


def test_unknown_places_are_not_found(admin_client: Client) -> None:
    rows = make_rows()
    other = Simulation.objects.create(name="other")
    root = say(rows, 1, "root")
    answer = say(rows, 2, "answer", root=root, ordinal=2)

    for name, keys in (
        ("engine_channel_talk", [other.pk, rows.channel.pk]),
        ("engine_channel_talk", [rows.simulation.pk, 9_999]),
        ("engine_thread", [other.pk, root.pk]),
        ("engine_thread", [rows.simulation.pk, answer.pk]),
        ("engine_thread", [rows.simulation.pk, 10**30]),
        ("engine_simulation_talk", [9_999]),
    ):
        assert admin_client.get(reverse(f"admin:{name}", args=keys)).status_code == 404
    assert admin_client.get(thread_url(root)).status_code == 200


def test_transcript_leads_to_a_public_channel_or_says_what_to_do(admin_client: Client) -> None:
    rows = make_rows()
    Channel.objects.create(simulation=rows.simulation, name="a-secret", visibility="private")
    empty = Simulation.objects.create(name="empty")

    first = admin_client.get(reverse("admin:engine_simulation_talk", args=[rows.simulation.pk]))
    nothing = page_of(admin_client, reverse("admin:engine_simulation_talk", args=[empty.pk]))

    assert first["Location"] == channel_url(rows.channel)
    assert "This simulation has no channel yet" in nothing
    assert "Nobody has written here yet" in page_of(admin_client, channel_url(rows.channel))


def test_thread_shows_who_said_what_in_order_and_how_it_ended(admin_client: Client) -> None:
    rows = make_rows()
    root = talk(rows, 1, "words").thread.root
    Thread.objects.update(grandfathered_at=NOON, guidance="Name a price.", cycle=2)
    wait(rows, "a question", root)

    page = page_of(admin_client, thread_url(root))

    places = [
        page.index(text)
        for text in (
            "Since 1 Jan 2026, 12:00:00 the two may no longer start anything",
            "words root 1",
            "message 2",
            "words answer 1",
            "summary, became a proposal",
            "words summary 1",
            "Cycle 1 ended 1 Jan 2026, 12:00:00: a proposal.",
            "waits: a run takes it in",
            "a question",
            "waits for review",
        )
    ]
    assert places == sorted(places)
    assert "makers (topology 4)" in page
    assert "Name a price." in page
    assert "reopened: cycle 2" in page


@pytest.mark.parametrize(
    ("outcome", "words", "head"),
    [
        ("no_proposal", "no proposal.", "closed without a proposal"),
        ("timeout", "it came to no conclusion.", "closed without a conclusion"),
        ("lost", "it could not go on.", "closed: could not go on"),
    ],
)
def test_thread_names_its_outcome(
    admin_client: Client, outcome: str, words: str, head: str
) -> None:
    rows = make_rows()
    root = talk(rows, 1).thread.root
    Decision.objects.update(outcome=outcome)
    Thread.objects.update(outcome=outcome)

    page = page_of(admin_client, thread_url(root))

    assert f"12:00:00: {words}" in page
    assert head in page


def test_thread_marks_a_summary_that_waits(admin_client: Client) -> None:
    rows = make_rows()
    proposal = talk(rows, 1)
    root = proposal.thread.root
    proposal.delete()
    Decision.objects.all().delete()
    Thread.objects.update(state="proposed", closed_seq=None, outcome="")

    page = page_of(admin_client, thread_url(root))

    assert "summary, waits for the other side" in page
    assert "a summary waits for the other side" in page


def test_long_thread_comes_in_pages_with_each_end_once(admin_client: Client) -> None:
    rows = make_rows()
    root = talk(rows, 1, "early").thread.root
    for ordinal in range(4, ANSWERS_IN_A_PAGE + 3):
        say(rows, ordinal, f"late-{ordinal}.", root=root, ordinal=ordinal)
    Decision.objects.update(seq=ANSWERS_IN_A_PAGE + 1)

    first = page_of(admin_client, thread_url(root))
    second = page_of(admin_client, f"{thread_url(root)}?after={ANSWERS_IN_A_PAGE + 1}")

    assert "early root 1" in first
    assert f"late-{ANSWERS_IN_A_PAGE + 1}." in first
    assert f"late-{ANSWERS_IN_A_PAGE + 2}." not in first
    assert f'href="?after={ANSWERS_IN_A_PAGE + 1}"' in first
    assert "Cycle 1 ended" in first
    assert f"late-{ANSWERS_IN_A_PAGE + 2}." in second
    assert "early root 1" not in second
    assert "Cycle 1 ended" not in second


class Danger(HTMLParser):
    """Collects what hostile text would have to bring into a page to do something."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        links = (given.get("href") or "").lower(), (given.get("src") or "").lower()
        if (
            tag in ("style", "iframe")
            or (tag == "script" and "src" not in given)
            or given.get("action") == "/admin/logout/"
            or any(name == "style" or name.startswith("on") for name in given)
            or any(link.startswith("javascript") or "/auth/user/1/" in link for link in links)
            or "evil" in links[1]
        ):
            self.found.append(tag)


def test_danger_sees_hostile_text() -> None:
    html = HOSTILE + "<a href='javascript:x'>x</a><img src='http://evil.example'>"

    assert Danger(html).found == ["script", "form", "style", "b", "a", "img"]


def test_hostile_text_does_nothing_anywhere(admin_client: Client) -> None:
    rows = make_rows()
    Channel.objects.update(topic=HOSTILE[:250])
    proposal = talk(rows, 1, HOSTILE)
    Thread.objects.update(guidance=HOSTILE)
    wait(rows, HOSTILE, proposal.thread.root)
    message = proposal.thread.root

    for url in (
        channel_url(rows.channel),
        thread_url(message),
        reverse("admin:engine_proposal_change", args=[proposal.pk]),
        reverse("admin:engine_message_change", args=[message.pk]),
        reverse("admin:engine_message_changelist"),
    ):
        # Without the admin's own form to log out, which has an id.
        page = page_of(admin_client, url).replace('id="logout-form" method="post" action=', "")
        assert "&lt;script&gt;alert(1)" in page
        assert Danger(page).found == []


def test_person_writes_into_a_channel_and_learns_whom_it_calls(admin_client: Client) -> None:
    rows = make_rows()
    url = channel_url(rows.channel)

    said = [
        admin_client.post(url, {"text": text}, follow=True).content.decode()
        for text in (
            "Hello @adabot and @BobBot!",
            "Hello @Nobody",
            "Hello\0 all",
            "  ",
            "x" * 20_001,
        )
    ]

    assert "It calls @AdaBot, @BobBot." in said[0]
    assert "No agent has the name that it mentions" in said[1]
    assert "It names no agent" in said[2]
    assert "The message is empty: write something." in said[3]
    assert "The text has 20,001 characters, and 20,000 are possible: shorten it." in said[4]
    stored = Message.objects.order_by("pk").values_list("person", "seq", "root", "text")
    assert list(stored) == [
        ("admin", None, None, "Hello @adabot and @BobBot!"),
        ("admin", None, None, "Hello @Nobody"),
        ("admin", None, None, "Hello all"),
    ]


def test_person_answers_in_a_thread(admin_client: Client) -> None:
    rows = make_rows()
    root = say(rows, 1, "root")

    response = admin_client.post(thread_url(root), {"text": "Why?"})

    assert response["Location"] == thread_url(root)
    answer = Message.objects.get(person="admin")
    assert (answer.root, answer.channel, answer.is_bot) == (root, rows.channel, False)


def test_reader_may_read_and_not_write(client: Client) -> None:
    rows = make_rows()
    root = say(rows, 1, "root")
    reader = person_with(client, "view_message")

    for url in (channel_url(rows.channel), thread_url(root)):
        assert "<textarea" not in page_of(reader, url)
        assert reader.post(url, {"text": "x"}).status_code == 403
    assert Message.objects.count() == 1


def test_writer_may_write(client: Client) -> None:
    rows = make_rows()
    writer = person_with(client, "view_message", "add_message")

    assert "<textarea" in page_of(writer, channel_url(rows.channel))
    assert writer.post(channel_url(rows.channel), {"text": "x"}).status_code == 302
    assert Message.objects.count() == 1


def test_who_may_read_nothing_is_refused_everywhere(client: Client) -> None:
    rows = make_rows()
    root = say(rows, 1, "root")
    stranger = person_with(client)
    urls = (
        reverse("admin:engine_simulation_talk", args=[rows.simulation.pk]),
        channel_url(rows.channel),
        thread_url(root),
    )

    assert [stranger.get(url).status_code for url in urls] == [403, 403, 403]
    stranger.logout()
    assert [stranger.get(url).status_code for url in urls] == [302, 302, 302]


def test_a_message_without_the_token_of_its_form_is_refused() -> None:
    rows = make_rows()
    user = User.objects.create(username="admin", is_staff=True, is_superuser=True)
    client = Client(enforce_csrf_checks=True)
    client.force_login(user)

    assert client.post(channel_url(rows.channel), {"text": "x"}).status_code == 403
    assert not Message.objects.exists()


def test_transcripts_cost_the_same_for_one_message_and_for_many(admin_client: Client) -> None:
    rows = make_rows()
    root = talk(rows, 1).thread.root
    wait(rows, "waits")
    pages = (channel_url(rows.channel), thread_url(root))
    few = [count_queries(admin_client, page) for page in pages]

    for number in range(1, 15):
        talk(rows, 10 * number)
        say(rows, 10 * number + 5, "more", root=root, ordinal=number + 3)
        wait(rows, "waits", root)
        wait(rows, "waits too")

    assert [count_queries(admin_client, page) for page in pages] == few
