"""What the pages of an agent offer beside its form: why it is quiet, its versions, one like it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from django.contrib.auth.models import User
from django.urls import reverse
from django.utils import timezone

from cohorts import operations
from cohorts.models import Agent, AgentVersion, Cohort, Membership
from engine.models import AgentState, Run, RunControl, RunLease, Simulation, Subscription
from tests.doors import make_agent, make_world
from tests.site.admin_world import HOSTILE, NOON, page_of, person_with, say_yes

if TYPE_CHECKING:
    from django.test import Client

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin_user() -> User:
    """Stand in for pytest-django's, whose password takes a second to hash."""
    return User.objects.create(username="admin", is_staff=True, is_superuser=True)


def url_of(name: str, agent: Agent) -> str:
    return reverse(f"admin:cohorts_agent_{name}", args=[agent.pk])


def quiet(client: Client, slug: str = "ash") -> str:
    return page_of(client, url_of("quiet", Agent.objects.get(slug=slug)))


# --- why is it quiet? ----------------------------------------------------------------------------


def test_agent_that_does_not_take_part_is_told_and_where_the_switch_is(
    admin_client: Client,
) -> None:
    world = make_world()
    Agent.objects.filter(slug="ash").update(status="paused")
    page = quiet(admin_client)
    assert "It is paused." in page or "it is paused." in page
    assert "the page of ash" in page
    Simulation.objects.update(roster_chosen=True)
    world.roster.set(Agent.objects.filter(slug="elm"))
    assert "It is not in the roster of main." in quiet(admin_client, "fir")


def test_agent_with_work_waits_for_a_run(admin_client: Client) -> None:
    make_world()
    page = quiet(admin_client)
    assert "It has something to do (look at channels that are new to it" in page
    assert "no run of main is live" in page
    assert "this is how the next one would begin" in page


def test_limit_that_keeps_an_agent_quiet_is_named(admin_client: Client) -> None:
    world = make_world(agents=("ash", "elm"))
    for agent in Agent.objects.all():
        Subscription.objects.create(channel=world.channels.get(), agent=agent)
    Simulation.objects.update(settings={"daily_posts": 0})
    page = quiet(admin_client)
    assert "It may write no new post" in page
    assert "the proposals that wait" in page
    assert "That may change by itself on" in page


def test_rest_after_a_turn_is_told_for_the_live_run(admin_client: Client) -> None:
    world = make_world(agents=("ash", "elm"), turn_delay_seconds=600)
    configuration = {"llm": "offline", "turn_delay_seconds": 600.0, "max_calls": 5}
    run = Run.objects.create(
        simulation=world, status="running", started_at=NOON, configuration=configuration
    )
    RunControl.objects.create(run=run)
    AgentState.objects.create(
        simulation=world, agent=Agent.objects.get(slug="ash"), ended_at=timezone.now() - timedelta(seconds=1)
    )  # fmt: skip
    page = quiet(admin_client)
    assert "It rests after its last turn." in page
    assert f"for run {run.pk} as it is stored" in page
    assert "the settings of main" in page


def test_question_without_a_simulation_or_a_wrong_one(admin_client: Client) -> None:
    ash = make_agent("ash")
    assert "There is no simulation yet" in quiet(admin_client)
    for wrong in ("x", "99", "-1"):
        assert admin_client.get(url_of("quiet", ash), {"simulation": wrong}).status_code == 404
    assert admin_client.get(reverse("admin:cohorts_agent_quiet", args=[99])).status_code == 404


def test_question_writes_nothing(admin_client: Client) -> None:
    make_world()
    quiet(admin_client)
    assert not AgentState.objects.exists()
    assert not RunLease.objects.exists()


# --- versions --------------------------------------------------------------------------------------


def changed(agent: Agent, **values: object) -> None:
    for name, value in values.items():
        setattr(agent, name, value)
    operations.save_agent(agent, who="eve")


def test_versions_differ_by_signed_lines(admin_client: Client) -> None:
    ash = make_agent("ash")
    changed(ash, public_profile=f"First line\n{HOSTILE}", max_calls=3)
    page = page_of(admin_client, url_of("differences", ash))
    for part in (
        "Public profile",
        "added: </span> First line",
        "removed: </span> House Ash offers",
        "LLM calls a run",
    ):
        assert part in page
    assert "<script>alert" not in page
    same = page_of(admin_client, f"{url_of('differences', ash)}?old=1&new=1")
    assert "They are the same." in same


def test_older_version_is_made_the_newest_again(admin_client: Client) -> None:
    ash = make_agent("ash")
    was = ash.public_profile
    changed(ash, public_profile="Other")
    page = admin_client.post(url_of("differences", ash), {"version": "1"}, follow=True)
    assert "Version 1 is the newest again." in page.content.decode()
    ash.refresh_from_db()
    assert ash.public_profile == was
    assert AgentVersion.objects.filter(agent=ash).count() == 3
    again = admin_client.post(url_of("differences", ash), {"version": "3"}, follow=True)
    assert "It is so already." in again.content.decode()
    assert admin_client.post(url_of("differences", ash), {"version": "9"}).status_code == 404


