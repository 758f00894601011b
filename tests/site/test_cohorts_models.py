"""What the database itself refuses, and how a token is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from cryptography.fernet import Fernet
from django.core.exceptions import ImproperlyConfigured, ValidationError
from django.db import DatabaseError, IntegrityError, connection, transaction
from django.db.models import ProtectedError

from cohorts.fields import Secret
from cohorts.models import Agent, AgentVersion, Cohort, Membership, TopologyChange, TopologyVersion
from cohorts.names import is_bot_name, is_slug

if TYPE_CHECKING:
    from pytest_django.fixtures import Settings

pytestmark = pytest.mark.django_db


def make_agent(slug: str = "alder", bot_name: str = "AlderBot", **fields: object) -> Agent:
    return Agent.objects.create(slug=slug, bot_name=bot_name, **fields)


@pytest.mark.parametrize(
    "slug", ["", "Alder", "-alder", "al der", "alder\n", "a" * 49, "add", "all", "none", "älder"]
)
def test_agent_slug_of_another_form_is_refused_by_the_database(slug: str) -> None:
    assert make_agent("a" * 48, "LongBot").pk
    with pytest.raises(DatabaseError, match=r"agent_slug|too long"):
        make_agent(slug)


@pytest.mark.parametrize("bot_name", ["", "1Bot", "My Bot", "_Bot", "Bot\n", "Here", "EVERYONE"])
def test_bot_name_of_another_form_is_refused_by_the_database(bot_name: str) -> None:
    assert make_agent("birch", "B").pk
    with pytest.raises(IntegrityError, match="agent_bot_name"):
        make_agent(bot_name=bot_name)


def test_bot_name_is_unique_ignoring_case() -> None:
    make_agent("alder", "AlderBot")
    with pytest.raises(IntegrityError, match="agent_bot_name_unique"), transaction.atomic():
        make_agent("birch", "alderBOT")
    with pytest.raises(ValidationError, match="case does not count"):
        Agent(slug="birch", bot_name="alderBOT").full_clean()


def test_unknown_status_is_refused_by_the_database() -> None:
    with pytest.raises(IntegrityError, match="agent_status_known"):
        make_agent(status="asleep")


def test_slug_and_cohort_name_cannot_be_changed() -> None:
    agent, cohort = make_agent(), Cohort.objects.create(name="field", created_by="tester")
    agent.full_clean()
    cohort.full_clean()
    agent.slug, cohort.name = "birch", "garden"
    for renamed in (agent, cohort):
        with pytest.raises(ValidationError, match="cannot be changed"):
            renamed.full_clean()


def test_two_sources_of_a_slack_token_are_refused() -> None:
    agent = Agent(slug="alder", bot_name="A", slack_token="x", slack_token_env="ALDER_SLACK")
    with pytest.raises(ValidationError, match="not both"):
        agent.full_clean()


@pytest.mark.parametrize(
    ("name", "accepted"),
    [("ALDER_SLACK_TOKEN", True), ("SECRET_KEY", False), ("SIM_SLACK_TOKEN", False)],
)
def test_variable_of_a_slack_token_must_say_slack(name: str, *, accepted: bool) -> None:
    agent = Agent(slug="alder", bot_name="A", slack_token_env=name)
    if accepted:
        agent.full_clean()
    else:
        with pytest.raises(ValidationError, match="SLACK"):
            agent.full_clean()


def test_membership_is_unique_and_protects_both_sides() -> None:
    agent, cohort = make_agent(), Cohort.objects.create(name="field", created_by="tester")
    Membership.objects.create(agent=agent, cohort=cohort, added_by="tester")
    with pytest.raises(IntegrityError), transaction.atomic():
        Membership.objects.create(agent=agent, cohort=cohort, added_by="tester")
    for protected in (agent, cohort):
        with pytest.raises(ProtectedError):
            protected.delete()


def test_reserved_cohort_name_is_refused_by_the_database() -> None:
    with pytest.raises(IntegrityError, match="cohort_name_not_reserved"):
        Cohort.objects.create(name="all", created_by="tester")


def test_topology_version_has_one_row() -> None:
    with pytest.raises(IntegrityError, match="topology_version_one_row"):
        TopologyVersion.objects.create(id=2, version=1)


def test_rows_name_themselves() -> None:
    agent, cohort = make_agent(), Cohort.objects.create(name="field", created_by="tester")
    row = Membership(agent=agent, cohort=cohort)
    change = TopologyChange(action="member_added", cohort="field", agent="alder")
    shown = [agent, cohort, row, AgentVersion(number=3), TopologyVersion(version=4), change]
    assert [str(one) for one in shown] == [
        "alder",
        "field",
        "alder in field",
        "version 3",
        "version 4",
        "member_added field alder",
    ]


def test_token_is_encrypted_at_rest_and_not_shown(settings: Settings) -> None:
    settings.SIM_FIELD_KEY = Fernet.generate_key().decode()
    make_agent(slack_token="xoxb-one")
    token = Agent.objects.get().slack_token
    assert isinstance(token, Secret)
    assert token.reveal() == "xoxb-one"
    assert (str(token), repr(token)) == ("(set)", "<Secret (set)>")
    with connection.cursor() as cursor:
        cursor.execute("SELECT slack_token FROM cohorts_agent")
        stored = cursor.fetchone()[0]
    assert stored
    assert "xoxb" not in stored


def test_token_kept_through_a_save_still_opens(settings: Settings) -> None:
    settings.SIM_FIELD_KEY = Fernet.generate_key().decode()
    make_agent(slack_token="xoxb-one")
    Agent.objects.get().save()
    assert Agent.objects.get().slack_token.reveal() == "xoxb-one"


def test_token_of_another_key_raises_and_a_fallback_key_opens_it(
    settings: Settings,
) -> None:
    old, new = Fernet.generate_key().decode(), Fernet.generate_key().decode()
    settings.SIM_FIELD_KEY = old
    make_agent(slack_token="xoxb-one")
    settings.SIM_FIELD_KEY = new
    token = Agent.objects.get().slack_token
    with pytest.raises(ImproperlyConfigured, match="SIM_FIELD_KEY"):
        token.reveal()
    settings.SIM_FIELD_KEY_FALLBACKS = [old]
    assert token.reveal() == "xoxb-one"


def test_no_token_is_an_empty_secret() -> None:
    make_agent()
    token = Agent.objects.get().slack_token
    assert (bool(token), token.reveal(), str(token)) == (False, "", "")
    assert Agent(slack_token="x").slack_token == "x"


def test_names_have_their_forms() -> None:
    assert is_slug("rna-dynamics")
    assert not is_slug("RNA")
    assert is_bot_name("Rna_2")
    assert not is_bot_name("2Rna")
