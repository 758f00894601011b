"""Simulations in the admin: their form, channels, roster and members of private channels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.contrib.auth.models import Permission, User
from django.urls import reverse

from cohorts.models import Agent, TopologyChange
from engine.admin.setup.settings import GROUPS, SETTING_NAMES, SettingsForm, setting_in_words
from engine.models import Channel, Inbox, RosterEntry, Simulation
from engine.simulations import house_rules_of, save_house_rules
from tests.site.admin_world import count_queries, make_rows, say_yes

if TYPE_CHECKING:
    from django.test import Client

pytestmark = pytest.mark.django_db
ADD = "/admin/engine/simulation/add/"


@pytest.fixture
def admin_user() -> User:
    """Stand in for pytest-django's, whose password takes a second to hash."""
    return User.objects.create(username="admin", is_staff=True, is_superuser=True)


@pytest.fixture
def viewer(client: Client) -> Client:
    """Somebody who may look at simulations and no more."""
    user = User.objects.create(username="viewer", is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="view_simulation"))
    client.force_login(user)
    return client


def change_url(simulation: Simulation) -> str:
    return reverse("admin:engine_simulation_change", args=[simulation.pk])


def form_of(*channels: Channel, **changes: object) -> dict[str, object]:
    """Return what the form of a simulation sends, with these channels and one more row."""
    data: dict[str, object] = {
        "name": "main",
        "policy": "open",
        "roster_chosen": "False",
        "channels-TOTAL_FORMS": len(channels) + 1,
        "channels-INITIAL_FORMS": len(channels),
        f"channels-{len(channels)}-visibility": "public",
        "house_rules_versions-TOTAL_FORMS": 0,
        "house_rules_versions-INITIAL_FORMS": 0,
    }
    for place, channel in enumerate(channels):
        data |= {
            f"channels-{place}-id": channel.pk,
            f"channels-{place}-simulation": channel.simulation_id,
            f"channels-{place}-name": channel.name,
            f"channels-{place}-topic": channel.topic,
            f"channels-{place}-visibility": channel.visibility,
        }
    return data | changes


def test_every_setting_has_a_field_and_a_place() -> None:
    placed = [name for _, names in GROUPS for name in names]

    assert sorted(SettingsForm.base_fields) == sorted(SETTING_NAMES)
    assert sorted(placed) == sorted(SETTING_NAMES)


def test_settings_are_explained_with_bounds_and_default() -> None:
    fields = SettingsForm.base_fields

    assert fields["daily_posts"].help_text == (
        "New posts of its own in public channels; answers do not count. From 0 to 1,000; blank: 3."
    )
    assert "From 0 to 2,592,000;" in fields["pair_rest_seconds"].help_text
    assert fields["scan_delay_seconds"].widget.attrs["placeholder"] == "30, in a rehearsal 0"
    assert fields["calls_per_window"].widget.attrs["placeholder"] == "no limit"


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("daily_posts", 3, ("New posts per agent and day", "3")),
        ("turn_delay_seconds", 0.5, ("Seconds of rest after a turn", "0.5")),
        ("max_calls", None, ("At most so many model calls", "no limit")),
        ("until_idle", True, ("Ends when nothing is left to do", "yes")),
        ("max_nano_usd", 2_500_000_000, ("At most so much money", "$2.5000")),
        ("of_tomorrow", "x", ("of_tomorrow", "x")),
    ],
)
def test_setting_in_words(name: str, value: object, words: tuple[str, str]) -> None:
    assert setting_in_words(name, value) == words


def test_adding_a_simulation_stores_it_with_a_channel(admin_client: Client) -> None:
    sent = form_of(**{"channels-0-name": "general", "daily_posts": "7", "roster_chosen": "True"})

    response = admin_client.post(ADD, sent)

    assert response.status_code == 302
    simulation = Simulation.objects.get()
    assert (simulation.name, simulation.settings) == ("main", {"daily_posts": 7})
    assert simulation.roster_chosen
    assert [str(channel) for channel in simulation.channels.all()] == ["#general"]
    assert list(Inbox.objects.values_list("kind", flat=True)) == ["channel"]


def test_a_bad_name_is_refused_in_a_sentence(admin_client: Client) -> None:
    page = admin_client.post(ADD, form_of(name="Not A Slug")).content.decode()

    assert "It must be 1 to 48 lower-case letters, digits and hyphens" in page
    assert not Simulation.objects.exists()


