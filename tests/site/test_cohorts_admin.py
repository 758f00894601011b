"""Agents, cohorts and the audit in the admin: clean, safe with hostile text, few queries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.contrib.auth.models import Permission, User
from django.urls import reverse

from cohorts import operations
from cohorts.models import Agent, AgentVersion, Cohort, Membership, TopologyChange
from engine.models import Simulation
from tests.site.admin_world import say_yes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager

    from django.test import Client
    from django.test.utils import CaptureQueriesContext

    CountQueries = Callable[[int], AbstractContextManager[CaptureQueriesContext]]

pytestmark = pytest.mark.django_db
HOSTILE = "<script>alert('x')</script>\"'&{{ 7 }}"


@pytest.fixture
def admin_user() -> User:
    """Stand in for pytest-django's, whose password takes a second to hash."""
    return User.objects.create(username="admin", is_staff=True, is_superuser=True)


def make_agents(*slugs: str) -> list[Agent]:
    agents = [Agent(slug=slug, bot_name=slug.replace("-", "_")) for slug in slugs]
    operations.save_agents(agents, who="setup")
    return agents


def make_cohort(name: str, *agents: Agent) -> Cohort:
    cohort = operations.create_cohort(name, who="setup")
    operations.add_members(cohort, agents, who="setup")
    return cohort


def members_url(cohort: Cohort) -> str:
    return reverse("admin:cohorts_cohort_members", args=[cohort.pk])


def change_url(row: Agent | Cohort) -> str:
    return reverse(f"admin:cohorts_{row._meta.model_name}_change", args=[row.pk])


def delete_url(row: Agent | Cohort) -> str:
    return reverse(f"admin:cohorts_{row._meta.model_name}_delete", args=[row.pk])


def text_of(client: Client, url: str, data: Mapping[str, object] | None = None) -> str:
    """Return the page that a GET, or a POST of data, leads to."""
    response = client.get(url) if data is None else client.post(url, data, follow=True)
    assert response.status_code == 200
    return response.content.decode()


def member_slugs(cohort: Cohort) -> list[str]:
    return sorted(cohort.members.values_list("slug", flat=True))


def agent_form(agent: Agent, **changes: object) -> dict[str, object]:
    fields = ("bot_name", "represents", "status", "public_profile", "private_instructions")
    management = {"versions-TOTAL_FORMS": 0, "versions-INITIAL_FORMS": 0}
    return {**{name: getattr(agent, name) for name in fields}, **management, **changes}


def test_agent_is_made_with_a_version_and_a_line_in_the_audit(admin_client: Client) -> None:
    url = reverse("admin:cohorts_agent_add")
    page = text_of(admin_client, url, agent_form(Agent(bot_name="AlderBot"), slug="alder"))
    assert "was added successfully" in page
    assert "in no cohort: under the policy isolated it deals with nobody" in page
    assert AgentVersion.objects.get().saved_by == "admin"
    assert TopologyChange.objects.get(agent="alder").who == "admin"


def test_agent_with_a_reserved_id_is_refused_in_the_form(admin_client: Client) -> None:
    url = reverse("admin:cohorts_agent_add")
    page = text_of(admin_client, url, agent_form(Agent(bot_name="HERE"), slug="none"))
    assert "This id is reserved." in page
    assert "This bot name is reserved." in page
    assert not Agent.objects.exists()


def test_profile_is_edited_as_a_new_version_and_the_id_stays(admin_client: Client) -> None:
    (alder,) = make_agents("alder")
    form = agent_form(alder, public_profile="Trees.", slug="renamed")
    text_of(admin_client, change_url(alder), form)
    assert Agent.objects.get().slug == "alder"
    assert AgentVersion.objects.filter(number=2, public_profile="Trees.").exists()
    text_of(admin_client, change_url(alder), agent_form(Agent.objects.get()))
    assert AgentVersion.objects.count() == 2