def test_name_that_somebody_else_has_now_is_not_restored(admin_client: Client) -> None:
    ash = make_agent("ash")
    changed(ash, bot_name="Other")
    elm = make_agent("elm")
    changed(elm, bot_name="Ash")
    page = admin_client.post(url_of("differences", ash), {"version": "1"}, follow=True)
    assert "Nothing was changed: Another agent has this bot name" in page.content.decode()


def test_agent_without_versions_says_so(admin_client: Client) -> None:
    bare = Agent.objects.create(slug="bare", bot_name="Bare")
    assert "There are no two versions yet." in page_of(admin_client, url_of("differences", bare))


# --- one like it -----------------------------------------------------------------------------------


def test_agent_is_made_like_another(admin_client: Client) -> None:
    make_world(cohorts={"north": ("ash",)})
    ash = Agent.objects.get(slug="ash")
    changed(ash, private_instructions="Be kind.", daily_posts=2, slack_token="xoxb-1")
    form = {"slug": "ash-2", "bot_name": "AshTwo", "with_cohorts": "on"}
    page = admin_client.post(url_of("copy", ash), form, follow=True).content.decode()
    made = Agent.objects.get(slug="ash-2")
    assert "ash-2 is made like ash." in page.lower()
    assert (made.private_instructions, made.daily_posts, made.bot_name) == ("Be kind.", 2, "AshTwo")
    assert not made.slack_token
    assert [cohort.name for cohort in made.cohorts.all()] == ["north"]


@pytest.mark.parametrize(
    ("form", "says"),
    [
        ({"slug": "ash", "bot_name": "New"}, "already exists"),
        ({"slug": "new", "bot_name": "Ash"}, "Another agent has this bot name"),
        ({"slug": "No!", "bot_name": "New"}, "valid"),
    ],
)
def test_names_that_are_taken_are_refused_at_their_field(
    admin_client: Client, form: dict[str, str], says: str
) -> None:
    ash = make_agent("ash")
    assert says in admin_client.post(url_of("copy", ash), form).content.decode()
    assert Agent.objects.count() == 1


def test_copy_takes_cohorts_only_from_who_may_change_them(client: Client) -> None:
    make_world(cohorts={"north": ("ash",)})
    ash = Agent.objects.get(slug="ash")
    person_with(client, "add_agent", "view_agent")
    client.post(url_of("copy", ash), {"slug": "two", "bot_name": "Two", "with_cohorts": "on"})
    assert not Membership.objects.filter(agent__slug="two").exists()


# --- hints and batches -----------------------------------------------------------------------------


def test_form_gives_hints(admin_client: Client) -> None:
    ash = make_agent("ash")
    changed(ash, public_profile="x" * 7000, private_instructions="", daily_posts=0, max_usd=0)
    changed(make_agent("elm"), public_profile="x" * 7000, bot_name="Ashe")
    page = page_of(admin_client, url_of("change", ash))
    for part in (
        "has 7,000 bytes",
        "It has no private instructions",
        "elm has the same public profile.",
        "It may start no topic of its own",
        "It may spend no money",
        "easily taken for Ashe",
    ):
        assert part in page
    changed(ash, public_profile="")
    assert "It has no public profile" in page_of(admin_client, url_of("change", ash))


def test_batch_is_added_to_a_cohort_after_a_question(admin_client: Client) -> None:
    make_world()
    north = Cohort.objects.create(name="north", created_by="ada")
    chosen = list(Agent.objects.filter(slug__in=("ash", "elm")).values_list("pk", flat=True))
    listed = reverse("admin:cohorts_agent_changelist")
    form = {"action": "add_to_cohort", "_selected_action": chosen, "cohort": north.pk}
    say_yes(admin_client, admin_client.post(listed, form).content.decode())
    assert Membership.objects.filter(cohort=north).count() == 2
    assert "it is so already" in admin_client.post(listed, form, follow=True).content.decode()
    none = admin_client.post(listed, form | {"cohort": ""}, follow=True).content.decode()
    assert "choose a cohort beside the action" in none
    out = form | {"action": "take_out_of_cohort"}
    say_yes(admin_client, admin_client.post(listed, out).content.decode())
    assert not Membership.objects.exists()


def test_batch_of_a_cohort_needs_the_right_to_cohorts(client: Client) -> None:
    make_world(cohorts={"north": ()})
    person_with(client, "view_agent", "change_agent")
    form = {
        "action": "add_to_cohort",
        "_selected_action": [Agent.objects.get(slug="ash").pk],
        "cohort": Cohort.objects.get().pk,
    }
    listed = reverse("admin:cohorts_agent_changelist")
    assert client.post(listed, form).status_code == 403