def test_each_change_of_house_rules_is_a_version(admin_client: Client) -> None:
    rows = make_rows()
    url = change_url(rows.simulation)

    for text in ("Be kind.\r\nBe brief.", "Be kind.\nBe brief.", "<b>Be bold.</b>"):
        assert admin_client.post(url, form_of(rows.channel, house_rules=text)).status_code == 302

    versions = rows.simulation.house_rules_versions.order_by("number")
    assert list(versions.values_list("number", "text", "saved_by")) == [
        (1, "Be kind.\nBe brief.", "admin"),
        (2, "<b>Be bold.</b>", "admin"),
    ]
    page = admin_client.get(url).content.decode()
    assert "&lt;b&gt;Be bold.&lt;/b&gt;</textarea>" in page
    assert "versions of the house rules" in page.lower()
    second = reverse("admin:engine_houserules_change", args=[versions[1].pk])
    assert second in page
    assert "&lt;b&gt;Be bold." in admin_client.get(second).content.decode()


def test_house_rules_are_emptied_by_a_version_without_text(admin_client: Client) -> None:
    rows = make_rows()
    save_house_rules(rows.simulation, "Be kind.", who="Ada")

    admin_client.post(change_url(rows.simulation), form_of(rows.channel))

    rules = house_rules_of(rows.simulation)
    assert (rules.number, rules.text, str(rules)) == (2, "", "version 2")


def test_no_house_rules_are_version_0() -> None:
    rules = house_rules_of(make_rows().simulation)

    assert (rules.number, rules.text) == (0, "")


def test_a_name_cannot_be_changed(admin_client: Client) -> None:
    rows = make_rows()

    admin_client.post(change_url(rows.simulation), form_of(rows.channel, name="other"))

    rows.simulation.refresh_from_db()
    assert rows.simulation.name == "main"


def test_a_blank_setting_goes_back_to_the_default(admin_client: Client) -> None:
    rows = make_rows()
    rows.simulation.settings = {"daily_posts": 7, "thread_messages": 20, "of_tomorrow": 1}
    rows.simulation.save()

    page = admin_client.get(change_url(rows.simulation)).content.decode()
    admin_client.post(change_url(rows.simulation), form_of(rows.channel, thread_messages="30"))

    assert 'name="daily_posts" value="7"' in page
    assert "roster_chosen" in page
    assert 'name="settings"' not in page
    rows.simulation.refresh_from_db()
    assert rows.simulation.settings == {"thread_messages": 30, "of_tomorrow": 1}


def test_a_setting_out_of_bounds_is_refused(admin_client: Client) -> None:
    rows = make_rows()

    response = admin_client.post(
        change_url(rows.simulation), form_of(rows.channel, post_skip_probability="1.5")
    )

    assert "Ensure this value is less than or equal to 1" in response.content.decode()


def test_another_kind_of_roster_makes_a_driver_look_at_everybody(admin_client: Client) -> None:
    rows = make_rows()
    Inbox.objects.all().delete()

    admin_client.post(change_url(rows.simulation), form_of(rows.channel))
    assert not Inbox.objects.exists()
    admin_client.post(change_url(rows.simulation), form_of(rows.channel, roster_chosen="True"))

    assert list(Inbox.objects.order_by("key").values_list("kind", "key")) == [
        ("agent", rows.ada.pk),
        ("agent", rows.bob.pk),
    ]


def test_a_channel_is_edited_with_a_note_but_stays_as_visible(admin_client: Client) -> None:
    rows = make_rows()
    Inbox.objects.all().delete()
    sent = form_of(rows.channel, **{"channels-0-topic": "New", "channels-0-visibility": "private"})

    admin_client.post(change_url(rows.simulation), sent)

    rows.channel.refresh_from_db()
    assert (rows.channel.topic, rows.channel.visibility) == ("New", "public")
    assert list(Inbox.objects.values_list("kind", "key")) == [("channel", rows.channel.pk)]


def test_another_policy_is_asked_about_and_the_rest_is_saved(admin_client: Client) -> None:
    rows = make_rows()
    url = change_url(rows.simulation)
    sent = form_of(rows.channel, policy="isolated", description="Trade")
    question = admin_client.post(url, sent).content.decode()
    assert "its policy waits for your yes" in question
    assert "The gate would be treated as off" in question
    rows.simulation.refresh_from_db()
    assert (rows.simulation.policy, rows.simulation.description) == ("open", "Trade")
    assert "policy of main is isolated" in say_yes(admin_client, question)
    rows.simulation.refresh_from_db()
    assert rows.simulation.policy == "isolated"


def test_a_simulation_is_never_deleted(admin_client: Client) -> None:
    rows = make_rows()
    url = reverse("admin:engine_simulation_delete", args=[rows.simulation.pk])

    assert admin_client.post(url, {"post": "yes"}).status_code == 403
    assert Simulation.objects.count() == 1