def test_token_is_written_and_removed_but_never_shown(admin_client: Client) -> None:
    (alder,) = make_agents("alder")
    url = change_url(alder)
    text_of(admin_client, url, agent_form(alder, new_slack_token="xoxb-secret"))
    stored = Agent.objects.get().slack_token
    assert stored.reveal() == "xoxb-secret"
    page = text_of(admin_client, url)
    assert "(set)" in page
    assert "xoxb-secret" not in page
    assert stored.ciphertext not in page
    text_of(admin_client, url, agent_form(alder))
    assert Agent.objects.get().slack_token.reveal() == "xoxb-secret"
    both = agent_form(alder, slack_token_env="ALDER_SLACK_TOKEN")
    assert "not both" in text_of(admin_client, url, both)
    text_of(admin_client, url, agent_form(alder, remove_slack_token="on"))
    assert not Agent.objects.get().slack_token


def test_status_actions_change_the_chosen_agents(admin_client: Client) -> None:
    alder, birch, cedar = make_agents("alder", "birch", "cedar")
    url = reverse("admin:cohorts_agent_changelist")
    for action, status in (("pause", "paused"), ("retire", "retired"), ("activate", "active")):
        chosen = {"action": action, "_selected_action": [alder.pk, birch.pk]}
        question = text_of(admin_client, url, chosen)
        assert f"2 agents {status}" in say_yes(admin_client, question)
        found = set(Agent.objects.values_list("slug", "status"))
        assert found == {("alder", status), ("birch", status), (cedar.slug, "active")}
    assert "delete_selected" not in text_of(admin_client, url)
    chosen = {"action": "activate", "_selected_action": [alder.pk]}
    assert "they are Active already" in text_of(admin_client, url, chosen)


def test_another_status_is_asked_about_and_the_rest_is_saved(admin_client: Client) -> None:
    (alder,) = make_agents("alder")
    form = agent_form(alder, status="paused", represents="Alder lab")
    question = text_of(admin_client, change_url(alder), form)
    assert "its status waits for your yes" in question
    alder.refresh_from_db()
    assert (alder.status, alder.represents) == ("active", "Alder lab")
    say_yes(admin_client, question)
    alder.refresh_from_db()
    assert alder.status == "paused"


def test_agent_with_history_is_not_deleted(admin_client: Client) -> None:
    alder, birch = make_agents("alder", "birch")
    make_cohort("field", alder)
    for data in (None, {"post": "yes"}):
        response = admin_client.generic("POST" if data else "GET", delete_url(alder))
        assert response.status_code == 302
    assert "retire it instead of deleting it" in text_of(admin_client, change_url(alder))
    assert "Are you sure" in text_of(admin_client, delete_url(birch))
    text_of(admin_client, delete_url(birch), {"post": "yes"})
    assert list(Agent.objects.values_list("slug", flat=True)) == ["alder"]
    assert TopologyChange.objects.filter(action="agent_deleted", who="admin").count() == 1


def test_cohort_is_made_described_and_deleted_when_empty(admin_client: Client) -> None:
    (alder,) = make_agents("alder")
    text_of(admin_client, reverse("admin:cohorts_cohort_add"), {"name": "field"})
    cohort = Cohort.objects.get()
    assert cohort.created_by == "admin"
    text_of(admin_client, change_url(cohort), {"name": "renamed", "description": "Trees"})
    cohort.refresh_from_db()
    assert (cohort.name, cohort.description) == ("field", "Trees")
    operations.add_members(cohort, [alder], who="setup")
    page = text_of(admin_client, delete_url(cohort), {"post": "yes"})
    assert "The cohort field has 1 member: remove them before you delete it." in page
    operations.remove_members(cohort, [alder], who="setup")
    text_of(admin_client, delete_url(cohort), {"post": "yes"})
    assert not Cohort.objects.exists()
    deleted = TopologyChange.objects.get(action="cohort_deleted")
    assert (deleted.who, deleted.cohort) == ("admin", "field")


def test_members_are_found_and_added(admin_client: Client) -> None:
    alder, birch, _ = make_agents("alder", "birch", "cedar")
    Agent.objects.filter(pk=birch.pk).update(represents="Birch lab", status="paused")
    field = make_cohort("field", alder)
    url = members_url(field)
    page = text_of(admin_client, f"{url}?q=LAB")
    assert f'value="{birch.pk}"' in page
    assert "cedar" not in page
    assert "works forward only" in page
    assert "Private channels come before cohorts" in page
    assert "No agent that is not in here already" in text_of(admin_client, f"{url}?q=alder")
    page = say_yes(admin_client, text_of(admin_client, url, {"agent": [birch.pk], "add": "1"}))
    assert "Done: 1 membership added, 0 removed." in page
    assert Membership.objects.get(agent=birch).added_by == "admin"
    again = text_of(admin_client, url, {"agent": [birch.pk], "add": "1"})
    assert "nobody, it was so already" in again


def test_removal_is_asked_about_first(admin_client: Client) -> None:
    Simulation.objects.create(name="main")
    alder, birch = make_agents("alder", "birch")
    field, garden = make_cohort("field", alder, birch), make_cohort("garden", birch)
    url = members_url(field)
    question = text_of(admin_client, url, {"agent": [alder.pk, birch.pk], "remove": "1"})
    assert "alder will deal with everybody" in question
    assert member_slugs(field) == ["alder", "birch"]
    assert "0 memberships added, 2 removed." in say_yes(admin_client, question)
    assert (member_slugs(field), member_slugs(garden)) == ([], ["birch"])
    assert "This cohort has no members yet." in text_of(admin_client, url)
    again = text_of(admin_client, url, {"agent": [alder.pk], "remove": "1"})
    assert "nobody, it was so already" in again


@pytest.mark.parametrize("ticked", [[], ["999999"], ["x"], ["9" * 30], ["-1"]])
def test_unknown_agents_change_nothing(admin_client: Client, ticked: list[str]) -> None:
    (alder,) = make_agents("alder")
    field = make_cohort("field", alder)
    n_lines = TopologyChange.objects.count()
    for button in ("add", "remove"):
        page = text_of(admin_client, members_url(field), {"agent": ticked, button: "1"})
        assert "No agent was ticked" in page
    assert TopologyChange.objects.count() == n_lines


def test_unknown_cohort_is_not_found(admin_client: Client) -> None:
    for key in (999_999, 10**30):
        url = reverse("admin:cohorts_cohort_members", args=[key])
        assert admin_client.get(url).status_code == 404
        assert admin_client.post(url, {"add": "1"}).status_code == 404


def test_large_cohort_is_paged(admin_client: Client) -> None:
    agents = make_agents(*(f"agent-{i:03}" for i in range(105)))
    url = members_url(make_cohort("field", *agents))
    assert "page 1 of 3" in text_of(admin_client, url)
    last = text_of(admin_client, f"{url}?p=3")
    assert "agent-104" in last
    assert "agent-050" not in last
    assert "page 3 of 3" in text_of(admin_client, f"{url}?p=77")
    assert "page 1 of 3" in text_of(admin_client, f"{url}?p=x")


def test_search_that_finds_too_much_says_so(admin_client: Client) -> None:
    make_agents(*(f"agent-{i}" for i in range(21)))
    url = members_url(make_cohort("field"))
    assert "Only the first 20 are shown" in text_of(admin_client, f"{url}?q=agent")
    assert "Only the first" not in text_of(admin_client, f"{url}?q=agent-1")


def test_search_with_a_nul_finds_what_the_rest_names(admin_client: Client) -> None:
    make_agents("alder")
    url = members_url(make_cohort("field"))
    assert "alder" in text_of(admin_client, f"{url}?q=ald%00er")