def test_roster_is_searched_and_changed_with_notes(admin_client: Client) -> None:
    rows = make_rows()
    url = reverse("admin:engine_roster", args=[rows.simulation.pk])
    Inbox.objects.all().delete()

    assert "All active agents take part now" in admin_client.get(url).content.decode()
    found = admin_client.get(f"{url}?q=adabot").content.decode()
    question = admin_client.post(url, {"agent": [rows.ada.pk], "add": "1"}).content.decode()
    added = say_yes(admin_client, question)
    again = admin_client.post(url, {"agent": [rows.ada.pk], "add": "1"}, follow=True)

    assert f'name="agent" value="{rows.ada.pk}"' in found
    assert f'name="agent" value="{rows.bob.pk}"' not in found
    assert "roster of main: 1 added, 0 removed" in added
    assert "nobody, it was so already" in again.content.decode()
    assert list(RosterEntry.objects.values_list("agent__slug", flat=True)) == ["ada-lab"]
    assert list(Inbox.objects.values_list("kind", "key")) == [("agent", rows.ada.pk)]

    question = admin_client.post(url, {"agent": [rows.ada.pk], "remove": "1"}).content.decode()
    removed = say_yes(admin_client, question)
    assert "roster of main: 0 added, 1 removed" in removed
    assert "Nobody is chosen yet" in removed
    assert not RosterEntry.objects.exists()
    assert Inbox.objects.count() == 2


def test_roster_page_takes_nonsense_calmly(admin_client: Client) -> None:
    rows = make_rows()
    url = reverse("admin:engine_roster", args=[rows.simulation.pk])

    for sent in ({}, {"agent": ["x", "9" * 30, "999999"], "add": "1"}):
        response = admin_client.post(url, sent, follow=True)
        assert "No agent was ticked" in response.content.decode()
    assert "No agent that is not in here" in admin_client.get(f"{url}?q=zz").content.decode()
    assert admin_client.get(f"{url}?p=-1&q=%00").status_code == 200


def test_members_of_a_private_channel_are_changed_with_an_audit(admin_client: Client) -> None:
    rows = make_rows()
    secret = Channel.objects.create(simulation=rows.simulation, name="secret", visibility="private")
    url = reverse("admin:engine_channel_members", args=[rows.simulation.pk, secret.pk])
    TopologyChange.objects.all().delete()

    admin_client.post(url, {"agent": [rows.ada.pk, rows.bob.pk], "add": "1"})
    admin_client.post(url, {"agent": [rows.bob.pk], "remove": "1"})

    assert [agent.slug for agent in secret.members.all()] == ["ada-lab"]
    lines = TopologyChange.objects.exclude(who="outside").order_by("pk")
    assert list(lines.values_list("who", "action", "agent", "detail")) == [
        ("admin", "channel_member_added", "ada-lab", "#secret in main"),
        ("admin", "channel_member_added", "bob-lab", "#secret in main"),
        ("admin", "channel_member_removed", "bob-lab", "#secret in main"),
    ]
    assert "1 (add, remove)" in admin_client.get(change_url(rows.simulation)).content.decode()


def test_a_public_channel_has_no_page_of_members(admin_client: Client) -> None:
    rows = make_rows()
    url = reverse("admin:engine_channel_members", args=[rows.simulation.pk, rows.channel.pk])

    assert admin_client.get(url).status_code == 404


def test_who_may_only_view_changes_nothing(viewer: Client) -> None:
    rows = make_rows()
    roster = reverse("admin:engine_roster", args=[rows.simulation.pk])

    assert viewer.post(change_url(rows.simulation), form_of(rows.channel)).status_code == 403
    assert viewer.post(roster, {"agent": [rows.ada.pk], "add": "1"}).status_code == 403
    assert not RosterEntry.objects.exists()
    page = viewer.get(roster).content.decode()
    assert "Add the ticked agents" not in page
    assert viewer.get(change_url(rows.simulation)).status_code == 200


def test_roster_is_hidden_from_who_may_not_view_simulations(client: Client) -> None:
    rows = make_rows()
    client.force_login(User.objects.create(username="nobody", is_staff=True))
    url = reverse("admin:engine_roster", args=[rows.simulation.pk])

    assert client.get(url).status_code == 403
    client.logout()
    assert client.get(url).status_code == 302


def test_lists_and_roster_cost_the_same_for_many(admin_client: Client) -> None:
    rows = make_rows()
    pages = (
        "/admin/engine/simulation/",
        change_url(rows.simulation),
        reverse("admin:engine_roster", args=[rows.simulation.pk]) + "?q=lab",
    )
    RosterEntry.objects.create(simulation=rows.simulation, agent=rows.ada)
    admin_client.get(change_url(rows.simulation))  # content types are cached from here on
    few = [count_queries(admin_client, page) for page in pages]
    for number in range(10):
        Simulation.objects.create(name=f"other-{number}")
        Channel.objects.create(simulation=rows.simulation, name=f"c-{number}")
        agent = Agent.objects.create(slug=f"more-{number}", bot_name=f"More{number}")
        RosterEntry.objects.create(simulation=rows.simulation, agent=agent)

    assert [count_queries(admin_client, page) for page in pages] == few