def test_who_may_only_look_cannot_change(client: Client) -> None:
    (alder,) = make_agents("alder")
    field = make_cohort("field", alder)
    user = User.objects.create_user("viewer", is_staff=True)
    client.force_login(user)
    url = members_url(field)
    assert client.get(url).status_code == 403
    user.user_permissions.add(Permission.objects.get(codename="view_cohort"))
    page = text_of(client, url)
    assert "alder" in page
    assert 'type="checkbox"' not in page
    assert client.post(url, {"agent": [alder.pk], "remove": "1"}).status_code == 403
    client.logout()
    assert client.get(url).status_code == 302


def test_audit_is_read_only_and_shows_changes_from_outside(admin_client: Client) -> None:
    (alder,) = make_agents("alder")
    Agent.objects.filter(pk=alder.pk).update(status="retired")
    TopologyChange.objects.filter(agent="alder").update(version=0)
    url = reverse("admin:cohorts_topologychange_changelist")
    page = text_of(admin_client, url)
    assert "outside" in page
    assert "retired" in page
    line = TopologyChange.objects.latest("id")
    for action, args in (("add", []), ("delete", [line.pk])):
        forbidden = reverse(f"admin:cohorts_topologychange_{action}", args=args)
        assert admin_client.get(forbidden).status_code == 403
    shown = reverse("admin:cohorts_topologychange_change", args=[line.pk])
    assert admin_client.post(shown, {"who": "me"}).status_code == 403
    version = reverse("admin:cohorts_agentversion_change", args=[AgentVersion.objects.get().pk])
    assert admin_client.get(version).status_code == 200
    assert admin_client.post(version, {"saved_by": "me"}).status_code == 403


def test_hostile_text_is_escaped_on_every_page(admin_client: Client) -> None:
    (alder,) = make_agents("alder")
    alder.represents = alder.public_profile = HOSTILE
    operations.save_agent(alder, who=HOSTILE[:150])
    field = operations.create_cohort("field", description=HOSTILE, who=HOSTILE)
    operations.add_members(field, [alder], who=HOSTILE)
    garden = make_cohort("garden")
    urls = [
        reverse("admin:cohorts_agent_changelist"),
        reverse("admin:cohorts_cohort_changelist"),
        reverse("admin:cohorts_topologychange_changelist"),
        change_url(alder),
        change_url(field),
        members_url(field),
        f"{members_url(garden)}?q=alder",
        f"{members_url(garden)}?q=%3Cscript%3Ealert(%27x",
    ]
    for url in urls:
        page = text_of(admin_client, url)
        assert "&lt;script&gt;alert(" in page, url
        assert "<script>alert(" not in page, url


@pytest.mark.parametrize("page", ["agents", "cohorts", "audit", "versions", "members", "search"])
def test_number_of_queries_does_not_grow_with_the_rows(
    admin_client: Client, page: str, django_assert_max_num_queries: CountQueries
) -> None:
    field = make_cohort("field")
    url = {
        "agents": reverse("admin:cohorts_agent_changelist"),
        "cohorts": reverse("admin:cohorts_cohort_changelist"),
        "audit": reverse("admin:cohorts_topologychange_changelist"),
        "versions": reverse("admin:cohorts_agentversion_changelist"),
        "members": members_url(field),
        "search": f"{members_url(field)}?q=other",
    }[page]
    make_cohort("seed", *make_agents("seed-1", "other-1"))
    operations.add_members(field, Agent.objects.filter(slug="seed-1"), who="setup")
    with django_assert_max_num_queries(20) as few:
        text_of(admin_client, url)
    agents = make_agents(*(f"agent-{i}" for i in range(20)), *(f"other-{i}" for i in range(2, 20)))
    make_cohort("garden", *agents)
    operations.add_members(field, agents[:20], who="setup")
    with django_assert_max_num_queries(len(few)) as many:
        text_of(admin_client, url)
    assert len(many) <= len(few)
